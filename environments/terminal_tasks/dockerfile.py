"""A Dockerfile as far as it says which files of its folder lie where: FROM, WORKDIR, COPY, ENV. What it would have to run, or to
set on a file, needs an image."""

import json
import posixpath
import re
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from gymflow.errors import InputError

from .texts import text, texts

NAME = "Dockerfile"
IGNORED = ("FROM", "MAINTAINER", "LABEL", "CMD", "ENTRYPOINT", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK")
"""Instructions that say nothing about the files or that a sandbox decides itself."""
FLAGS = ("--chown", "--link")
"""Of COPY and ADD, those without an effect here: every file is the sandbox user's own."""


def recipe(folder: Path) -> dict[str, Any]:
    """Working directory, files and variables as a sandbox's part. Raises InputError that names the line."""
    stated: str | None = None
    files: dict[str, str] = {}
    env: dict[str, str] = {}
    for number, line in _instructions(folder / NAME, folder):
        where = f"{folder / NAME}:{number}"
        name, _, rest = line.partition(" ")
        match name.upper():
            case "WORKDIR":
                if len(words := _words(rest, where)) != 1:
                    raise InputError(f"{where}: WORKDIR takes one path")
                stated = posixpath.normpath(posixpath.join(stated or "/", words[0]))
            case "ENV":
                env |= _variables(_words(rest, where), where)
            case "COPY" | "ADD":
                files |= _copied(folder, rest, stated or "/app", where)
            case other if other not in IGNORED:
                raise InputError(
                    f"{where}: {other} needs an image that is built; build it and name it as `docker_image` in task.toml"
                )
    workdir = stated or "/app"
    if workdir == "/":
        raise InputError(f"{folder / NAME}: the working directory is /, all of which an agent would leave behind")
    if outside := [path for path in files if not PurePosixPath(path).is_relative_to(workdir)]:
        raise InputError(
            f"{folder / NAME}: {outside[0]} lies outside of the working directory {workdir}, which the agent leaves behind"
        )
    inside = {path.removeprefix(f"{workdir}/"): content for path, content in files.items()}
    return {"workdir": workdir, "files": inside, **({"env": env} if env else {})}


def _copied(folder: Path, rest: str, workdir: str, where: str) -> dict[str, str]:
    """The files of one COPY by absolute path."""
    flags = re.match(r"(?:--\S+\s+)*", rest)
    rest, given = (rest[flags.end() :], rest[: flags.end()].split()) if flags else (rest, [])
    if unknown := [flag for flag in given if flag.partition("=")[0] not in FLAGS]:
        raise InputError(f"{where}: {unknown[0]} needs an image that is built; name it as `docker_image` in task.toml")
    words = _words(rest, where)
    if len(words) < 2:
        raise InputError(f"{where}: COPY takes what to copy and where to")
    *sources, target = words
    place = posixpath.normpath(posixpath.join(workdir, target))
    into = target.endswith(("/", "/.")) or target == "." or place == posixpath.normpath(workdir)
    named: dict[str, str] = {}
    for source in sources:
        for origin in _origins(folder, source, where):
            if origin.is_dir():
                copied = {f"{place}/{name}": content for name, content in texts(origin, folder).items()}
            else:
                copied = {f"{place}/{origin.name}" if into or len(words) > 2 else place: text(origin, folder)}
            named |= {
                path: content for path, content in copied.items() if origin != folder or path != f"{place}/{NAME}"
            }
            refuse_modes(origin, where)
    return named


def _origins(folder: Path, source: str, where: str) -> list[Path]:
    """The files or folders of the Dockerfile's folder that a COPY names. A leading / means that folder, as for Docker."""
    path = posixpath.normpath(source.lstrip("/") or ".")
    if path.split("/")[0] == "..":
        raise InputError(f"{where}: {source} lies outside of {folder}, from which alone can be copied")
    found = sorted(folder.glob(path)) if re.search(r"[*?\[]", path) else [folder / path]
    if not found or not all(origin.exists() for origin in found):
        raise InputError(f"{where}: there is no {source} in {folder}")
    if led := [origin for origin in found if not origin.resolve().is_relative_to(folder.resolve())]:
        raise InputError(f"{where}: {led[0]} leads out of {folder}, from which alone can be copied")
    return found


def refuse_modes(origin: Path, where: str) -> None:
    """Raises InputError for a program among the files: their modes are lost."""
    files = [file for file in origin.rglob("*") if file.is_file()] if origin.is_dir() else [origin]
    if programs := [file for file in files if file.stat().st_mode & 0o111]:
        raise InputError(
            f"{where}: {programs[0]} is executable, which a sandbox's files are not; take the mode away and call it through its "
            "interpreter, or build an image and name it as `docker_image` in task.toml"
        )


def _variables(words: list[str], where: str) -> dict[str, str]:
    """Of `ENV NAME=value …` or, as older files have it, `ENV NAME value`."""
    if words and "=" not in words[0]:
        words = ["=".join((words[0], " ".join(words[1:])))] if len(words) > 1 else []
    if not words or any("=" not in word or word.startswith("=") for word in words):
        raise InputError(f"{where}: ENV takes NAME=value")
    return dict(word.split("=", 1) for word in words)


def _words(rest: str, where: str) -> list[str]:
    """Of an instruction, in either form: `a b` or `["a", "b"]`."""
    if rest.lstrip().startswith("["):
        try:
            listed = json.loads(rest)
        except ValueError:
            listed = None
        if isinstance(listed, list) and all(isinstance(word, str) for word in listed):
            return listed
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise InputError(f"{where}: {str(error).lower()}") from error


def _instructions(file: Path, root: Path) -> Iterator[tuple[int, str]]:
    """Each instruction with the number of its first line; comments are none, also between the lines of one."""
    started, held = 0, ""
    for number, line in enumerate(text(file, root).splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        started = started if held else number
        held += line.strip()
        if held.endswith("\\"):
            held = held[:-1]
            continue
        yield started, held
        held = ""
    if held:
        yield started, held
