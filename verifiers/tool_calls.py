"""The function calls that an agent asked for against the expected ones.

>>> task = ToolCallsTask(expected_calls=[{"name": "add", "arguments": {"a": 1, "b": 2}}])
>>> judge(task.wanted, [Call("add", {"b": 2, "a": 1.0})], Rules(), ordered=False).faults
[]
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from gymflow.verifiers._assignment import assignment, matching
from gymflow.verifiers._calls import Call, Expected
from gymflow.verifiers._compare import Rules
from gymflow.verifiers._json import parse, shown
from pydantic import BaseModel, Field, model_validator

from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier


class ExpectedCall(BaseModel):
    """A function's name and its arguments, an object or its JSON text."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("arguments"), str):
            return value | {"arguments": parse(value["arguments"] or "{}", unique_keys=True)}
        return value


class ExpectedAction(BaseModel):
    """The next action: a message, one call, or several. `content` of a message is not compared."""

    type: Literal["message", "function_call", "function_call_batch"]
    content: str | None = None
    name: str | None = None
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    ordered: bool = False
    calls: list[ExpectedCall] = Field(default_factory=list)

    @cached_property
    def expected(self) -> list[ExpectedCall]:
        """The calls; none where a message is expected."""
        if self.type == "function_call":
            return [ExpectedCall.model_validate({"name": self.name, "arguments": self.arguments})]
        return self.calls if self.type == "function_call_batch" else []

    @model_validator(mode="after")
    def _complete(self) -> "ExpectedAction":
        if self.type == "function_call" and not self.name:
            raise ValueError("an expected function_call needs a name")
        if self.type == "function_call_batch" and not self.calls:
            raise ValueError("an expected function_call_batch needs calls")
        _ = self.expected
        return self


class ToolCallsTask(BaseModel):
    """Exactly one of the four says what is expected; `tools` are the Responses function tools, for their defaults.

    `expected_calls` is ours, `expected_answers` and `expected_action` are NeMo Gym's, `possible_answers` is BFCL's:
    `[{function: {argument: [accepted values]}}]`. An empty list expects that nothing is called.
    """

    expected_calls: list[ExpectedCall] | None = None
    expected_answers: list[ExpectedCall] | None = None
    possible_answers: list[dict[str, dict[str, list[Any]]]] | None = None
    expected_action: ExpectedAction | None = None
    tools: list[dict[str, Any]] | None = None

    @model_validator(mode="after")
    def _one(self) -> "ToolCallsTask":
        given = (self.expected_calls, self.expected_answers, self.possible_answers, self.expected_action)
        if sum(one is not None for one in given) != 1:
            raise ValueError(
                "a task has exactly one of expected_calls, expected_answers, possible_answers, expected_action"
            )
        return self

    @cached_property
    def wanted(self) -> list[Expected]:
        """The expected calls in order."""
        if self.possible_answers is not None:
            wanted = [
                Expected.possible(name, arguments) for one in self.possible_answers for name, arguments in one.items()
            ]
        else:
            calls = (
                self.expected_action.expected if self.expected_action else self.expected_calls or self.expected_answers
            )
            wanted = [Expected.exactly(call.name, call.arguments) for call in calls or ()]
        return [replace(one, properties=self._properties.get(one.name, {})) for one in wanted]

    @cached_property
    def _properties(self) -> dict[str, dict[str, Any]]:
        return {
            tool["name"]: (tool.get("parameters") or {}).get("properties") or {}
            for tool in self.tools or ()
            if "name" in tool
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """Matched calls, the best total of argument scores, and what is wrong (empty where all is as expected)."""

    matched: int
    score: float
    faults: list[str]


class ToolCalls(Verifier[ToolCallsTask]):
    """Reward 1.0 when the calls are the expected ones and no others; partial credit by parameter.

    Reads all calls of the trajectory, or, where none was executed, those asked for in the last response. Numbers compare by value;
    key order does not count; without `ordered` each expected call is matched with one made, optimally.
    """

    needs = frozenset({"response", "trajectory"})
    extracts = True
    includes = ("_assignment.py", "_calls.py", "_compare.py", "_json.py")

    class Parameters(BaseParameters):
        """Credit `all`: all or nothing. `calls`: share of right calls. `arguments`: share of right arguments, best matching.

        `ordered` None: as the row says, else in any order. `strings: folded` drops case, spaces and punctuation, as BFCL does.
        """

        credit: Literal["all", "calls", "arguments"] = "all"
        ordered: bool | None = None
        strings: Literal["exact", "folded"] = "exact"
        tolerance: float = Field(0.0, ge=0, description="Numbers may differ by so much.")

    def lenient(self) -> BaseModel | None:
        """Strings folded."""
        return None if self.parameters.strings == "folded" else self.parameters.model_copy(update={"strings": "folded"})

    async def verify(self, task: ToolCallsTask, evidence: Evidence) -> Verdict:
        """One verdict over all calls."""
        made = _made(evidence)
        if not task.wanted:
            return _without_calls(task, made, evidence)
        ordered = self.parameters.ordered
        if ordered is None:
            ordered = task.expected_action is not None and task.expected_action.ordered
        rules = Rules(tolerance=self.parameters.tolerance, fold=self.parameters.strings == "folded")
        judged = judge(task.wanted, made, rules, ordered=ordered)
        most = max(len(task.wanted), len(made))
        calls, arguments = judged.matched / most, judged.score / most
        reward = {"all": float(not judged.faults), "calls": calls, "arguments": arguments}[self.parameters.credit]
        return Verdict(
            reward=reward,
            components={"calls": calls, "arguments": arguments},
            extracted_answer=_written(made),
            reason="; ".join(judged.faults[:3]) or None,
        )


def judge(wanted: Sequence[Expected], made: Sequence[Call], rules: Rules, *, ordered: bool) -> Judgement:
    """Match the expected calls with those made: by position, or as many as can be."""
    if not made:
        return Judgement(0, 0.0, ["no function was called"])
    count = [] if len(wanted) == len(made) else [f"{len(made)} calls, expected {len(wanted)}"]
    if ordered:
        pairs = list(zip(wanted, made, strict=False))
        wrong = [one.faults(call, rules) for one, call in pairs]
        score = sum(one.score(call, rules) for one, call in pairs)
        return Judgement(sum(not one for one in wrong), score, count + [fault for one in wrong for fault in one])
    edges = [[not one.faults(call, rules) for call in made] for one in wanted]
    columns = matching(edges)
    matched = sum(column is not None for column in columns)
    if matched == len(wanted) == len(made):
        return Judgement(matched, float(matched), [])
    scores = [[one.score(call, rules) for call in made] for one in wanted]
    best = assignment(scores)
    total = sum(scores[row][column] for row, column in enumerate(best) if column is not None)
    missed = [row for row, column in enumerate(columns) if column is None]
    faults = [fault for row in missed for fault in _nearest_faults(wanted[row], made, best[row], rules)]
    return Judgement(matched, total, count + faults)


def _nearest_faults(wanted: Expected, made: Sequence[Call], column: int | None, rules: Rules) -> list[str]:
    if column is None or made[column].name != wanted.name:
        return [f"{wanted.name} was not called"]
    return [f"{wanted.name}: {fault}" for fault in wanted.faults(made[column], rules)]


def _made(evidence: Evidence) -> list[Call]:
    executed = evidence.tool_calls
    if executed:
        return [Call.read(call.name, call.arguments) for call in executed]
    return [Call.read(item.get("name"), item.get("arguments")) for item in evidence.final_tool_calls]


def _without_calls(task: ToolCallsTask, made: list[Call], evidence: Evidence) -> Verdict:
    if made:
        reason = f"{made[0].name!r} was called where no call was expected"
        return Verdict(reward=0.0, extracted_answer=_written(made), reason=reason)
    if task.expected_action is not None and not evidence.final_text.strip():
        return Verdict(reward=0.0, reason="neither a message nor a call")
    return Verdict(reward=1.0, extracted_answer=None)


def _written(made: list[Call]) -> str | None:
    return shown([{"name": call.name, "arguments": call.arguments} for call in made], 2000) if made else None
