"""Commands in this process, at a terminal, and in a process that can be interrupted."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command import Gym

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\-_])")
COMMAND = [sys.executable, "-m", "cli.main"]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], store: Path, home: Path) -> Gym:
    """The `gym` command in this process, on the test's own store."""
    return Gym(monkeypatch, capsys)


class Process:
    """A `gym` command in a session of its own, as a shell starts a job; its output is collected."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def interrupt(self) -> None:
        """Ctrl-C: the signal goes to the whole foreground group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL, to the command alone."""
        self.process.send_signal(signal.SIGKILL)

    def wait(self, timeout: float = 60) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err


class Terminal:
    """A `gym` command on a terminal of its own."""

    def __init__(self, *arguments: str, columns: int = 80, rows: int = 30, **environment: str) -> None:
        self.raw = ""
        pid, self._master = pty.fork()
        if pid == 0:
            os.environ.update({"TERM": "xterm-256color", **environment})
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execv(COMMAND[0], [*COMMAND, *arguments])
        self.pid = pid
        self.code: int | None = None

    @property
    def text(self) -> str:
        """What was written so far, without the terminal's own control sequences."""
        return ESCAPES.sub("", self.raw).replace("\r", "")

    def read(self, seconds: float) -> bool:
        """Take what comes within this time; False once the command has closed the terminal."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # what Linux says at the end
            return False
        self.raw += data.decode(errors="replace")
        return bool(data)

    def until(self, seen: Callable[[str], object], timeout: float = 60) -> None:
        """Read until the text satisfies `seen`."""
        deadline = time.monotonic() + timeout
        while not seen(self.text):
            assert time.monotonic() < deadline, self.text[-3000:]
            assert self.read(0.2), self.text[-3000:]

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def wait(self, timeout: float = 60) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + timeout
        while self.read(0.2):
            assert time.monotonic() < deadline, self.text[-3000:]
        _, status = os.waitpid(self.pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def close(self) -> None:
        """End what is still there."""
        if self.code is None:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        os.close(self._master)


@pytest.fixture
def spawn(store: Path, home: Path) -> Iterator[Callable[..., Process]]:
    """`spawn("eval", "run", …)`: a command that goes on while the test looks."""
    started: list[Process] = []

    def start(*arguments: str) -> Process:
        started.append(Process(*arguments))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            os.killpg(one.process.pid, signal.SIGKILL)
        one.process.communicate()


@pytest.fixture
def terminal(store: Path, home: Path) -> Iterator[Callable[..., Terminal]]:
    """`terminal("show", "latest", columns=80)`: a command on a terminal."""
    opened: list[Terminal] = []

    def start(*arguments: str, **options: object) -> Terminal:
        opened.append(Terminal(*arguments, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def descendants(pid: int) -> set[int]:
    """Live processes that a process started, and those that these did."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
    found, waiting = set(), [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found.update(children)
        waiting += children
    return found
