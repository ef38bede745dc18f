"""The workspace that an agent left, with everything taken out that could decide about its own verdict."""

import fnmatch
import io
import posixpath
import re
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gymflow.verifiers._code import fenced

from gymflow.sandboxes import archive
from gymflow.verifiers import Evidence

RUNNER_FILES = (
    "conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pytest.toml", ".coveragerc", "sitecustomize.py",
    "usercustomize.py", "*.pth", "*.pyc", "reward.txt", "reward.json", "junit*.xml",
)  # fmt: skip
"""Names of files that test runners and interpreters obey, or that look like a verdict: an agent's own are removed."""

RUNNER_MODULES = ("pytest", "_pytest", "unittest", "pluggy", "iniconfig", "_pytest_report")
"""Modules of the runner: one of the same name in the workspace would be imported instead."""


@dataclass
class Workspace:
    """`files`: what is judged. `reset`: what the agent made, changed or removed of what is not its to change."""

    files: dict[str, bytes]
    reset: list[str] = field(default_factory=list)


class NoWorkspace(Exception):
    """The evidence holds none; the message says what was looked for."""


def workspace_of(evidence: Evidence, base: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files that an agent left: artifact `workspace`, else the base with artifact `patch` or the answer's diff on top.

    Raises NoWorkspace, and PatchError (see `apply`).
    """
    if "workspace" in evidence.artifacts:
        return archive.read(evidence.read_artifact("workspace"))
    patch = (
        evidence.read_artifact("patch").decode("utf-8", "surrogateescape") if "patch" in evidence.artifacts else None
    )
    if patch is None:
        patch = fenced(evidence.final_text, ("diff", "patch"))
        patch = patch and patch.rstrip("\n") + "\n"
    if patch is None or not base:
        raise NoWorkspace("no `workspace` or `patch` artifact, and no diff in the answer")
    return apply(patch, base)


def guarded(
    left: Mapping[str, bytes], base: Mapping[str, bytes], tests: Mapping[str, bytes], protected: Sequence[str]
) -> Workspace:
    """What an agent left, with runner files, protected files and the folders of the hidden tests as they were at the start,
    and the hidden tests put in. A file that stands where those need a folder is gone, and so is what lies where they need a file."""
    folders = {path.split("/")[0] for path in tests if "/" in path}

    def ours(path: str) -> bool:
        in_folder = "/" in path and path.split("/")[0] in folders
        return in_folder or path in tests or _is_runner_file(path) or any(_matches(path, one) for one in protected)

    mine = {path: data for path, data in base.items() if ours(path)}
    put = {**mine, **tests}
    taken = _folders(put)
    theirs = {
        path: data
        for path, data in left.items()
        if not ours(path) and path not in taken and _folders([path]).isdisjoint(put)
    }
    reset = sorted(path for path, data in left.items() if path not in theirs and mine.get(path) != data)
    reset += sorted(path for path in mine if path not in left)
    return Workspace({**theirs, **put}, reset)


def _folders(paths: Iterable[str]) -> set[str]:
    """The folders that these paths lie in."""
    found: set[str] = set()
    for path in paths:
        while (path := posixpath.dirname(path)) and path not in found:
            found.add(path)
    return found


def rebuilt(evidence: Evidence, work: Workspace, protected: Sequence[str] = ()) -> bytes:
    """An archive of what is judged, with modes and links as the agent left them where a `workspace` artifact has them. A link
    that leads out of the workspace, or stands where a file that is judged lies, is not in it."""
    left = dict(work.files)
    needed = {*left, *_folders(left)}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as out:
        if "workspace" in evidence.artifacts:
            whole = archive.normalised(evidence.read_artifact("workspace"))
            with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
                for member in tar:
                    source = tar.extractfile(member) if member.isreg() else None
                    data = source.read() if source else b""
                    if member.isreg() and left.get(member.name) == data:
                        del left[member.name]
                        out.addfile(member, io.BytesIO(data))
                    elif not (member.isreg() or member.name in needed or _is_decisive(member.name, protected)):
                        out.addfile(member)
        for path, data in left.items():
            added = tarfile.TarInfo(path)
            added.size = len(data)
            out.addfile(added, io.BytesIO(data))
    # Links that stayed inside may lead elsewhere without what was taken out.
    return archive.normalised(buffer.getvalue())


def _is_decisive(path: str, protected: Sequence[str]) -> bool:
    return _is_runner_file(path) or any(_matches(path, pattern) for pattern in protected)


def _is_runner_file(path: str) -> bool:
    parts = path.split("/")
    if "__pycache__" in parts or parts[0] in RUNNER_MODULES or parts[0].removesuffix(".py") in RUNNER_MODULES:
        return True
    return any(fnmatch.fnmatchcase(parts[-1], pattern) for pattern in RUNNER_FILES)


def _matches(path: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(posixpath.basename(path), pattern)


class PatchError(ValueError):
    """A diff that does not apply."""


_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def apply(patch: str, base: Mapping[str, bytes]) -> dict[str, bytes]:
    """A unified diff on files of text, as `git diff` and `diff -u` write it. Raises PatchError with what does not fit.

    >>> apply("--- a/f\\n+++ b/f\\n@@ -1 +1 @@\\n-x\\n+y\\n", {"f": b"x\\n"})
    {'f': b'y\\n'}
    """
    files = dict(base)
    lines = _lines(patch)
    at = 0
    while at < len(lines):
        if not (lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")):
            at += 1
            continue
        old, new = _name(lines[at]), _name(lines[at + 1])
        at += 2
        source = _lines(files.pop(old, b"").decode("utf-8", "surrogateescape")) if old else []
        if old and old not in base:
            raise PatchError(f"{old} is not there to be patched")
        result, taken = [], 0
        while at < len(lines) and (hunk := _HUNK.match(lines[at])):
            at += 1
            start = int(hunk[1]) - (1 if hunk[2] != "0" else 0)
            before, after, at = _hunk(lines, at, int(hunk[2] or 1), int(hunk[4] or 1))
            start = _place(source, before, start, taken, old or new or "")
            result += [*source[taken:start], *after]
            taken = start + len(before)
        result += source[taken:]
        if new:
            files[archive.safe_name(new)] = "".join(result).encode("utf-8", "surrogateescape")
    if both := sorted(_folders(files).intersection(files)):
        raise PatchError(f"{both[0]} would be a file and a folder")
    return files


def _lines(text: str) -> list[str]:
    """Lines with their ends. Only a line feed ends one, as for those who write patches."""
    found = [line + "\n" for line in text.split("\n")]
    found[-1] = found[-1][:-1]
    return found if found[-1] else found[:-1]


def _hunk(lines: list[str], at: int, old: int, new: int) -> tuple[list[str], list[str], int]:
    before: list[str] = []
    after: list[str] = []
    while at < len(lines) and (len(before) < old or len(after) < new):
        kind, rest = lines[at][:1], lines[at][1:]
        if kind not in (" ", "-", "+", "\n", "\\"):
            raise PatchError(f"line {at + 1} of the diff is not part of a hunk: {lines[at]!r:.80}")
        if kind == "\n":  # an empty context line whose blank an editor has removed
            kind, rest = " ", "\n"
        if kind in " -":
            before.append(rest)
        if kind in " +":
            after.append(rest)
        at += 1
        if at < len(lines) and lines[at].startswith("\\"):  # no newline at end of file
            for side, kinds in ((before, " -"), (after, " +")):
                if kind in kinds and side:
                    side[-1] = side[-1].rstrip("\n")
            at += 1
    while (
        at == len(lines) and len(before) < old and len(after) < new
    ):  # blank lines at the end, which an answer has lost
        before.append("\n")
        after.append("\n")
    return before, after, at


def _place(source: list[str], before: list[str], wanted: int, earliest: int, name: str) -> int:
    """Where a hunk's lines stand: at their line, or at the nearest place below what is already patched."""
    places = [at for at in range(earliest, len(source) - len(before) + 1) if source[at : at + len(before)] == before]
    if not before:
        return max(earliest, min(wanted, len(source)))
    if not places:
        raise PatchError(f"a hunk does not fit {name} near line {wanted + 1}")
    return min(places, key=lambda at: abs(at - wanted))


def _name(line: str) -> str | None:
    name = line[4:].split("\t")[0].strip()
    if name == "/dev/null":
        return None
    return name[2:] if name.startswith(("a/", "b/")) else name
