"""Odd values: one treatment each, announced by a flag."""

import json
import math
from typing import Any

import duckdb
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from gymflow.store import encoding


class Model(BaseModel):
    value: dict[str, Any]


def test_plain_values_have_no_flags() -> None:
    value = {"a": [1, 2.5, None, True, "é𝛼 \u2028"], "b": {"c": 2**63}}
    assert encoding.dumps(value) == (orjson.dumps(value), [])


@pytest.mark.parametrize("text", ["abc \ud835 def", "\udc00", "\udc00\ud835"])
def test_io_lone_surrogate(text: str) -> None:
    written, flags = encoding.dumps(Model(value={"text": text}))
    assert flags == ["surrogate"]
    expected = text.replace("\ud835", "\ufffd").replace("\udc00", "\ufffd")
    assert orjson.loads(written)["value"]["text"] == expected
    assert duckdb.execute("select (?::json)->>'$.value.text'", [written.decode()]).fetchall() == [(expected,)]


def test_halves_of_a_pair_in_two_code_units_are_joined() -> None:
    assert orjson.loads(encoding.dumps({"text": "\ud835\udefc"})[0]) == {"text": "𝛼"}


def test_io_surrogate_in_key() -> None:
    written, flags = encoding.dumps(Model(value={"\udc00k": 1}))
    assert (orjson.loads(written), flags) == ({"value": {"\ufffdk": 1}}, ["surrogate"])


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 18446744073709551617, 10**400])
def test_integers_beyond_64_bit_stay_exact(number: int) -> None:
    for value in ({"n": number}, {"n": [1, number]}, {"n": [0.5, number]}):
        written, flags = encoding.dumps(value)
        assert flags == ["big_integer"]
        assert encoding.loads(written, flags) == value


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_become_null(number: float) -> None:
    for value in ({"n": number}, {"n": [1.0, number]}, {"n": [None, number]}, {"n": [number, -number]}):
        written, flags = encoding.dumps(value)
        assert flags == ["non_finite"]
        assert b"NaN" not in written and b"Inf" not in written
        assert not any(isinstance(item, float) and not math.isfinite(item) for item in json.loads(written))


def test_long_strings_become_artifacts_and_come_back() -> None:
    long = "é" * (encoding.VALUE_LIMIT // 2 + 1)
    artifacts: encoding.Artifacts = {}
    written, flags = encoding.dumps({"short": "s", "long": [long]}, artifacts)
    assert flags == ["artifact"] and len(written) < 300
    assert encoding.resolve(orjson.loads(written), artifacts.__getitem__) == {"short": "s", "long": [long]}


def test_text_that_looks_like_an_artifact_is_not_taken_for_one() -> None:
    forged = encoding.MARK + "a" * 64
    artifacts: encoding.Artifacts = {}
    written, flags = encoding.dumps({"text": forged}, artifacts)
    assert flags == ["artifact"]
    assert encoding.resolve(orjson.loads(written), artifacts.__getitem__) == {"text": forged}


def test_nesting_is_bounded() -> None:
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    written, flags = encoding.dumps({"deep": deep})
    assert flags == ["too_deep"]
    assert json.loads(written)


def test_what_has_no_json_form_is_refused() -> None:
    with pytest.raises(TypeError, match="not a JSON value"):
        encoding.dumps({"a": object()})


@given(st.text(st.characters()))
def test_repaired_text_can_be_encoded(text: str) -> None:
    repaired = encoding.repair(text)
    assert repaired.encode().decode() == repaired
    assert encoding.repair(repaired) == repaired
