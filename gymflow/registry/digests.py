"""Component digests: what of a plugin can change a rollout or a verdict."""

from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gymflow import keys
from gymflow.contracts.environment import Manifest
from gymflow.errors import InputError
from gymflow.registry.roots import MANIFEST

SEEN_BY_THE_AGENT = ("session", "session_parameters", "sandbox", "offers")
"""What of a manifest can change a rollout beyond the task's own key. The manifest's other fields describe, score or choose
defaults, and editing them must not make samples unfindable."""


def environment_digest(folder: Path, manifest: Manifest) -> str:
    """Of an environment as merged for a run: its files, the manifest's part that an agent sees, its distributions."""
    left_out = {MANIFEST, manifest.fixtures}
    left_out |= {dataset.file for dataset in manifest.datasets.values() if dataset.file}
    if manifest.verifier.name.startswith("./"):
        left_out.add(manifest.verifier.name.removeprefix("./"))
    code = [
        (name, path.read_bytes())
        for path, name in _files(folder)
        if name not in left_out and not name.upper().startswith("README")
    ]
    for include in manifest.includes:
        if not (folder / include).is_dir():
            raise InputError(f"{folder / MANIFEST}: includes: there is no folder {include}")
        code += [(f"{include}/{name}", path.read_bytes()) for path, name in _files(folder / include)]
    return keys.digest(
        {
            "files": keys.files_digest(code),
            "manifest": manifest.model_dump(
                mode="json", include={*SEEN_BY_THE_AGENT, *(("collects",) if manifest.sandbox is not None else ())}
            ),
            "distributions": installed_versions(manifest.distributions),
        }
    )


def module_digest(file: Path, includes: Iterable[str], distributions: Iterable[str]) -> str:
    """Of a harness or verifier: its module, the files it includes (relative to the module), its distributions."""
    files = keys.files_digest(module_files(file, includes))
    return keys.digest({"files": files, "distributions": installed_versions(distributions)})


def module_files(file: Path, includes: Iterable[str]) -> list[tuple[str, bytes]]:
    """Name and content of a module and the files that it includes."""
    files = [(file.name, file.read_bytes())]
    if file.name == "__init__.py":
        files = [(name, path.read_bytes()) for path, name in _files(file.parent)]
    for include in includes:
        path = file.parent / include
        if path.is_dir():
            files += [(f"{include}/{name}", inner.read_bytes()) for inner, name in _files(path)]
        elif path.is_file():
            files.append((include, path.read_bytes()))
        else:
            raise InputError(f"{file}: includes {include!r}, which does not exist beside it")
    return files


def installed_versions(distributions: Iterable[str]) -> dict[str, str | None]:
    """Distribution -> installed version; None where it is missing."""
    return {name: _installed(name) for name in sorted(distributions)}


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in relative.parts):
            yield path, relative.as_posix()
