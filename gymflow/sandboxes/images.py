"""Images without a registry: a recipe becomes a root folder, with what this machine has; Docker imports the same folder, Enroot
gets it as a squashfs file, and Daytona makes a snapshot of the same recipe itself.

name: gymflow/python          # gym sandbox image recipe.yaml
base: debian:bookworm         # or `busybox`: two megabytes, in a second
packages: [python3, git]
run: ["ln -sf python3 /usr/bin/python"]
"""

import asyncio
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from gymflow.contracts.base import Contract
from gymflow.sandboxes.errors import SandboxUnavailable

IMAGES = "GYMFLOW_IMAGES"
"""Environment variable: the folder of built images. Default: gymflow/images in the user's cache."""
BUILD_S = 3600.0
Target = Literal["local", "docker", "enroot", "daytona"]
TARGETS: dict[str, Target] = {
    "local": "local",
    "apptainer": "local",
    "docker": "docker",
    "opensandbox": "docker",
    "enroot": "enroot",
    "daytona": "daytona",
}
"""Provider -> what is built for it. The others fetch images from a registry."""
BLOCK = 1 << 20
NAME = r"[a-z0-9]+([._/-][a-z0-9]+)*(:[\w.-]+)?"
_digests: dict[str, str] = {}


class Recipe(Contract):
    """How an image is made. `run`: shell lines, as root in the new root folder, with network."""

    name: str = Field(pattern=f"^{NAME}$")
    base: str = Field("debian:bookworm", description="`debian:SUITE` or `busybox`.")
    packages: list[str] = Field(default_factory=list, description="Debian packages.")
    run: list[str] = Field(default_factory=list)

    def dockerfile(self) -> list[str]:
        """The same recipe for a builder that has a registry: its lines, the base first."""
        slim = self.base if self.base == "busybox" else f"{self.base}-slim"
        lines = [["/bin/sh", "-ec", line] for line in self.run]
        if self.packages:
            install = "apt-get update && apt-get install -y --no-install-recommends "
            lines.insert(0, ["/bin/sh", "-ec", f"{install}{' '.join(self.packages)} && rm -rf /var/lib/apt/lists/*"])
        return [f"FROM {slim}", *(f"RUN {json.dumps(line)}" for line in lines)]

    @model_validator(mode="after")
    def _installable(self) -> "Recipe":
        if self.base == "busybox" and self.packages:
            raise ValueError("packages: `base: busybox` has no package manager; choose `base: debian:SUITE`")
        return self

    @field_validator("base")
    @classmethod
    def _known(cls, value: str) -> str:
        if value != "busybox" and not value.startswith("debian:"):
            raise ValueError("base is `busybox` or `debian:SUITE`")
        return value

    @field_validator("packages")
    @classmethod
    def _plain(cls, value: list[str]) -> list[str]:
        if any(not name or not name.replace("-", "").replace("+", "").replace(".", "").isalnum() for name in value):
            raise ValueError("packages are names of Debian packages")
        return value


def cache() -> Path:
    """Where built images lie."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get(IMAGES) or home / "gymflow" / "images")


def _folder(image: str) -> Path:
    """Of its own for each name: no name has two underscores before its tag, nor an @."""
    return cache() / image.replace("/", "__").replace(":", "@")


def rootfs(image: str | None) -> Path | None:
    """The root folder of an image; None: this machine's own system."""
    if image in (None, "host"):
        return None
    folder = _folder(str(image)) / "rootfs"
    if not re.fullmatch(NAME, str(image)) or not folder.is_dir():
        raise SandboxUnavailable(f"image {image!r} is not here; build it with `gym sandbox image`")
    return folder


def identity(image: str) -> str:
    """The digest that was taken when the image was built."""
    return (_folder(image) / "digest").read_text().strip()


def squashed(image: str) -> Path:
    """Where an image that was built for Enroot lies."""
    folder = _folder(image)
    return folder.with_name(f"{folder.name}.sqsh")


def version(file: Path) -> str:
    """Tells what is under a path from what was under it before."""
    status = file.stat()
    return f"{file} {status.st_size} {status.st_mtime_ns}"


async def file_identity(file: Path) -> str:
    """SHA-256 of an image that is one file; read again only where it has changed."""
    if (key := version(file)) not in _digests:
        with file.open("rb") as source:
            _digests[key] = (await asyncio.to_thread(hashlib.file_digest, source, "sha256")).hexdigest()
    return _digests[key]


async def build(recipe: Recipe, target: Target = "local") -> str:
    """Make an image for a provider; its digest, the daemon's or the cloud's id for it, or the path of its file. What stood under
    the name is replaced when the new one is whole."""
    if target == "daytona":
        from gymflow.sandboxes.registry import provider

        account = provider("daytona")
        from gymflow.sandboxes.daytona.snapshots import build as build_snapshot

        return await build_snapshot(recipe, account)
    final = _folder(recipe.name)
    building = final.with_name(f"{final.name}.{os.getpid()}.part")
    root = building / "rootfs"
    root.mkdir(parents=True)
    try:
        if recipe.base == "busybox":
            _busybox(root)
        else:
            await _debian(recipe, root)
        for line in recipe.run:
            await _inside(root, line)
        digest = await asyncio.to_thread(_digest, root)
        if target == "docker":
            return await _import(recipe.name, root)
        if target == "enroot":
            return await _squash(root, squashed(recipe.name))
        (building / "digest").write_text(digest)
        await asyncio.to_thread(shutil.rmtree, final, ignore_errors=True)
        building.rename(final)
        return digest
    finally:
        await asyncio.to_thread(shutil.rmtree, building, ignore_errors=True)


def _busybox(root: Path) -> None:
    static = shutil.which("busybox")
    if static is None:
        raise SandboxUnavailable("busybox is not installed (Debian, Ubuntu: apt install busybox-static)")
    for folder in ("bin", "usr/bin", "etc", "root", "home", "tmp", "var", "proc", "dev"):
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    shutil.copy(static, root / "bin/busybox")
    applets = subprocess.run([static, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for name in applets:
        for folder in ("bin", "usr/bin"):
            if name != "busybox" or folder != "bin":
                (root / folder / name).symlink_to("/bin/busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nagent:x:1000:\n")


async def _debian(recipe: Recipe, root: Path) -> None:
    tool = shutil.which("mmdebstrap")
    if tool is None:
        raise SandboxUnavailable("mmdebstrap is not installed (Debian, Ubuntu: apt install mmdebstrap)")
    include = [f"--include={','.join(recipe.packages)}"] if recipe.packages else []
    sources = Path("/etc/apt/sources.list")
    await _command(
        tool, "--variant=minbase", *include, "--aptopt=Acquire::Languages none", recipe.base.removeprefix("debian:"), str(root),
        *([str(sources)] if sources.exists() and sources.read_text().strip() else []),
    )  # fmt: skip


async def _inside(root: Path, line: str) -> None:
    """A shell line in a root folder, as its root and with this machine's network and certificates."""
    tool = shutil.which("bwrap")
    if tool is None:
        raise SandboxUnavailable("bubblewrap is not installed (Debian, Ubuntu: apt install bubblewrap)")
    shown = [path for path in ("/etc/resolv.conf", "/etc/ssl/certs") if Path(path).exists()]
    command = (
        tool, "--bind", str(root), "/", "--proc", "/proc", "--dev", "/dev", "--unshare-pid", "--die-with-parent",
        *[word for path in shown for word in ("--ro-bind", str(Path(path).resolve()), path)], "--clearenv", "--setenv", "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "--setenv", "HOME", "/root", "/bin/sh", "-ec", line,
    )  # fmt: skip
    await _command(*command, called=f"run: {line}")


async def _command(*argv: str, called: str | None = None) -> None:
    """Run it. Raises SandboxUnavailable with how it ended and what it said."""
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), BUILD_S)
    except BaseException:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    if process.returncode:
        text = said.decode(errors="replace").strip()[-1000:] or "it said nothing"
        raise SandboxUnavailable(f"{called or argv[0]} failed with exit code {process.returncode}: {text}")


async def _squash(root: Path, file: Path) -> str:
    tool = shutil.which("mksquashfs")
    if tool is None:
        raise SandboxUnavailable("mksquashfs is not installed (Debian, Ubuntu: apt install squashfs-tools)")
    building = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        await _command(tool, str(root), str(building), "-noappend", "-no-progress", "-all-root")
        building.rename(file)
    finally:
        building.unlink(missing_ok=True)
    return str(file)


def _digest(root: Path) -> str:
    """SHA-256 over path, mode and content of everything in a root folder."""
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        whole.update(f"{path.relative_to(root)}\0{status.st_mode:o}\0".encode("utf-8", "surrogateescape"))
        if path.is_symlink():
            whole.update(str(path.readlink()).encode())
        elif path.is_file():
            with path.open("rb") as source:
                whole.update(hashlib.file_digest(source, "sha256").digest())
    return whole.hexdigest()


async def _import(name: str, root: Path) -> str:
    from gymflow.sandboxes.docker.engine import Engine, EngineError

    engine = Engine()
    repository, _, tag = name.partition(":")
    query = {"fromSrc": "-", "repo": repository, "tag": tag or "latest"}
    try:
        await engine.call("POST", "/images/create", query=query, data=_packed(root), timeout_s=BUILD_S)
        return str((await engine.call("GET", f"/images/{name}/json"))["Id"])
    except EngineError as error:
        raise SandboxUnavailable(f"the Docker daemon does not take the image: {error}", cause=error) from error
    finally:
        await engine.close()


async def _packed(root: Path) -> AsyncIterator[bytes]:
    """A root folder as a tar stream, owners kept."""
    read, write = os.pipe()

    def produce() -> None:
        with os.fdopen(write, "wb") as sink, tarfile.open(fileobj=sink, mode="w|") as tar:
            tar.add(root, arcname=".")

    producing = asyncio.ensure_future(asyncio.to_thread(produce))
    with os.fdopen(read, "rb") as source:
        while block := await asyncio.to_thread(source.read, BLOCK):
            yield block
    await producing
