"""Comparing one function call with what was expected of it.

>>> call = Call("f", {"a": 1})
>>> Expected.exactly("f", {"a": 1.0}).faults(call, Rules())
[]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gymflow.verifiers._compare import Rules, differences, equal
from gymflow.verifiers._json import parse, shown


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the model asked for it; `arguments` is None where they are no JSON object."""

    name: str
    arguments: dict[str, Any] | None

    @classmethod
    def read(cls, name: Any, arguments: Any) -> "Call":
        """Arguments are JSON text, or already an object; none at all is the empty object."""
        if isinstance(arguments, str):
            try:
                arguments = parse(arguments) if arguments.strip() else {}
            except ValueError:
                return cls(str(name), None)
        if arguments is None:
            arguments = {}
        return cls(str(name), arguments if isinstance(arguments, dict) else None)


@dataclass(frozen=True, slots=True)
class Expected:
    """A call by name, and per argument the accepted values. `optional` arguments may be left out.

    With `nested`, an accepted object holds lists of accepted values in turn (BFCL's possible answers).
    """

    name: str
    accepted: Mapping[str, Sequence[Any]]
    optional: frozenset[str] = frozenset()
    nested: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def exactly(cls, name: str, arguments: Mapping[str, Any]) -> "Expected":
        """One accepted value per argument."""
        return cls(name, {key: [value] for key, value in arguments.items()})

    @classmethod
    def possible(cls, name: str, arguments: Mapping[str, Sequence[Any]]) -> "Expected":
        """BFCL's form: lists of accepted values, in which "" means that the argument may be left out."""
        return cls(name, arguments, frozenset(key for key, values in arguments.items() if "" in values), nested=True)

    def faults(self, call: Call, rules: Rules) -> list[str]:
        """What is wrong with the call; empty where it is the expected one."""
        if call.name != self.name:
            return [f"calls {call.name}, expected {self.name}"]
        if call.arguments is None:
            return ["the arguments are not a JSON object"]
        faults = [
            f"{key} is missing"
            for key, values in self.accepted.items()
            if key not in call.arguments and not self._may_be_left_out(key, values, rules)
        ]
        for key, value in call.arguments.items():
            if key not in self.accepted:
                if not self._says_nothing(key, value, rules):
                    faults.append(f"{key} should not be there")
            elif not any(self._accepts(one, value, rules) for one in self.accepted[key]):
                faults.append(_wrong(key, self.accepted[key], value, rules))
        return faults

    def score(self, call: Call, rules: Rules) -> float:
        """Share of arguments that are right, of all expected and given ones; 0 for another function."""
        if call.name != self.name or call.arguments is None:
            return 0.0
        named = len(self.accepted.keys() | call.arguments.keys())
        return 1.0 - min(len(self.faults(call, rules)), named) / named if named else 1.0

    def _may_be_left_out(self, key: str, values: Sequence[Any], rules: Rules) -> bool:
        if key in self.optional:
            return True
        schema = self.properties.get(key, {})
        return "default" in schema and any(equal(one, schema["default"], rules) for one in values)

    def _says_nothing(self, key: str, value: Any, rules: Rules) -> bool:
        """An argument that nobody asked for does no harm if it is the default, or null."""
        if key not in self.properties:
            return False
        schema = self.properties[key]
        return value is None or ("default" in schema and equal(schema["default"], value, rules))

    def _accepts(self, accepted: Any, value: Any, rules: Rules) -> bool:
        if not self.nested:
            return bool(equal(accepted, value, rules))
        if isinstance(accepted, dict) and isinstance(value, dict):
            return all(key in accepted for key in value) and all(
                any(self._accepts(one, value[key], rules) for one in values) if key in value else "" in values
                for key, values in ((key, v if isinstance(v, list) else [v]) for key, v in accepted.items())
            )
        if isinstance(accepted, list) and isinstance(value, list):
            return len(accepted) == len(value) and all(
                self._accepts(one, other, rules) for one, other in zip(accepted, value, strict=True)
            )
        return bool(equal(accepted, value, rules))


def _wrong(key: str, accepted: Sequence[Any], value: Any, rules: Rules) -> str:
    if len(accepted) == 1:
        first = next(differences(accepted[0], value, rules, key), None)
        if first is not None:
            return str(first)
    return f"{key} is {shown(value, 60)}, none of the accepted {shown(list(accepted), 100)}"
