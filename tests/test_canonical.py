import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymflow.canonical import canonical_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("bits", "text"),
    [  # RFC 8785, appendix B
        (0x0000000000000000, "0"),
        (0x8000000000000000, "0"),
        (0x0000000000000001, "5e-324"),
        (0x7FEFFFFFFFFFFFFF, "1.7976931348623157e+308"),
        (0x4340000000000000, "9007199254740992"),
        (0x4430000000000000, "295147905179352830000"),
        (0x44B52D02C7E14AF5, "9.999999999999997e+22"),
        (0x44B52D02C7E14AF6, "1e+23"),
        (0x444B1AE4D6E2EF4E, "999999999999999700000"),
        (0x444B1AE4D6E2EF50, "1e+21"),
        (0x3EB0C6F7A0B5ED8D, "0.000001"),
        (0x3EB0C6F7A0B5ED8C, "9.999999999999997e-7"),
        (0x41B3DE4355555555, "333333333.3333333"),
        (0xBECBF647612F3696, "-0.0000033333333333333333"),
    ],
)
def test_floats_are_written_as_the_rfc_says(bits, text):
    assert canonical_json(struct.unpack(">d", bits.to_bytes(8, "big"))[0]).decode() == text


def test_keys_are_in_utf16_order():
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\x80", "\u00f6"]
    written = json.loads(canonical_json(dict.fromkeys(keys, 0)))
    assert list(written) == ["\r", "1", "\x80", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@given(JSON)
def test_reading_back_loses_nothing(value):
    assert canonical_json(json.loads(canonical_json(value))) == canonical_json(value)


@given(st.lists(st.none() | st.booleans() | st.integers() | st.text(st.characters(codec=None, exclude_categories=()))))
def test_a_list_is_written_the_same_wherever_it_stands(value):
    assert canonical_json([value, {}])[1:-4] == canonical_json(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_comes_back_to_the_bit(value):
    assert float(canonical_json(value)) == value


def test_an_integer_keeps_all_its_digits():
    assert canonical_json(18446744073709551617) == b"18446744073709551617"


def test_a_lone_surrogate_is_its_escape_in_values_and_keys():
    assert canonical_json({"\udc00k": "a\ud835"}) == b'{"\\udc00k":"a\\ud835"}'


@pytest.mark.parametrize("value", [math.nan, math.inf, {1: 2}, {"a": {1, 2}}, object()])
def test_what_json_cannot_say_is_refused(value):
    with pytest.raises(ValueError):
        canonical_json(value)


def test_endless_nesting_is_refused_before_the_stack_overflows():
    value: list = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(ValueError, match="200 levels"):
        canonical_json(value)
