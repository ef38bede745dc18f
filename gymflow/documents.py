"""YAML files that people write: values with their positions, and errors that name file, line and field.

Scalars follow the YAML 1.2 core schema, so `no` is a word, `1e-3` a number and `2024-01-01` a string. A key that occurs twice
is refused: YAML would let the last one win in silence.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gymflow.errors import InputError
from gymflow.secrets import is_secret_name
from gymflow.suggest import closest, did_you_mean

Key = tuple[str | int, ...]
M = TypeVar("M", bound=BaseModel)
MAX_SHOWN = 20
MAX_VALUE = 80
_COLLECTIONS = ("tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")
MAX_NODES = 200_000


class _CoreLoader(yaml.SafeLoader):
    """A loader that starts without YAML 1.1's implicit types."""

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        try:
            return int(self.construct_scalar(node))
        except ValueError as error:
            raise yaml.constructor.ConstructorError(
                None, None, "an integer of that many digits", node.start_mark
            ) from error


_CoreLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
     list("-+.0123456789")),
):  # fmt: skip
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first)
_CoreLoader.add_constructor("tag:yaml.org,2002:int", _CoreLoader.construct_yaml_int)


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file (or other source), and the place of every value and key, such as `run.yaml:3`, by its path."""

    source: str
    data: Any
    places: Mapping[Key, str] = field(default_factory=dict)

    def where(self, path: Key) -> str:
        """The place of a value, or of the nearest thing around it that has one."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                return self.places[path[:end]]
        return self.source

    def part(self, path: Key) -> "Document":
        """A value inside, as a document of its own."""
        data = self.data
        for step in path:
            data = data[step]
        within = {place[len(path) :]: where for place, where in self.places.items() if place[: len(path)] == path}
        return Document(f"{self.where(path)}: {'.'.join(map(str, path))}", data, within)

    def validated(self, model: type[M]) -> M:
        """The data as a contract, or InputError with one line for each fault."""
        if not isinstance(self.data, dict):
            raise InputError(f"{self.where(())}: expected keys with values, such as `name: …`")
        if (where := lone_surrogate(self.data, "this")) is not None:
            raise InputError(
                f"{self.where(())}: a lone surrogate, half of a character, in {where}; no encoding can hold it"
            )
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            raise InputError(explain(error, model, self)) from error


def lone_surrogate(value: Any, name: str, path: str = "") -> str | None:
    """Where a value holds half of a surrogate pair, which no file can hold and no endpoint be sent; None nearly always. `name`:
    what the whole value is called."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return path or name
    elif isinstance(value, dict):
        for key, child in value.items():
            inner = f"{path}.{key}".lstrip(".")
            if found := lone_surrogate(key, name, f"a key of {path or name}") or lone_surrogate(child, name, inner):
                return found
    elif isinstance(value, list):
        for index, child in enumerate(value):
            if found := lone_surrogate(child, name, f"{path}.{index}".lstrip(".")):
                return found
    return None


def load_document(file: Path) -> Document:
    """Read a YAML file."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 at byte {error.start}") from error
    return parse_document(text, str(file))


def parse_document(text: str, source: str) -> Document:
    """Parse YAML text; `source` names it in errors."""
    try:
        loader = _CoreLoader(text)
        node = loader.get_single_node()
        reader = _Reader(loader, source)
        data = reader.value(node, ()) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise InputError(f"{where}: {error.problem or error.context}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(f"{source}:{line}: {error.reason}: #x{error.character:04x}") from error
    except RecursionError as error:
        raise InputError(f"{source}: nested too deeply") from error
    return Document(source, data, {path: f"{source}:{line}" for path, line in reader.lines.items()})


def parse_value(text: str) -> Any:
    """The value of `--set key=value`: a core-schema scalar, or YAML where it starts like a list, mapping or quoted string.

    Anything else is the text itself, so that prompts and `${env:NAME}` need no quoting.
    """
    if not text:
        return text
    if text[0] in ("[", "{", '"', "'"):
        return parse_document(text, f"value {text!r}").data
    loader = _CoreLoader("")
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    try:
        return loader.construct_object(yaml.ScalarNode(tag, text))
    except yaml.YAMLError as error:
        raise InputError(f"value {text[:40]!r}: {error}") from error


def explain(error: ValidationError, model: type[BaseModel], document: Document) -> str:
    """One line for each fault: where, which field, what is wrong, and what was probably meant."""
    faults = error.errors(include_url=False)
    lines = []
    for fault in faults[:MAX_SHOWN]:
        path = tuple(part for part in fault["loc"] if not (isinstance(part, str) and "[" in part))
        name = ".".join(map(str, path)) or "the document"
        lines.append(f"{document.where(path)}: {name}: {fault_message(fault, model)}")
    if len(faults) > MAX_SHOWN:
        lines.append(f"… and {len(faults) - MAX_SHOWN} more")
    return "\n".join(lines)


def fault_message(fault: ErrorDetails, model: type[BaseModel]) -> str:
    """What is wrong with one field, in a sentence."""
    if fault["type"] == "extra_forbidden":
        *parents, name = fault["loc"]
        return f"unknown key; {_meant(str(name), model, tuple(parents))}"
    if fault["type"] == "missing":
        return "required, but missing"
    message = fault["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    given, name = fault["input"], str(fault["loc"][-1]) if fault["loc"] else ""
    if is_secret_name(name) or not isinstance(given, str | int | float | bool | None):
        return message
    shown = repr(given)
    return f"{message}, not {shown if len(shown) <= MAX_VALUE else shown[:MAX_VALUE] + '…'}"


def field_names(model: type[BaseModel], parents: Key = ()) -> list[str]:
    """The keys that a contract knows at a path inside it."""
    found = _model_at(model, parents)
    return list(found.model_fields) if found else []


def _meant(name: str, model: type[BaseModel], parents: Key) -> str:
    siblings = field_names(model, parents)
    if closest(name, siblings):
        return did_you_mean(name, siblings)
    # A key of another level, such as `temperature` at the top: propose where it belongs.
    elsewhere = dict(reversed([(path[-1], path) for path in _nested(model)]))
    if meant := closest(name, elsewhere):
        return f"did you mean {'.'.join(elsewhere[meant])}?"
    return did_you_mean(name, siblings)


def _model_at(model: type[BaseModel], path: Key) -> type[BaseModel] | None:
    annotation: Any = model
    for part in path:
        annotation = _inside(annotation, part)
    found = _alternatives(annotation)
    return found[0] if found else None


def _inside(annotation: Any, part: str | int) -> Any:
    for candidate in _alternatives(annotation):
        if part in candidate.model_fields:
            return candidate.model_fields[str(part)].annotation
    for option in _options(annotation):
        if get_origin(option) in (dict, list):
            return get_args(option)[-1]
    return None


def _options(annotation: Any) -> tuple[Any, ...]:
    options = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return tuple(get_args(one)[0] if get_origin(one) is Annotated else one for one in options)


def _alternatives(annotation: Any) -> list[type[BaseModel]]:
    return [one for one in _options(annotation) if isinstance(one, type) and issubclass(one, BaseModel)]


def _nested(model: type[BaseModel], above: tuple[str, ...] = (), depth: int = 3) -> Iterator[tuple[str, ...]]:
    for name, info in model.model_fields.items():
        yield (*above, name)
        for inner in _alternatives(info.annotation) if depth > 1 else ():
            yield from _nested(inner, (*above, name), depth - 1)


@dataclass(slots=True)
class _Reader:
    """Builds values and remembers their lines, in one walk over the composed nodes."""

    loader: _CoreLoader
    source: str
    lines: dict[Key, int] = field(default_factory=dict)
    nodes: int = 0

    def value(self, node: yaml.Node, path: Key) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise InputError(f"{self.source}: more than {MAX_NODES} values; aliases that multiply are refused")
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTIONS:
            raise InputError(
                f"{self.source}:{node.start_mark.line + 1}: the tag {node.tag!r} is not read; leave it out"
            )
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*path, index)) for index, child in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return self.loader.construct_object(node)

    def _mapping(self, node: yaml.MappingNode, path: Key) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, child in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise InputError(f"{self.source}:{line}: a key must be a plain word")
            inner = (*path, key.value)
            if key.value in values:
                first = self.lines[inner]
                raise InputError(
                    f"{self.source}:{line}: {'.'.join(map(str, inner))} is given twice; first in line {first}"
                )
            self.lines[inner] = line
            values[key.value] = self.value(child, inner)
        return values
