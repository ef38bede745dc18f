"""Tool calls as models write them: what reaches the tool, and what the model is told instead."""

import pytest

from gymflow.runtime.tools import parse_call
from tests.support.cases import fault

OPTIONAL = {"look": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}
REQUIRED = {"look": {"name": "look", "parameters": {**OPTIONAL["look"]["parameters"], "required": ["at"]}}}


@pytest.mark.parametrize("arguments", fault("mc-tool-args-not-object")["arguments"])
def test_only_an_object_reaches_the_tool(arguments: str) -> None:
    optional, required = parse_call("look", arguments, OPTIONAL), parse_call("look", arguments, REQUIRED)
    assert required.arguments is None and required.status == "malformed"
    if arguments in ("", "null"):  # none given, which is fine where none is needed
        assert optional.arguments == {} and "'at' is a required property" in required.error
    else:
        assert optional.arguments is None and "must be a JSON object" in optional.error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"at": "x"', "not valid JSON"),
        ('{"at": 3}', "argument 'at': 3 is not of type 'string'"),
        ("{'at': 'x'}", "not valid JSON"),
    ],
)
def test_what_does_not_fit_is_told_to_the_model(arguments: str, words: str) -> None:
    parsed = parse_call("look", arguments, OPTIONAL)
    assert parsed.arguments is None and parsed.status == "malformed" and words in parsed.error


def test_an_unknown_tool_is_answered_with_those_there_are() -> None:
    asked = fault("mc-unknown-tool")["tool_call"]
    parsed = parse_call(asked["name"], asked["arguments"], OPTIONAL | {"go": {"name": "go"}})
    assert (parsed.arguments, parsed.status) == (None, "unknown_tool")
    assert parsed.error == "Error: there is no tool 'nope'. Tools: go, look"
