"""Plugin roots of users as importable packages.

A root at some path is the package `gymflow_ext.<digest of the path>`, so its modules have one name in every process: classes
from it can be pickled, and `session.py` can import `tasks.py` beside it with a relative import. A child process
finds the roots again through `GYMFLOW_PATH`. Only the standard library is imported here: `import gymflow` installs the finder.
"""

import hashlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

PACKAGE = "gymflow_ext"
VARIABLE = "GYMFLOW_PATH"

_mounted: dict[str, Path] = {}


def configured() -> list[Path]:
    """The roots that `GYMFLOW_PATH` names, in its order."""
    return [Path(part) for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]


def mount(folder: Path) -> str:
    """Make a folder importable; returns the name of its package."""
    folder = folder.resolve()
    key = "r" + hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    _mounted[key] = folder
    return f"{PACKAGE}.{key}"


class _Finder(importlib.abc.MetaPathFinder):
    """Knows the package itself and the mounted roots; what lies below is found by the ordinary path finder."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        parent, _, key = fullname.rpartition(".")
        if fullname == PACKAGE:
            locations: list[str] = []
        elif parent == PACKAGE:
            if key not in _mounted:
                for folder in configured():
                    mount(folder)
            if key not in _mounted:
                return None
            locations = [str(_mounted[key])]
        else:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = locations
        return spec


def install() -> None:
    """Put the finder in place, once."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
