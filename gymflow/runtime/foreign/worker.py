"""Runs one foreign agent inside its sandbox: a job as JSON on stdin, events as JSON lines on stdout.

    {"argv": [...], "env": {...}, "cwd": "/work", "stdin": null, "files": {"/home/agent/x.toml": "..."}, "remove": ["/home/agent/x"],
     "ignore": ["\"type\":\"delta\""], "collect": ["/home/agent/sessions/*.jsonl"], "pid_file": "/tmp/worker.pid", "limit_s": 3600, "grace_s": 2}

    {"at": 1764448200.1, "stream": "stdout", "line": "..."}    one line of the agent's, when it came
    {"at": ..., "stream": "file", "name": "...", "line": "..."}  one line of a file that `collect` names, after its end
    {"at": ..., "stream": "end", "exit_code": 0, "late": false, "left": 2}  its end, and how many processes it had left behind

A line that has one of the texts of `ignore` is left out. SIGTERM to this process, or `limit_s` seconds, end the agent: the same signal
to its group, then SIGKILL to all.
When the agent has ended, so has every process that it started, also one that left its session or parent: this process is their
reaper. Standard library only: it runs with whatever Python 3 the sandbox has.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
LINE = 4 << 20
"""Bytes of a longer line are not worth their memory; the line is cut, and so no JSON any more."""


def main() -> int:
    """Play the job on stdin; the agent's exit code, 128 + n where signal n ended it."""
    job = json.load(sys.stdin)
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    Path(job["pid_file"]).write_text(str(os.getpid()))
    for path, text in job["files"].items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch(0o600)
        Path(path).write_text(text, encoding="utf-8")
    say = Events(job["ignore"])
    stdin = subprocess.DEVNULL if job["stdin"] is None else subprocess.PIPE
    try:
        agent = subprocess.Popen(
            job["argv"], env={**os.environ, **job["env"]}, cwd=job["cwd"], stdin=stdin, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        code = 127 if isinstance(error, FileNotFoundError) else 126
        say.event("end", exit_code=code, late=False, left=0, error=str(error))
        return code
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    threads = [threading.Thread(target=say.lines, args=(name, getattr(agent, name))) for name in ("stdout", "stderr")]
    if stdin == subprocess.PIPE:
        threads.append(threading.Thread(target=feed, args=(agent.stdin, job["stdin"])))
    for thread in threads:
        thread.start()
    status, late = ended(agent, stopping, job["limit_s"], job["grace_s"])
    code = status if status >= 0 else 128 - status
    left = reap()
    for thread in threads:
        thread.join()
    for pattern in job["collect"]:
        for path in sorted(Path("/").glob(pattern.lstrip("/"))):
            with path.open("rb") as file:
                say.lines("file", file, name=str(path))
    say.event("end", exit_code=code, late=late, left=left)
    return code


class Events:
    """Writes events, one whole line at a time."""

    def __init__(self, ignore: list[str]) -> None:
        self._ignore = [text.encode() for text in ignore]
        self._lock = threading.Lock()

    def event(self, stream: str, **fields: object) -> None:
        text = json.dumps({"at": time.time(), "stream": stream, **fields})
        with self._lock:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

    def lines(self, stream: str, source: object, **fields: object) -> None:
        for line in source:  # type: ignore[attr-defined]
            if not any(text in line for text in self._ignore):
                self.event(stream, line=line[:LINE].decode("utf-8", "replace").rstrip("\r\n"), **fields)


def feed(sink: object, text: str) -> None:
    """What the agent reads; it may end without having read it all."""
    try:
        sink.write(text.encode())  # type: ignore[attr-defined]
        sink.close()  # type: ignore[attr-defined]
    except OSError:
        pass


def ended(
    agent: "subprocess.Popen[bytes]", stopping: threading.Event, limit_s: float, grace_s: float
) -> tuple[int, bool]:
    """The agent's exit status, once it has ended by itself or has been made to, and whether it took too long."""
    deadline = time.monotonic() + limit_s
    while not stopping.is_set() and time.monotonic() < deadline:
        try:
            return agent.wait(0.05), False
        except subprocess.TimeoutExpired:
            pass
    late = not stopping.is_set()
    try:
        os.killpg(agent.pid, signal.SIGTERM)
        return agent.wait(grace_s), late
    except (ProcessLookupError, subprocess.TimeoutExpired):
        agent.kill()
        return agent.wait(), late


def reap() -> int:
    """End all that is left of the agent; how many processes that were."""
    seen = set()
    while True:
        found = descendants()
        seen.update(found)
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return len(seen)
        time.sleep(0.005)


def descendants() -> set[int]:
    """All processes below this one."""
    children: dict[int, set[int]] = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                parent = int((process / "stat").read_bytes().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, set()).add(int(process.name))
    found: set[int] = set()
    todo = [os.getpid()]
    while todo:
        new = children.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


if __name__ == "__main__":
    sys.exit(main())
