"""What passes between the process that tests and the process under test: plain values, and handles for all else.

Runs in both, inside their sandboxes; standard library only. A value is plain when it is exactly of a plain type; one of a
subclass is sent as its plain base, read with the base's own methods, so that an overridden `__eq__` or `__iter__` stays
behind. A message is four bytes of length and JSON. Imports are few, since both processes start anew for each answer.
"""

# Runs in the sandbox, by whichever Python that has.
# ruff: noqa: B905
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, check-untyped-defs=False

import binascii
import collections
import json
import math
import sys

LIMIT = 8 << 20
_LIBRARY = {"Decimal": "decimal", "Fraction": "fractions", **dict.fromkeys(("date", "datetime", "time", "timedelta"), "datetime")}  # fmt: skip
DEPTH = 200


class Gone(Exception):
    """The other process has ended."""


class NotPlain(Exception):
    """A value that cannot be sent."""


def send(stream, message):
    data = json.dumps(message).encode()
    if len(data) > LIMIT:
        raise NotPlain("the value is too large")
    try:
        stream.write(len(data).to_bytes(4, "big") + data)
        stream.flush()
    except OSError as error:
        raise Gone from error


def receive(stream):
    try:
        head = stream.read(4)
        if len(head) < 4:
            raise Gone
        length = int.from_bytes(head, "big")
        data = stream.read(length) if length <= LIMIT else b""
    except OSError as error:
        raise Gone from error
    if len(data) < length:
        raise Gone
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Gone from error


def encode(value, other, depth=0):
    """JSON for a value; `other(value)` gives that for what is not plain."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if depth > DEPTH:
        raise NotPlain("the value is nested too deeply")
    if isinstance(value, int) and not isinstance(value, bool):
        plain = int.__index__(value)
        return plain if -(2**53) < plain < 2**53 else {"t": "int", "v": hex(plain)}
    if isinstance(value, float):
        plain = float.__float__(value)
        return plain if math.isfinite(plain) else {"t": "float", "v": float.__repr__(plain)}
    if isinstance(value, str):
        return str.__str__(value) + ""
    for base, tag in (
        (list, "list"),
        (tuple, "tuple"),
        (set, "set"),
        (frozenset, "frozenset"),
        (collections.deque, "deque"),
    ):
        if isinstance(value, base):
            return {"t": tag, "v": [encode(item, other, depth + 1) for item in base.__iter__(value)]}
    if isinstance(value, dict):
        pairs = [[encode(key, other, depth + 1), encode(item, other, depth + 1)] for key, item in dict.items(value)]
        return {"t": "dict", "v": pairs}
    if kind in (bytes, bytearray):
        return {"t": kind.__name__, "v": binascii.b2a_base64(value, newline=False).decode()}
    if kind is complex:
        return {"t": "complex", "v": [repr(value.real), repr(value.imag)]}
    if kind is range:
        return {"t": "range", "v": [value.start, value.stop, value.step]}
    name = kind.__name__
    if kind is _library(name):
        if name in ("Decimal", "Fraction"):
            return {"t": name, "v": kind.__str__(value)}
        return {
            "t": name,
            "v": [value.days, value.seconds, value.microseconds] if name == "timedelta" else value.isoformat(),
        }
    return other(value)


def _library(name):
    """A plain type of the standard library by name, where its module is loaded: else no value can be of it."""
    module = sys.modules.get(_LIBRARY.get(name, ""))
    return getattr(module, name, None) if module else None


def _load(name):
    return getattr(__import__(_LIBRARY[name]), name)


_BUILT = {
    "int": lambda v: int(v, 16),
    "float": float,
    "bytes": binascii.a2b_base64,
    "bytearray": lambda v: bytearray(binascii.a2b_base64(v)),
    "complex": lambda v: complex(float(v[0]), float(v[1])),
    "range": lambda v: range(*v),
    "Decimal": lambda v: _load("Decimal")(v),
    "Fraction": lambda v: _load("Fraction")(v),
    "date": lambda v: _load("date").fromisoformat(v),
    "datetime": lambda v: _load("datetime").fromisoformat(v),
    "time": lambda v: _load("time").fromisoformat(v),
    "timedelta": lambda v: _load("timedelta")(*v),
}
_GROUPED = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "deque": collections.deque}


def decode(message, other):
    """The value; `other(message)` for a handle."""
    if not isinstance(message, dict):
        return message
    tag, inner = message.get("t"), message.get("v")
    if tag in _GROUPED:
        return _GROUPED[tag](decode(item, other) for item in inner)
    if tag == "dict":
        return {decode(key, other): decode(item, other) for key, item in inner}
    if tag in _BUILT:
        return _BUILT[tag](inner)
    return other(message)


def renew(old, new):
    """Give a mutable container the content that the other side left in its copy."""
    if type(old) is not type(new) or old is new:
        return
    if isinstance(old, list):
        for ours, theirs in zip(old, new):
            renew(ours, theirs)
        old[:] = [ours if ours is theirs or _same_container(ours, theirs) else theirs for ours, theirs in zip(old, new)] + new[len(old) :]  # fmt: skip
    elif isinstance(old, dict):
        kept = {key: old[key] for key in new if key in old and _same_container(old[key], new[key])}
        for key, item in kept.items():
            renew(item, new[key])
        old.clear()
        old.update({key: kept.get(key, item) for key, item in new.items()})
    elif isinstance(old, (set, collections.deque)):
        old.clear()
        (old.update if isinstance(old, set) else old.extend)(new)
    elif isinstance(old, bytearray):
        old[:] = new


def _same_container(ours, theirs):
    return type(ours) is type(theirs) and isinstance(ours, (list, dict, set, bytearray, collections.deque))
