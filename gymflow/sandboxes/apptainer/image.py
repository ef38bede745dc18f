"""Images that Apptainer can start: what `gym sandbox image` built, and `.sif` files."""

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from gymflow.sandboxes import images
from gymflow.sandboxes.apptainer import command
from gymflow.sandboxes.errors import SandboxUnavailable, SandboxUnsupported
from gymflow.sandboxes.local.layout import Arguments
from gymflow.sandboxes.local.tool import Tool

IMAGE = "GYMFLOW_APPTAINER_IMAGE"
"""Environment variable: the image where a spec names none."""
DEFAULT_IMAGE = "gymflow/sandbox"

NOT_THE_IMAGES = frozenset(
    {"HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "USER", "PS1", "PROMPT_COMMAND", "LD_LIBRARY_PATH", "_"}
)
"""Variables that Apptainer or its shell sets, whatever the image says."""

LOOK = 'for d do [ -d "$d" ] && echo "$d"; done; echo; exec cat /proc/self/environ'


@dataclass(frozen=True)
class Image:
    """Something to start from. `environment`: the variables that the image sets; `folders`: those asked for that it has."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()


def named(image: str | None) -> str:
    """The name of the image that a spec means."""
    return image or os.environ.get(IMAGE) or DEFAULT_IMAGE


def located(name: str) -> Path:
    """Where an image lies: a root folder, or a `.sif` file. Raises SandboxUnavailable, SandboxUnsupported."""
    if "://" in name:
        raise SandboxUnsupported(
            f"image {name!r} has to be fetched first: `apptainer pull image.sif {name}`, then `image: /path/to/image.sif`"
        )
    if not name.endswith(".sif"):
        root = images.rootfs(name)
        if root is None:
            raise SandboxUnsupported("sandbox provider `apptainer` has no image `host`; name one")
        return root
    path = Path(name)
    # Paths depend on where a run was started, and a task's row must not be able to point anywhere.
    if not path.is_absolute():
        raise SandboxUnsupported(f"image {name!r}: a .sif file is named by its absolute path")
    if not path.is_file():
        raise SandboxUnavailable(f"image {name!r} is not here")
    return path


async def looked_at(tool: Tool, path: Path, folder: str) -> Image:
    """An image with what has to be known of it before it is started: its variables, and whether it has the workdir."""
    if path.is_dir():
        return Image(path, folders=frozenset({folder} if (path / folder.lstrip("/")).is_dir() else ()))
    with tempfile.TemporaryDirectory(prefix="gymflow-look-") as home:
        tool.give(Path(home))
        arguments = Arguments()
        arguments.add(
            "--silent", "exec", "--userns", "--containall", "--no-home", "--no-mount", "hostfs,bind-paths,cwd"
        )
        arguments.add("--pwd", "/", arguments.shown(path), "/bin/sh", "-c", LOOK, "sh", folder)
        result = await command.call(tool, arguments, home=Path(home))
    if not result.ok:
        raise SandboxUnavailable(f"apptainer cannot run {path}: {result.text().strip()[-500:]}")
    folders, _, variables = (
        result.stdout.partition(b"\n\n") if result.stdout[:1] != b"\n" else (b"", b"", result.stdout[1:])
    )
    pairs = (one.partition("=") for one in variables.decode(errors="replace").split("\0") if "=" in one)
    return Image(
        path,
        {name: value for name, _, value in pairs if not _is_runtimes(name)},
        frozenset(folders.decode(errors="replace").split("\n")) - {""},
    )


def _is_runtimes(name: str) -> bool:
    return name in NOT_THE_IMAGES or name.startswith(("APPTAINER", "SINGULARITY"))
