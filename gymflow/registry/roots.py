"""Where plugins come from: what is shipped, the user's folders, and installed packages."""

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import Literal

from gymflow import user_roots
from gymflow.errors import InputError
from gymflow.paths import shipped

Kind = Literal["environments", "harnesses", "verifiers"]
KINDS: tuple[Kind, ...] = ("environments", "harnesses", "verifiers")
SHIPPED = "gymflow"
MANIFEST = "environment.yaml"


@dataclass(frozen=True, slots=True)
class Found:
    """A component by name, before anything of it was imported. `place` is the folder of an environment, the file of a
    harness or verifier; `module` the name it is imported by (for an environment: its package), `attribute` the class where
    an entry point names one."""

    kind: Kind
    name: str
    root: str
    place: Path
    module: str
    attribute: str | None = None

    @property
    def qualified(self) -> str:
        """`root:name`, which is never ambiguous."""
        return f"{self.root}:{self.name}"


def discover(kind: Kind, search_dirs: Iterable[Path]) -> list[Found]:
    """All components of a kind, by name and then root. Roots that lack the kind's folder add nothing."""
    found = list(_in_folder(kind, SHIPPED, shipped(kind), f"gymflow.{kind}"))
    for name, folder in _named(search_dirs):
        found += _in_folder(kind, name, folder / kind, f"{user_roots.mount(folder)}.{kind}")
    found += _installed(kind)
    return sorted(found, key=lambda one: (one.name, one.root))


def search_path(search_dirs: Iterable[Path | str]) -> list[Path]:
    """The given roots, then those of `GYMFLOW_PATH`, each once. InputError for one that is no folder."""
    unique: dict[Path, None] = {}
    configured = user_roots.configured()
    for folder in [*map(Path, search_dirs), *configured]:
        if not folder.is_dir():
            origin = f" (from {user_roots.VARIABLE})" if folder in configured else ""
            holds = ", ".join(f"{kind}/" for kind in KINDS)
            raise InputError(f"{folder}{origin}: no such folder; a plugin root holds {holds}")
        unique[folder.resolve()] = None
    return list(unique)


def _named(search_dirs: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Roots are called like their folders; a second one of the same name gets as much of its path as tells it apart."""
    taken = {SHIPPED}
    for folder in search_dirs:
        parts = folder.parts[1:] or ("root",)
        name = next(
            (label for n in range(1, len(parts) + 1) if (label := "/".join(parts[-n:])) not in taken), str(folder)
        )
        taken.add(name)
        yield name, folder


def _in_folder(kind: Kind, root: str, folder: Path, package: str) -> Iterator[Found]:
    if not folder.is_dir():
        return
    for place in sorted(folder.iterdir()):
        if place.name.startswith(("_", ".")):
            continue
        if kind == "environments" and (place / MANIFEST).is_file():
            yield Found(kind, place.name, root, place, f"{package}.{place.name}")
        elif kind != "environments" and place.suffix == ".py":
            yield Found(kind, place.stem, root, place, f"{package}.{place.stem}")
        elif kind != "environments" and (place / "__init__.py").is_file():
            yield Found(kind, place.name, root, place / "__init__.py", f"{package}.{place.name}")


def _installed(kind: Kind) -> Iterator[Found]:
    """Entry points of the group `gymflow.<kind>`; the root is the distribution's name."""
    searched = tuple((entry, _modified(entry)) for entry in sys.path)
    for point in _entry_points(f"gymflow.{kind}", searched):
        try:
            spec = importlib.util.find_spec(point.module)
        except ImportError:
            spec = None
        origin = Path(spec.origin) if spec and spec.origin else None
        if origin is None and spec and spec.submodule_search_locations:
            origin = Path(next(iter(spec.submodule_search_locations))) / "__init__.py"
        place = origin if origin is not None else Path(point.module)
        root = point.dist.name if point.dist else point.module.partition(".")[0]
        yield Found(
            kind,
            point.name,
            root,
            place.parent if kind == "environments" else place,
            point.module,
            point.attr or None,
        )


@lru_cache(maxsize=len(KINDS))
def _entry_points(group: str, searched: tuple[tuple[str, int], ...]) -> EntryPoints:
    # Reads a file of every installed distribution; installing one changes the folder that it is put into.
    return entry_points(group=group)


def _modified(entry: str) -> int:
    try:
        return Path(entry).stat().st_mtime_ns
    except OSError:
        return 0
