"""Runs inside a Fargate task and executes commands for whoever holds the token: exact bytes, whole trees ended, usage counted.

Standard library and Python 3.7 only, since an image may have an old one; it travels in the task definition. ECS's own exec has
one stream, a terminal's, and no exit code.

Request: `POST /exec`, a line of JSON (argv, env, cwd, uid, gid, processes, timeout_s, keep_bytes, limit_bytes, mark), then stdin.
Answer: frames of kind (1 byte), length (4 bytes, big-endian) and payload: 1 stdout, 2 stderr, 0 the end as JSON, 9 still alive.
A caller that hangs up ends its command.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import hmac
import http.server
import json
import math
import os
import pathlib
import resource
import select
import signal
import socket
import socketserver
import struct
import subprocess
import tempfile
import threading
import time
from typing import IO, Any

PORT = 19542
BLOCK = 1 << 16
BEAT_S = 5.0
AFTER_END_S = 0.2
"""How long output is still read after a command has ended, when a child that it left behind holds it open."""
DRAIN_S = 2.0
"""How long, when that child goes on writing."""
DROP_BOUNDING, NO_NEW_PRIVILEGES = 24, 38
CAPABILITIES = 64
OURS = ("AWS_", "ECS_", "GYMFLOW_")

libc = ctypes.CDLL(None, use_errno=True)


class Handler(http.server.BaseHTTPRequestHandler):
    """One request on one connection."""

    timeout = 60

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the task's log is the commands' own business."""

    def do_GET(self) -> None:
        if self._may():
            self._answer(200, {"pid": os.getpid()})

    def do_POST(self) -> None:
        if not self._may():
            return
        length = int(self.headers.get("Content-Length", 0))
        line = self.rfile.readline(min(length, 1 << 24))
        try:
            asked = json.loads(line.decode())
            with tempfile.TemporaryFile() as stdin:
                left = length - len(line)
                while left:
                    block = self.rfile.read(min(left, BLOCK))
                    if not block:
                        return  # the caller hung up before the command began
                    left -= len(block)
                    stdin.write(block)
                stdin.seek(0)
                process = started(asked, stdin)
        except (KeyError, ValueError, OSError, subprocess.SubprocessError) as error:
            self._answer(400, {"error": str(error)})
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.flush()
        Watched(self.connection, process, asked).run()
        self.close_connection = True

    def _may(self) -> bool:
        token = self.headers.get("Authorization", "")[len("Bearer ") :]
        held = hashlib.sha256(token.encode()).hexdigest()
        if hmac.compare_digest(held, os.environ["GYMFLOW_TOKEN_SHA256"]):
            return True
        self._answer(401, {"error": "the token is not this task's"})
        return False

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(socketserver.ThreadingTCPServer):
    """Not HTTPServer: that asks for its own name, which takes half a minute where no name server may be reached."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


class Watched:
    """A running command and the connection that its output goes to."""

    def __init__(self, connection: socket.socket, process: subprocess.Popen[bytes], asked: dict[str, Any]) -> None:
        self.connection = connection
        self.process = process
        self.mark = asked["mark"].encode()
        self.ends = time.monotonic() + asked["timeout_s"]
        self.keep = {1: asked["keep_bytes"], 2: asked["keep_bytes"]}
        self.left = asked["limit_bytes"]
        self.truncated = False
        self.ooms = oom_kills()
        self.beat = time.monotonic()

    def run(self) -> None:
        """Pass output on until the command has ended, then say how."""
        stdout, stderr = self.process.stdout, self.process.stderr
        assert stdout and stderr
        pipes = {stdout.fileno(): 1, stderr.fileno(): 2}
        caller = self.connection.fileno()
        forced, waited, over = None, None, math.inf
        try:
            while pipes or waited is None:
                ready = select.select([*pipes, caller], [], [], 0.02)[0]
                late = time.monotonic() - over
                if late > DRAIN_S or (late > 0 and not set(ready) & set(pipes)):
                    break
                if caller in ready and not self.connection.recv(1, socket.MSG_PEEK):
                    raise ConnectionError("the caller hung up")
                for pipe in [pipe for pipe in pipes if pipe in ready]:
                    if not self.passed_on(pipes[pipe], os.read(pipe, BLOCK)):
                        del pipes[pipe]
                if waited is None:
                    pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
                    if pid:
                        waited, over = (status, usage), time.monotonic() + AFTER_END_S
                if forced is None and (self.left < 0 or (waited is None and time.monotonic() > self.ends)):
                    forced = "output_limit" if self.left < 0 else "timeout"
                    self.end()
                if time.monotonic() - self.beat > BEAT_S:
                    self.send(9, b"")
            if waited is not None:
                self.send(0, json.dumps(self.ended(forced, *waited)).encode())
        except OSError:
            self.end()
        finally:
            stdout.close()
            stderr.close()
            if waited is None:
                os.waitpid(self.process.pid, 0)
            self.process.returncode = 0

    def end(self) -> None:
        """SIGKILL to the command, also where it cleared its environment, and to all that it began."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        end_tree(self.mark)

    def passed_on(self, stream: int, block: bytes) -> bytes:
        """Send what the caller still wants of a block; empty at the stream's end."""
        self.left -= len(block)
        kept = block[: self.keep[stream]]
        self.keep[stream] -= len(kept)
        self.truncated = self.truncated or len(kept) < len(block)
        if kept:
            self.send(stream, kept)
        return block

    def send(self, kind: int, payload: bytes) -> None:
        """One frame."""
        self.beat = time.monotonic()
        self.connection.sendall(struct.pack(">BI", kind, len(payload)) + payload)

    def ended(self, forced: str | None, status: int, usage: resource.struct_rusage) -> dict[str, Any]:
        """What the last frame says."""
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        outcome = forced or ("oom" if code and oom_kills() > self.ooms else "killed" if code == 137 else "exited")
        return {
            "outcome": outcome, "exit_code": 137 if forced else code, "truncated": self.truncated,
            "cpu_s": usage.ru_utime + usage.ru_stime, "peak_memory_bytes": usage.ru_maxrss * 1024,
        }  # fmt: skip


def started(asked: dict[str, Any], stdin: IO[bytes]) -> subprocess.Popen[bytes]:
    """The command as a process of the user that was asked for, in a session of its own, with its mark in the environment."""
    name, _, value = asked["mark"].partition("=")
    inherited = {key: text for key, text in os.environ.items() if not key.startswith(OURS)}

    def become() -> None:
        os.setsid()
        libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if os.getuid() == 0:
            for capability in range(CAPABILITIES if asked["uid"] else 0):
                libc.prctl(DROP_BOUNDING, capability, 0, 0, 0)
            os.setgroups([])
            os.setgid(asked["gid"])
            if asked["processes"]:
                resource.setrlimit(resource.RLIMIT_NPROC, (asked["processes"], asked["processes"]))
            os.setuid(asked["uid"])

    return subprocess.Popen(
        asked["argv"],
        env=dict(inherited, **asked["env"], **{name: value}),
        cwd="/",
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=become,
    )


def end_tree(mark: bytes) -> None:
    """SIGKILL to all that carries the mark, stopped first, so that nothing can be born meanwhile."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        seen: set[int] = set()
        for _ in range(50):
            found = carrying(mark)
            if (found <= seen and number == signal.SIGSTOP) or not found:
                break
            seen |= found
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(0.002)


def carrying(mark: bytes) -> set[int]:
    """Processes whose environment holds the mark: children inherit it also through `setsid` and double forks."""
    found = set()
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.add(int(entry.name))
    return found


def oom_kills() -> int:
    """How many processes died here for lack of memory; the whole task is one virtual machine with one counter."""
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control", "/proc/vmstat"):
        with contextlib.suppress(OSError):
            lines = pathlib.Path(path).read_text().splitlines()
            return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return 0


def main() -> None:
    """Serve until the task's time is over."""
    life_s = float(os.environ["GYMFLOW_LIFE_S"])
    threading.Timer(life_s, os._exit, (0,)).start()
    host = os.environ.get("GYMFLOW_HOST", "0.0.0.0")
    Server((host, PORT), Handler).serve_forever()


if __name__ == "__main__":
    main()
