"""A repository: its files as they should be, the bug that is planted into them, and the tests that only pass without it.

Each is one YAML file: `topic`, `difficulty`, `issue` (what a user reports), `files`, `bug` (passages of the files, right and wrong),
and `tests`, which no agent sees.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gymflow.sandboxes import patch

FOLDER = Path(__file__).parent / "repositories"


@dataclass(frozen=True)
class Repository:
    """One repository. `bug`: {"file", "right", "wrong"}; the right passage occurs once in its file."""

    name: str
    topic: str
    difficulty: str
    issue: str
    files: dict[str, str]
    bug: list[dict[str, str]]
    tests: dict[str, str]

    def broken(self) -> dict[str, str]:
        """The files with the bug in them: what an agent starts from."""
        files = dict(self.files)
        for change in self.bug:
            text = files[change["file"]]
            if text.count(change["right"]) != 1:
                raise ValueError(f"{self.name}: the passage {change['right']!r} is not there once")
            files[change["file"]] = text.replace(change["right"], change["wrong"])
        return files

    def solution(self) -> str:
        """The patch that takes the bug out."""
        before, after = ({path: text.encode() for path, text in one.items()} for one in (self.broken(), self.files))
        return patch.diff(before, after).decode()


@cache
def repositories() -> dict[str, Repository]:
    """All of them by name, in alphabetical order."""
    return {file.stem: _read(file) for file in sorted(FOLDER.glob("*.yaml"))}


def _read(file: Path) -> Repository:
    fields: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return Repository(name=file.stem, **fields)
