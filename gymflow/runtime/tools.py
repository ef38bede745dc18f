"""From what a model wrote as a tool call to arguments that a session can be given."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import orjson

from gymflow.canonical import canonical_json

MAX_SHOWN = 200


@dataclass(slots=True)
class Parsed:
    """Either arguments, or why the tool must not be called; the error is what the model gets to see."""

    arguments: dict[str, Any] | None
    status: Literal["ok", "malformed", "unknown_tool"] = "ok"
    error: str = ""


def parse_call(name: str, arguments: str | None, tools: dict[str, dict[str, Any]]) -> Parsed:
    """Check one call against the tools on offer.

    Empty text and `null` stand for no arguments. Anything that is not a JSON object, lacks a required argument or does not
    fit the tool's schema is answered with an error; the other calls of the same turn still run.
    """
    if name not in tools:
        known = ", ".join(sorted(tools)) or "none"
        return Parsed(None, "unknown_tool", f"Error: there is no tool {name!r}. Tools: {known}")
    text = (arguments or "").strip()
    try:
        value = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError as error:
        return Parsed(None, "malformed", f"Error: the arguments are not valid JSON: {error}. Got: {text[:MAX_SHOWN]}")
    if value is None:
        value = {}
    if not isinstance(value, dict):
        return Parsed(None, "malformed", f"Error: the arguments must be a JSON object, not {text[:MAX_SHOWN]}")
    schema = tools[name].get("parameters")
    if schema:
        fault = _schema_fault(canonical_json(schema), value)
        if fault:
            return Parsed(None, "malformed", f"Error: {fault}")
    return Parsed(value)


@lru_cache(maxsize=1024)
def _validator(schema: bytes) -> Any:
    from jsonschema.validators import validator_for

    loaded = orjson.loads(schema)
    return validator_for(loaded)(loaded)


def _schema_fault(schema: bytes, value: dict[str, Any]) -> str | None:
    faults = sorted(_validator(schema).iter_errors(value), key=lambda fault: list(map(str, fault.absolute_path)))
    if not faults:
        return None
    where = ".".join(str(part) for part in faults[0].absolute_path)
    return f"argument {where!r}: {faults[0].message[:MAX_SHOWN]}" if where else faults[0].message[:MAX_SHOWN]
