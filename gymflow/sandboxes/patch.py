"""What changed between two states of a folder, as a unified diff that `patch` and `git apply` read."""

import difflib
from collections.abc import Mapping

MAX_LINES = 20_000
"""Files longer than this are replaced as a whole: finding the shortest difference takes quadratic time."""


def diff(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bytes:
    r"""Files by path, sorted. Text keeps its bytes (line ends, missing last newline); a binary file is only named.

    >>> print(diff({"f": b"x\n"}, {"f": b"y\n"}).decode(), end="")
    --- a/f
    +++ b/f
    @@ -1 +1 @@
    -x
    +y
    """
    parts: list[bytes] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old != new:
            parts += _file(path, old, new)
    return b"".join(parts)


def lines(content: bytes) -> list[bytes]:
    """Lines with their ends; only a line feed ends one."""
    found = [line + b"\n" for line in content.split(b"\n")]
    found[-1] = found[-1][:-1]
    return found if found[-1] else found[:-1]


def _file(path: str, old: bytes | None, new: bytes | None) -> list[bytes]:
    name = path.encode("utf-8", "surrogateescape")
    source = b"/dev/null" if old is None else b"a/" + name
    target = b"/dev/null" if new is None else b"b/" + name
    if b"\0" in (old or b"") + (new or b""):
        return [b"Binary files " + source + b" and " + target + b" differ\n"]
    left, right = lines(old or b""), lines(new or b"")
    parts = [b"--- " + source + b"\n", b"+++ " + target + b"\n"]
    for hunk in _hunks(left, right):
        (_, first, _, start, _), (_, _, last, _, end) = hunk[0], hunk[-1]
        parts.append(b"@@ -%b +%b @@\n" % (_range(first, last), _range(start, end)))
        for tag, i1, i2, j1, j2 in hunk:
            if tag == "equal":
                parts += [b" " + _ended(line) for line in left[i1:i2]]
            else:
                parts += [b"-" + _ended(line) for line in left[i1:i2]]
                parts += [b"+" + _ended(line) for line in right[j1:j2]]
    return parts


def _hunks(left: list[bytes], right: list[bytes]) -> list[list[tuple[str, int, int, int, int]]]:
    if max(len(left), len(right)) > MAX_LINES:
        return [[("replace", 0, len(left), 0, len(right))]]
    return list(difflib.SequenceMatcher(None, left, right).get_grouped_opcodes(3))


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"


def _range(start: int, stop: int) -> bytes:
    count = stop - start
    if count == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + 1 if count else start, count)
