"""The registry: every component by name, with its code, its digest and a summary."""

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from gymflow import user_roots
from gymflow.contracts.environment import Manifest
from gymflow.documents import Document, load_document
from gymflow.environments import Session
from gymflow.errors import InputError
from gymflow.harnesses import Harness
from gymflow.registry import digests, loading, summaries
from gymflow.registry.roots import MANIFEST, Found, Kind, discover, search_path
from gymflow.registry.summaries import Summary
from gymflow.suggest import did_you_mean
from gymflow.verifiers import Verifier

SINGULAR: dict[Kind, str] = {"environments": "environment", "harnesses": "harness", "verifiers": "verifier"}


@dataclass(frozen=True, slots=True)
class EnvironmentEntry:
    """An environment: its manifest as written, its folder, and the package that its modules are imported under."""

    name: str
    root: str
    folder: Path
    package: str
    manifest: Manifest
    document: Document = field(repr=False, compare=False)

    @property
    def manifest_file(self) -> Path:
        """`environment.yaml`."""
        return self.folder / MANIFEST


class Registry:
    """Components of the shipped roots, of `search_dirs`, of `GYMFLOW_PATH`, and of installed packages.

    Names may be qualified (`root:name`), which is required where two roots have the same one. An environment may also be the
    path of its folder, and its verifier `./verifier.py`, a file in that folder.
    """

    def __init__(self, search_dirs: Iterable[Path | str] = ()) -> None:
        self.search_dirs: list[Path] = search_path(search_dirs)
        self._found = cache(self._discover)
        self._entry = cache(self._load_environment)

    # Finding

    def found(self, kind: Kind) -> list[Found]:
        """All components of a kind, nothing imported."""
        return self._found(kind)

    def find(self, kind: Kind, name: str) -> Found:
        """One component by its plain or qualified name. InputError with the nearest name, or with both places."""
        known = self.found(kind)
        matches = [one for one in known if name in (one.name, one.qualified)]
        if len(matches) == 1:
            return matches[0]
        singular = SINGULAR[kind]
        if matches:
            places = "\n".join(f"  {one.qualified}  {one.place}" for one in matches)
            raise InputError(f"two roots have the {singular} {name!r}; choose one by its full name:\n{places}")
        hint = did_you_mean(name.rpartition(":")[2], [one.name for one in known])
        raise InputError(f"there is no {singular} {name!r}; {hint}")

    def _discover(self, kind: Kind) -> list[Found]:
        return discover(kind, self.search_dirs)

    # Environments

    def environment(self, name_or_path: str | Path) -> EnvironmentEntry:
        """An environment by name, `root:name`, or the path of its folder. Text with a slash is a path unless a root is called
        so; text without one is a name first, so that a folder here never takes the place of a component."""
        text = str(name_or_path)
        known = any(text in (one.name, one.qualified) for one in self.found("environments"))
        if isinstance(name_or_path, Path) or (not known and ("/" in text or (Path(text) / MANIFEST).is_file())):
            return self._entry(self._at(Path(text)))
        return self._entry(self.find("environments", text))

    def session_class(self, entry: EnvironmentEntry) -> type[Session]:
        """The environment's session class; without one, the stateless `Session`."""
        if entry.manifest.session is None:
            return Session
        value = loading.load_attribute(entry.package, entry.manifest.session, entry.manifest_file, "session")
        if not (inspect.isclass(value) and issubclass(value, Session)):
            raise InputError(f"{entry.manifest_file}: session: {entry.manifest.session} is not a Session subclass")
        return value

    def environment_digest(self, entry: EnvironmentEntry, manifest: Manifest | None = None) -> str:
        """Digest of an environment's code, with the manifest as merged for a run."""
        return digests.environment_digest(entry.folder, manifest or entry.manifest)

    def _at(self, folder: Path) -> Found:
        folder = folder.resolve()
        for one in self.found("environments"):
            if one.place.resolve() == folder:
                return one
        if not (folder / MANIFEST).is_file():
            what = f"has no {MANIFEST}" if folder.is_dir() else "does not exist"
            raise InputError(f"{folder} {what}; `gym env init NAME` makes an environment")
        package = f"{user_roots.mount(folder.parent)}.{folder.name}"
        return Found("environments", folder.name, str(folder.parent), folder, package)

    def _load_environment(self, found: Found) -> EnvironmentEntry:
        document = load_document(found.place / MANIFEST)
        manifest = document.validated(Manifest)
        if manifest.name != found.name:
            where = document.where(("name",))
            raise InputError(f"{where}: name: {manifest.name!r} must be what the environment is called: {found.name!r}")
        return EnvironmentEntry(found.name, found.root, found.place, found.module, manifest, document)

    # Harnesses and verifiers

    def harness_class(self, name: str) -> type[Harness]:
        """A harness's class."""
        return loading.load_class(self.find("harnesses", name), Harness)

    def harness_digest(self, name: str) -> str:
        """Digest of a harness's code."""
        return self._digest(self.find("harnesses", name), self.harness_class(name))

    def verifier_class(self, name: str, entry: EnvironmentEntry | None = None) -> type[Verifier[Any]]:
        """A verifier's class; `./file.py` is one in the folder of `entry`."""
        return loading.load_class(self._verifier(name, entry), Verifier)

    def verifier_digest(self, name: str, entry: EnvironmentEntry | None = None) -> str:
        """Digest of a verifier's code."""
        return self._digest(self._verifier(name, entry), self.verifier_class(name, entry))

    def verifier_code(self, name: str, entry: EnvironmentEntry | None = None) -> dict[str, Any]:
        """The code that a verifier's digest is over: `{"files": {name: text}, "distributions": {name: version}}`."""
        found, cls = self._verifier(name, entry), self.verifier_class(name, entry)
        files = digests.module_files(found.place, cls.includes)
        return {
            "files": {name: content.decode(errors="replace") for name, content in sorted(files)},
            "distributions": digests.installed_versions(cls.distributions),
        }

    def _verifier(self, name: str, entry: EnvironmentEntry | None) -> Found:
        if not name.startswith("./"):
            return self.find("verifiers", name)
        if entry is None:
            raise InputError(f"verifier {name!r} lies in an environment's folder and can only be used by it")
        place = entry.folder / name
        if place.suffix != ".py" or not place.is_file():
            raise InputError(f"{entry.document.where(('verifier', 'name'))}: verifier.name: there is no file {place}")
        return Found("verifiers", place.stem, entry.root, place, f"{entry.package}.{place.stem}")

    def _digest(self, found: Found, cls: type[Harness] | type[Verifier[Any]]) -> str:
        return digests.module_digest(found.place, cls.includes, cls.distributions)

    @cached_property
    def harness_names(self) -> frozenset[str]:
        """Plain and qualified names of all harnesses."""
        return frozenset(name for one in self.found("harnesses") for name in (one.name, one.qualified))

    # Listing: a component that cannot be loaded is listed with the reason

    def environments(self) -> list[Summary]:
        """All environments, by their manifests."""
        return summaries.environments(self)

    def benchmarks(self) -> list[Summary]:
        """The benchmarks of all environments."""
        return summaries.benchmarks(self)

    def harnesses(self) -> list[Summary]:
        """All harnesses; their modules are imported."""
        return summaries.harnesses(self)

    def verifiers(self) -> list[Summary]:
        """All verifiers; their modules are imported."""
        return summaries.verifiers(self)

    def models(self) -> list[Summary]:
        """The model providers."""
        return summaries.models()

    def sandboxes(self) -> list[Summary]:
        """The sandbox providers."""
        return summaries.sandboxes()
