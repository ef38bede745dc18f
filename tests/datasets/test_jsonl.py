"""Reading JSON Lines exactly, one line at a time."""

import ast
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymflow.datasets.jsonl import Line, parse_object, read_jsonl
from gymflow.errors import InputError
from tests.support.cases import fault


def lines_of(tmp_path: Path, content: bytes | str) -> list[Line]:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_jsonl(file))


def test_ds_bom(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, ast.literal_eval(fault("ds-bom")["bytes_repr"]))
    assert [line.value and line.value["id"] for line in lines] == [1, 2]
    assert all("\ufeff" not in key for line in lines for key in line.value or {})


def test_ds_crlf(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, ast.literal_eval(fault("ds-crlf")["bytes_repr"]))
    assert [line.value for line in lines] == [{"id": 1, "prompt": "x"}, {"id": 2, "prompt": "y"}]


def test_ds_bigint(tmp_path: Path) -> None:
    [line] = lines_of(tmp_path, fault("ds-bigint")["jsonl"])
    assert line.value is not None
    seed = line.value["metadata"]["seed"]
    assert type(seed) is int and seed == 18446744073709551617


def test_ds_mid_file_bad_line(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, fault("ds-mid-file-bad-line")["jsonl"])
    assert [(line.number, line.fault is None) for line in lines] == [(1, True), (2, False), (3, True)]
    assert "column" in (lines[1].fault or "")


def test_ds_raw_control_char(tmp_path: Path) -> None:
    first, second = lines_of(tmp_path, ast.literal_eval(fault("ds-raw-control-char")["bytes_repr"]))
    assert first.number == 1 and "control character" in (first.fault or "")
    assert second.value == {"id": 2, "prompt": "ok"}


def test_ds_deep_nesting(tmp_path: Path) -> None:
    deep = eval(fault("ds-deep-nesting")["jsonl_python"], {"__builtins__": {}})
    first, second = lines_of(tmp_path, deep + '{"id": 2}\n')
    assert first.fault == "nested 2001 levels deep; at most 128 are read"
    assert second.value == {"id": 2}


def test_nesting_is_bounded_however_deep_it_goes(tmp_path: Path) -> None:
    [line] = lines_of(tmp_path, '{"x":' + "[" * 1_000_000 + "]" * 1_000_000 + "}")
    assert "nested 1000001 levels deep" in (line.fault or "")


def test_brackets_in_text_are_not_nesting() -> None:
    assert parse_object(json.dumps({"x": "[{" * 500}).encode()) == {"x": "[{" * 500}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"a": 1, "a": 2}', "'a' occurs twice"),
        (b'{"a" : 1, "a" : 2}', "'a' occurs twice"),
        (b'{"a":{"b":1,"b":1},"c":"\\":"}', "'b' occurs twice"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": -Infinity}', "-Infinity is not JSON"),
        (b'{"a": 1e999}', "beyond what a float can hold"),
        (b'{"a": "\\ud800"}', "a lone surrogate, half of a character, in a;"),
        (b'{"a": {"b": ["x", "\\udc00!"]}}', "a lone surrogate, half of a character, in a.b.1;"),
        (b'{"\\ud800": 1}', "in a key of the row"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 8"),
        (b"[1]", "must be a JSON object, not a list"),
        (b"3", "must be a JSON object, not a number"),
        (b"null", "must be a JSON object, not null"),
        (b'{"a": 1} {"b": 2}', "not JSON: Extra data (column 10)"),
        (b'{"a": ' + b"9" * 5000 + b"}", "limit"),
    ],
)
def test_what_would_be_read_differently_elsewhere_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_object(raw)
    assert message in str(caught.value)


def test_a_paired_surrogate_is_one_character() -> None:
    assert parse_object(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


def test_blank_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    assert [line.number for line in lines_of(tmp_path, '\n{"a":1}\n  \n\n{"a":2}')] == [2, 5]


def test_a_file_that_cannot_be_read_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.jsonl: No such file"):
        list(read_jsonl(tmp_path / "none.jsonl"))


numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8"), max_size=5)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return type(right) is float and math.copysign(1, left) == math.copysign(1, right) and left == right
    return type(left) is type(right) and left == right


@settings(max_examples=60)
@given(objects, st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :\t")]))
def test_every_json_object_is_read_as_it_was_written(
    value: dict[str, Any], ascii_only: bool, marks: tuple[str, str]
) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only, separators=marks).encode()
    assert same(value, parse_object(raw))


@settings(max_examples=30)
@given(objects, objects)
def test_a_repeated_key_is_always_seen(outer: dict[str, Any], inner: dict[str, Any]) -> None:
    once = json.dumps({**outer, "twice": inner})
    with pytest.raises(ValueError, match="occurs twice"):
        parse_object((once[:-1] + ',"twice":0}').encode())


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_a_fault(raw: bytes) -> None:
    try:
        assert isinstance(parse_object(raw), dict)
    except ValueError:
        pass
