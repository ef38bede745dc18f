"""Task folders in the Harbor format, as rows for the verifier `terminal`.

    my-task/
      task.toml            difficulty, limits, time limits
      instruction.md       what the agent is asked
      environment/         Dockerfile and the files that it copies into the working directory
      solution/solve.sh    a reference, which no agent sees
      tests/test.sh        writes the reward

A Dockerfile is read as far as it says which files lie where (FROM, WORKDIR, COPY, ENV). What it would have to run needs an image:
`docker_image` in task.toml names it, and the task a provider that has images.
"""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gymflow.errors import InputError

HERE = Path(__file__).parent
IGNORED = ("FROM", "MAINTAINER", "LABEL", "CMD", "ENTRYPOINT", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK")
"""Instructions that say nothing about the files or that a sandbox decides itself."""

_SIZES = {"k": 2**-10, "m": 1.0, "g": 2**10}


def tasks(folder: str | Path) -> Iterator[dict[str, Any]]:
    """One row for each task folder below a folder (relative ones: below this environment's), by name.

    Raises InputError that names the file which is missing or cannot be read.
    """
    root = HERE / folder
    found = sorted(file.parent for file in root.glob("*/task.toml"))
    if not found:
        raise InputError(f"{root}: no folder in it has a task.toml")
    yield from map(row, found)


def row(folder: Path) -> dict[str, Any]:
    """The row of one task folder."""
    settings = _toml(folder / "task.toml")
    metadata, environment = settings.get("metadata", {}), settings.get("environment", {})
    tests = _texts(folder / "tests")
    if "test.sh" not in tests:
        raise InputError(f"{folder / 'tests'}: there is no test.sh")
    category = str(metadata.get("category", "other"))
    return {
        "task_id": folder.name,
        "instruction": _text(folder / "instruction.md").strip(),
        "sandbox": _sandbox(folder / "environment", environment),
        "tests": tests,
        "time_limit_s": float(settings.get("verifier", {}).get("timeout_sec", 600.0)),
        "tags": [category, str(metadata.get("difficulty", "medium")), f"template-{folder.name}"],
    }


def _sandbox(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    limits = {
        "cpus": settings.get("cpus"),
        "memory_mib": _mib(settings, "memory"),
        "disk_mib": _mib(settings, "storage"),
    }
    made: dict[str, Any] = {"limits": {name: value for name, value in limits.items() if value is not None}}
    if settings.get("allow_internet"):
        made["network"] = "open"
    if image := settings.get("docker_image"):
        return {"workdir": str(settings.get("workdir", "/app")), "image": image, **made}
    recipe = folder / "Dockerfile"
    if recipe.is_file():
        return {**_recipe(recipe), **made}
    return {"workdir": "/app", "files": _texts(folder), **made}


def _recipe(file: Path) -> dict[str, Any]:
    """Working directory, files and variables out of a Dockerfile."""
    workdir = "/app"
    files: dict[str, str] = {}
    env: dict[str, str] = {}
    for number, line in _instructions(file):
        name, _, rest = line.partition(" ")
        words = shlex.split(rest)
        if name.upper() == "WORKDIR":
            workdir = words[0]
        elif name.upper() == "ENV":
            env |= dict(word.split("=", 1) for word in words) if "=" in words[0] else {words[0]: " ".join(words[1:])}
        elif name.upper() in ("COPY", "ADD"):
            *sources, target = [word for word in words if not word.startswith("--")]
            for source in sources:
                files |= _copied(file.parent, source, target, workdir, f"{file}:{number}")
        elif name.upper() not in IGNORED:
            raise InputError(
                f"{file}:{number}: {name} needs an image that is built; build it and name it as `docker_image` in task.toml"
            )
    return {"workdir": workdir.rstrip("/"), "files": files, **({"env": env} if env else {})}


def _copied(folder: Path, source: str, target: str, workdir: str, where: str) -> dict[str, str]:
    """The files of one COPY by path relative to the working directory."""
    place = target if target.startswith("/") else f"{workdir}/{target}"
    place = re.sub(r"/(\./|\.$)", "/", place)
    origin = folder / source
    if origin.is_dir():
        named = {f"{place.rstrip('/')}/{name}": text for name, text in _texts(origin).items()}
    elif origin.is_file():
        into = place.endswith("/") or place.rstrip("/") == workdir.rstrip("/")
        named = {f"{place.rstrip('/')}/{origin.name}" if into else place: _text(origin)}
    else:
        raise InputError(f"{where}: there is no {source} in {folder}")
    inside = workdir.rstrip("/") + "/"
    if outside := [path for path in named if not path.startswith(inside)]:
        raise InputError(
            f"{where}: {outside[0]} lies outside of the working directory {workdir}, which the agent leaves behind"
        )
    return {path.removeprefix(inside): text for path, text in named.items()}


def _instructions(file: Path) -> Iterator[tuple[int, str]]:
    """Each instruction with the number of its first line."""
    started, held = 0, ""
    for number, line in enumerate(_text(file).splitlines(), start=1):
        if not held and (not line.strip() or line.lstrip().startswith("#")):
            continue
        started = started if held else number
        held += line.strip()
        if held.endswith("\\"):
            held = held[:-1]
            continue
        yield started, held
        held = ""


def _texts(folder: Path) -> dict[str, str]:
    """Every file below a folder by relative path, the Dockerfile left out."""
    found = sorted(file for file in folder.rglob("*") if file.is_file() and file != folder / "Dockerfile")
    return {file.relative_to(folder).as_posix(): _text(file) for file in found}


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not a text file; a task's files have to be UTF-8") from error


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(file))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: {error}") from error


def _mib(settings: dict[str, Any], name: str) -> int | None:
    """A size in MiB: `memory_mb = 2048`, or `memory = "2G"` as older tasks write it."""
    if f"{name}_mb" in settings:
        return int(settings[f"{name}_mb"])
    if name not in settings:
        return None
    size = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg])i?b?", str(settings[name]).lower())
    if size is None:
        raise InputError(f"task.toml: environment.{name}: {settings[name]!r} is no size such as 2G")
    return int(float(size[1]) * _SIZES[size[2]])
