"""Answers by rules."""

import json
from pathlib import Path

import pytest

from gymflow.contracts.model import ModelSpec
from gymflow.contracts.outcome import FailureKind
from gymflow.errors import InputError
from gymflow.models import ModelError, ModelRequest
from gymflow.models.dialects import function_call, message
from gymflow.models.providers import make_provider
from gymflow.models.scripted import Scripted


def scripted(*rules: dict) -> Scripted:
    return Scripted(ModelSpec(provider="scripted", model="s", parameters={"rules": list(rules)}))


def asking(text: str) -> ModelRequest:
    return ModelRequest([{"role": "user", "content": text}])


async def test_the_first_rule_that_fits_answers():
    model = scripted(
        {"contains": "sum", "text": "a sum"},
        {"matches": r"(\d+) plus zero", "text": r"Answer: \1"},
        {"text": "I do not know."},
    )
    texts = [(await model.complete(asking(text))).output for text in ("a sum", "7 plus zero", "x")]
    assert texts == [[message("a sum")], [message("Answer: 7")], [message("I do not know.")]]


async def test_a_tool_conversation_goes_by_turns():
    model = scripted(
        {"turn": 0, "tool_calls": [{"name": "add", "arguments": {"a": 1}}]},
        {"turn": 1, "matches": "(.*)", "text": r"\1"},
    )
    request = asking("q")
    first = await model.complete(request)
    assert (first.finish_reason, first.output) == ("tool_calls", [function_call("call_0_0", "add", '{"a":1}')])
    output = {"type": "function_call_output", "call_id": "call_0_0", "output": "3"}
    assert (await model.complete(ModelRequest([*request.input, *first.output, output]))).output == [message("3")]


async def test_errors_are_scripted_too_and_may_pass():
    model = scripted({"error": {"status": 429, "kind": "model_rate_limited"}, "times": 1}, {"text": "ok"})
    with pytest.raises(ModelError) as error:
        await model.complete(asking("q"))
    assert (error.value.kind, error.value.retryable) == (FailureKind.MODEL_RATE_LIMITED, True)
    assert (await model.complete(asking("q"))).output == [message("ok")]


async def test_a_script_without_a_fitting_rule_says_which_turn_it_lacks():
    with pytest.raises(ModelError, match="no rule of the script fits turn 0 after 'q'"):
        await scripted({"turn": 5, "text": "x"}).complete(asking("q"))


def test_the_identity_follows_the_rules():
    assert scripted({"text": "a"}).identity() != scripted({"text": "b"}).identity()
    assert scripted({"text": "a"}).identity().pinned


def test_a_script_is_read_from_a_file_and_its_faults_are_named(tmp_path: Path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"rules": [{"text": "a"}]}))
    spec = ModelSpec(provider="scripted", model="s", parameters={"script": str(script)})
    assert isinstance(make_provider(spec), Scripted)
    script.write_text(json.dumps([{"texts": "a"}]))
    with pytest.raises(InputError, match=r"script\.json: rule 0\.texts"):
        make_provider(spec)
    with pytest.raises(InputError, match="cannot be read"):
        make_provider(ModelSpec(provider="scripted", parameters={"script": str(tmp_path / "none")}))
    with pytest.raises(InputError, match="not a regular expression"):
        scripted({"matches": "("})


def test_an_unknown_provider_is_answered_with_the_nearest():
    with pytest.raises(InputError, match="did you mean embedded"):
        make_provider(ModelSpec(provider="embeded"))
