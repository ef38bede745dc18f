"""JSON Schema validation, in process or, where a schema brings regular expressions, in a worker.

>>> faults({"schema": {"type": "object", "required": ["a"]}, "instance": {}})
["the value: 'a' is a required property"]
"""

import json
import re
from collections.abc import Iterator
from datetime import datetime, time
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

SHOWN = 5
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")

FORMATS = FormatChecker(("email", "ipv4", "ipv6", "date", "uuid"))


@FORMATS.checks("date-time", raises=ValueError)
def _date_time(value: object) -> bool:
    return not isinstance(value, str) or ("T" in value.upper() and datetime.fromisoformat(value).tzinfo is not None)


@FORMATS.checks("time", raises=ValueError)
def _time(value: object) -> bool:
    return not isinstance(value, str) or bool(time.fromisoformat(value))


@FORMATS.checks("uri")
def _uri(value: object) -> bool:
    return not isinstance(value, str) or _URI.fullmatch(value) is not None


def check(schema: Any) -> None:
    """ValueError where this is no schema that can be applied: wrong, or with a reference that leads nowhere or away."""
    if not isinstance(schema, dict):
        raise ValueError("a JSON Schema must be an object")
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"not a JSON Schema: {error.json_path}: {error.message}") from None
    root = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = Registry().with_resource(root.id() or "", root).crawl().resolver(base_uri=root.id() or "")
    for keyword, value in _keywords(schema):
        if keyword in ("$ref", "$dynamicRef") and isinstance(value, str):
            try:
                resolver.lookup(value)
            except Unresolvable:
                raise ValueError(f"not an applicable JSON Schema: {value!r} leads nowhere in it") from None


def has_patterns(schema: Any) -> bool:
    """Whether validating means running the schema's own regular expressions."""
    return any(keyword in ("pattern", "patternProperties") for keyword, _ in _keywords(schema))


def faults(job: dict[str, Any]) -> list[str]:
    """`{"schema", "instance"}` -> the first faults, each with where it is."""
    validator = _validator(json.dumps(job["schema"], sort_keys=True))
    found = []
    for error in validator.iter_errors(job["instance"]):
        where = ".".join(map(str, error.absolute_path)) or "the value"
        found.append(f"{where}: {error.message[:200]}")
        if len(found) == SHOWN:
            break
    return found


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Any:
    value = json.loads(schema)
    return validator_for(value, default=Draft202012Validator)(value, format_checker=FORMATS, registry=Registry())


def _keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield from value.items()
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
