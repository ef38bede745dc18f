"""The worker on this machine: events as they come, and nothing left of what it ran."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gymflow.runtime.foreign import worker
from gymflow.runtime.foreign.protocol import Job, read

WORKER = [sys.executable, "-I", worker.__file__]


def job(tmp_path: Path, script: str, *, limit_s: float = 30.0, **fields: Any) -> bytes:
    whole = json.loads(Job(argv=["/bin/sh", "-c", script], **fields).encoded(str(tmp_path), limit_s))
    return json.dumps({**whole, "pid_file": str(tmp_path / "pid"), "grace_s": 0.5}).encode()


def alive(mark: str) -> bool:
    return any(
        mark.encode() in (process / "cmdline").read_bytes()
        for process in Path("/proc").iterdir()
        if process.name.isdigit() and (process / "cmdline").exists()
    )


def test_lines_come_with_their_time_and_stream(tmp_path: Path) -> None:
    script = """echo '{"n": 1}'; sleep 0.3; echo '{"n": 2}'; echo words >&2; echo '{"delta": 3}'; cat; exit 5"""
    done = subprocess.run(
        WORKER,
        input=job(
            tmp_path,
            script,
            stdin='{"n": 4}\n',
            env={"NAME": "x"},
            files={str(tmp_path / "a/b.jsonl"): '{"file": 1}\nno json\n'},
            ignore=['"delta"'],
            collect=[f"{tmp_path}/**/*.jsonl"],
        ),
        capture_output=True,
        check=False,
    )
    output = read(done.stdout)
    assert [event.body for event in output.events] == [{"n": 1}, {"n": 2}, {"n": 4}, {"file": 1}]
    assert [event.from_file for event in output.events] == [False, False, False, True]
    assert output.events[1].at - output.events[0].at > 0.2
    assert output.words() == "words"
    assert output.ended is not None and (output.ended.exit_code, output.ended.late, output.ended.left) == (5, False, 0)
    assert done.returncode == 5
    assert (tmp_path / "a/b.jsonl").stat().st_mode & 0o077 == 0


def test_processes_that_left_session_and_parent_die_with_the_agent(tmp_path: Path) -> None:
    mark = f"97{os.getpid()}"
    script = f"(setsid sh -c 'setsid sleep {mark} & sleep {mark}' &); sleep 0.2"
    done = subprocess.run(WORKER, input=job(tmp_path, script), capture_output=True, check=False)
    ended = read(done.stdout).ended
    assert ended is not None and ended.exit_code == 0 and ended.left >= 2
    assert not alive(mark)


@pytest.mark.parametrize("told", [True, False], ids=["told", "late"])
def test_an_agent_that_ignores_sigterm_is_killed(tmp_path: Path, told: bool) -> None:
    mark = f"96{os.getpid()}"
    script = f"trap '' TERM; echo '{{}}'; sleep {mark}; sleep {mark}"
    process = subprocess.Popen(WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(job(tmp_path, script, limit_s=30.0 if told else 0.5))
    process.stdin.close()
    first = process.stdout.readline()
    if told:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    began = time.monotonic()
    output = read(first + process.stdout.read())
    process.wait()
    assert time.monotonic() - began < 10
    assert output.ended is not None and (output.ended.exit_code, output.ended.late) == (137, not told)
    assert not alive(mark)


def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    missing = json.loads(job(tmp_path, "")) | {"argv": ["/nowhere/agent"]}
    done = subprocess.run(WORKER, input=json.dumps(missing).encode(), capture_output=True, check=False)
    ended = read(done.stdout).ended
    assert ended is not None and ended.exit_code == 127 and "/nowhere/agent" in (ended.problem or "")


def test_output_that_was_cut_off_is_read_as_far_as_it_goes() -> None:
    output = read(b'{"at": 1.0, "stream": "stdout", "line": "{\\"n\\": 1}"}\n{"at": 2.0, "stre')
    assert [event.body for event in output.events] == [{"n": 1}] and output.ended is None
