"""Task folders in the Harbor format, as rows for the verifier `terminal`.

    my-task/
      task.toml            difficulty, limits, time limits
      instruction.md       what the agent is asked
      environment/         Dockerfile and the files that it copies into the working directory
      solution/solve.sh    a reference, which no agent sees
      tests/test.sh        writes the reward

A Dockerfile is read as far as it says which files lie where (FROM, WORKDIR, COPY, ENV). What it would have to run needs an image:
`docker_image` in task.toml names it, and the task a provider that has images. Nothing outside of a task's folder is read, and of what the
agent gets nothing outside of environment/. How long an agent may take is the run's to say (the harness, `sandbox.limits.wall_s`):
`timeout_sec` of [agent] is not read.
"""

import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gymflow.errors import InputError

from . import dockerfile
from .texts import text, texts

HERE = Path(__file__).parent
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
    """The row of one task folder. Raises InputError that names file and field."""
    file = folder / "task.toml"
    settings = _toml(file, folder)
    metadata, environment, verifier = (_table(settings, name, file) for name in ("metadata", "environment", "verifier"))
    if verifier.get("env"):
        raise InputError(f"{file}: verifier.env: the tests get no variables of their own here; set them in test.sh")
    tests = texts(folder / "tests", folder)
    if "test.sh" not in tests:
        raise InputError(f"{folder / 'tests'}: there is no test.sh")
    category = str(metadata.get("category", "other"))
    return {
        "task_id": folder.name,
        "instruction": text(folder / "instruction.md", folder).strip(),
        "sandbox": _sandbox(folder / "environment", environment, file),
        "tests": tests,
        "time_limit_s": _above_zero(verifier, "timeout_sec", file) or 600.0,
        "tags": [category, str(metadata.get("difficulty", "medium")), f"template-{folder.name}"],
    }


def _sandbox(folder: Path, settings: dict[str, Any], file: Path) -> dict[str, Any]:
    if settings.get("gpus"):
        raise InputError(f"{file}: environment.gpus: a sandbox has none")
    limits = {
        "cpus": _above_zero(settings, "cpus", file),
        "memory_mib": _mib(settings, "memory", file),
        "disk_mib": _mib(settings, "storage", file),
    }
    made: dict[str, Any] = {"limits": {name: value for name, value in limits.items() if value is not None}}
    if settings.get("allow_internet"):
        made["network"] = "open"
    if image := settings.get("docker_image"):
        return {"workdir": str(settings.get("workdir", "/app")), "image": str(image), **made}
    if (folder / dockerfile.NAME).exists():
        return {**dockerfile.recipe(folder), **made}
    dockerfile.refuse_modes(folder, str(folder))
    return {"workdir": "/app", "files": texts(folder, folder), **made}


def _toml(file: Path, root: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text(file, root))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: {error}") from error


def _table(settings: dict[str, Any], name: str, file: Path) -> dict[str, Any]:
    table = settings.get(name, {})
    if not isinstance(table, dict):
        raise InputError(f"{file}: {name}: {table!r} is no table; write [{name}] above its fields")
    return table


def _above_zero(settings: dict[str, Any], name: str, file: Path) -> float | None:
    value = settings.get(name)
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf
    ):
        raise InputError(f"{file}: {name}: {value!r} is no number above 0")
    return value


def _mib(settings: dict[str, Any], name: str, file: Path) -> int | None:
    """A size in MiB: `memory_mb = 2048`, or `memory = "2G"` as older tasks write it."""
    if (mib := _above_zero(settings, f"{name}_mb", file)) is not None:
        return math.ceil(mib)
    if name not in settings:
        return None
    size = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg])i?b?", str(settings[name]).lower())
    if size is None:
        raise InputError(f"{file}: environment.{name}: {settings[name]!r} is no size such as 2G")
    return max(1, int(float(size[1]) * _SIZES[size[2]]))
