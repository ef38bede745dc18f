"""Secrets are resolved late, and never stored or printed."""

import json
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymflow.contracts.model import ModelSpec
from gymflow.errors import InputError
from gymflow.secrets import Redactor, is_secret_name, mask, resolve, resolve_key, written_out

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases/reported_faults.jsonl").read_text().splitlines()]


def case(name: str) -> dict:
    return next(row for row in CASES if row["id"] == name)


def test_references_are_resolved_from_the_environment_and_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("MODEL_KEY", "value-1")
    (tmp_path / "key").write_text("value-2\n")
    assert resolve("a ${env:MODEL_KEY} b", "f") == "a value-1 b"
    assert resolve_key(f"${{file:{tmp_path / 'key'}}}", "f") == "value-2"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${env:ABSENT_KEY}", "model 'm', api_key .*the environment variable ABSENT_KEY is not set"),
        ("${file:/nowhere/key}", "/nowhere/key cannot be read"),
        ("${vault:x}", "not a kind of secret; there are .*env"),
        ("sk-written-out", "never written into a configuration"),
    ],
)
def test_a_reference_that_cannot_be_resolved_says_what_to_do(text: str, words: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ABSENT_KEY", raising=False)
    with pytest.raises(InputError, match=words):
        resolve_key(text, "model 'm', api_key")


def test_masking_goes_by_the_meaning_of_a_name():
    config = case("se-secret-names")["input"]["config"]
    assert mask(config) == {
        "db_password": "***",
        "client_secret": "***",
        "aws_credential": "***",
        "dsn": "postgres://u:***@h/db",
        "max_tokens": 100,
        "tokenizer": "x",
    }


def test_masking_keeps_references_and_harmless_names():
    spec = ModelSpec(
        api_key="${env:KEY}", base_url="https://user:hunter2@host/v1", parameters={"headers": {"X-Api-Key": "v"}}
    )
    masked = mask(spec)
    assert masked["api_key"] == "${env:KEY}"
    assert masked["base_url"] == "https://user:***@host/v1"
    assert masked["parameters"]["headers"]["X-Api-Key"] == "***"
    assert masked["sampling"]["max_output_tokens"] is None


@pytest.mark.parametrize(
    "name", ["max_output_tokens", "tokenizer", "prompt_tokens", "token_ids", "keyboard", "monkey", "secretary"]
)
def test_names_that_only_look_like_secrets(name: str):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["api_key", "apiKey", "X-API-Key", "HF_TOKEN", "Authorization", "AWS_ACCESS_KEY_ID", "set-cookie"]
)
def test_names_of_secrets(name: str):
    assert is_secret_name(name)


def test_a_judge_that_quotes_an_environment_variable_is_redacted_by_value():
    fault = case("jd-rationale-secret")["input"]
    redactor = Redactor.of(environ=fault["env"])
    assert redactor.values(fault["judge_reply"]) == "It printed NGC_CLI_API_KEY=***. GRADE: I"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer ***"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic ***"),
        ("GET https://h/v1?api_key=abc123&x=1", "GET https://h/v1?api_key=***&x=1"),
        ("x-api-key: abcdefgh12", "x-api-key: ***"),
        ("Incorrect API key provided: sk-proj-AbCdEfGhIjKlMnOpQrSt", "Incorrect API key provided: ***"),
        ("the risk-adjusted task-oriented desk-bound-to-nothing-in-particular", None),
        ("a plain sentence about tokens and keys = values", None),
    ],
)
def test_what_is_shaped_like_a_secret_is_removed_from_messages(text: str, expected: str | None):
    assert Redactor().text(text) == (text if expected is None else expected)


def test_evidence_is_only_changed_where_it_holds_a_known_value():
    redactor = Redactor(["topsecret42"])
    evidence = [{"type": "message", "content": [{"type": "output_text", "text": "https://u:p@h and topsecret42"}]}]
    assert redactor.json(evidence)[0]["content"][0]["text"] == "https://u:p@h and ***"
    untouched = [{"text": "https://u:p@h"}]
    assert redactor.json(untouched) is untouched


def test_common_words_in_the_environment_are_not_taken_for_secrets():
    assert Redactor.of(environ={"POSTGRES_PASSWORD": "postgres"}).values("use postgres") == "use postgres"


@settings(max_examples=50, deadline=None)
@given(secret=st.text(min_size=6).filter(lambda text: "*" not in text), before=st.text(), after=st.text())
def test_no_known_value_survives_in_json(secret: str, before: str, after: str):
    try:
        secret.encode()
        orjson.dumps([before, after])
    except (UnicodeEncodeError, orjson.JSONEncodeError):
        return
    redacted = Redactor([secret]).json({"a": [before + secret + after]})
    assert secret not in redacted["a"][0].replace("***", "\0")


@pytest.mark.parametrize(
    "name",
    ["Ocp-Apim-Subscription-Key", "X-Functions-Key", "X-Auth", "X-Portkey-Virtual-Key", "Helicone-Auth", "X-Api-Key"],
)
def test_a_header_may_hold_a_key_under_any_name(name):
    spec = ModelSpec(model="m", base_url="http://h/v1", parameters={"headers": {name: "plain-words"}})
    assert mask(spec)["parameters"]["headers"] == {name: "***"}
    assert written_out(spec) == [f"parameters.headers.{name}"]
    named = spec.model_copy(update={"parameters": {"headers": {name: "Bearer ${env:KEY}"}}})
    assert written_out(named) == []


def test_a_header_with_a_random_value_holds_a_key_and_one_with_words_does_not():
    known = {
        "anthropic-beta": "interleaved-thinking-2025-05-14,context-1m-2025-08-07",
        "User-Agent": "gymflow/1.0 (nightly 20260101)",
        "OpenAI-Organization": "org-a1b2c3d4e5f6g7h8i9j0",
        "X-Request-Id": "0f8fad5bd9cb469fa16570867728950e",
        "X-Auth-Type": "bearer",
    }
    headers = {**known, "X-Whatever": "a1b2c3d4e5f6g7h8i9j0"}
    assert mask({"headers": headers})["headers"] == {**known, "X-Whatever": "***"}
    assert mask({"answer_key": "B", "sort_key": "a1b2c3d4e5f6g7h8i9j0"})["answer_key"] == "B"
