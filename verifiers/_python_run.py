"""One verification of a Python solution: two fresh sandboxes, a socket between them, and nothing else in common."""

import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from gymflow.sandboxes import ExecResult, SandboxLimits, SandboxSpec
from gymflow.sandboxes.local import LocalProvider, OneShot
from gymflow.sandboxes.pool import pool
from gymflow.verifiers import VerifierError

Cause = Literal["timeout", "memory", "crash", "output", "load", "failed"]

HERE = Path(__file__).parent
INSIDE = "/opt/gymflow"
START_S = 20.0
"""Beside the time limit: what starting two interpreters may take on a busy machine."""
CANDIDATE, TESTER = "_python_candidate.py", "_python_tester.py"


@dataclass
class Outcome:
    """What the tests said. `cause`: why the solution did not pass, in a word."""

    passed: dict[str, bool] = field(default_factory=dict)
    cause: Cause | None = None
    message: str | None = None


async def run_tests(
    solution: str,
    job: Mapping[str, Any],
    *,
    time_limit_s: float,
    memory_mib: int,
    processes: int = 32,
) -> Outcome:
    """Run a job's tests against a solution. `job`: entry_point, setup, tests, cases, tolerance, own_operators.

    Raises VerifierError where the testing side itself failed, whatever the solution did.
    """
    place = pool("local")
    async with place.place() as provider:
        if not isinstance(provider, LocalProvider) or provider.isolation != "full":
            raise VerifierError("running tests on untrusted code needs full isolation from the local sandbox provider")
        ours, theirs = socket.socketpair()
        limits = SandboxLimits(memory_mib=memory_mib, processes=processes, disk_mib=64)
        spec = SandboxSpec(limits=limits)
        with ours, theirs:
            under_test = provider.one_shot(
                spec,
                ["python3", "-I", "-S", f"{INSIDE}/{CANDIDATE}"],
                files={"/work/solution.py": solution.encode("utf-8", "surrogateescape"), **code_files(CANDIDATE)},
                channel=theirs.fileno(),
                keep_bytes=1 << 14,
            )
            testing = provider.one_shot(
                SandboxSpec(limits=SandboxLimits(memory_mib=1024, processes=64, disk_mib=64)),
                ["python3", "-I", "-S", f"{INSIDE}/{TESTER}", "/work/job.json"],
                files={
                    "/work/job.json": json.dumps({**job, "time_limit_s": time_limit_s}).encode(),
                    **code_files(TESTER),
                },
                channel=ours.fileno(),
            )
            async with under_test as candidate, testing as tester:
                # Each end must live in one process only, else nobody notices when the other has gone.
                ours.close()
                theirs.close()
                told = await tester.result(time_limit_s + START_S)
                ended = await _ended(candidate)
    return _outcome(told, ended, time_limit_s)


async def _ended(candidate: OneShot) -> ExecResult | None:
    """How the process under test ended by itself; None where it still runs, which leaving its block ends."""
    return await candidate.ended(0.05)


@cache
def code_files(*names: str) -> dict[str, bytes]:
    """Scripts of ours that run inside, with what they share."""
    return {f"{INSIDE}/{file}": (HERE / file).read_bytes() for file in ("_python_wire.py", *names)}


def _outcome(told: ExecResult, ended: ExecResult | None, time_limit_s: float) -> Outcome:
    lines = _lines(told)
    events = {line["event"] for line in lines}
    if "ready" not in events:
        raise VerifierError(f"the testing process did not begin: {told.outcome} {told.text().strip()[-500:]}")
    outcome = Outcome()
    for line in lines:
        if line["event"] in ("passed", "failed"):
            outcome.passed[line["test"]] = line["event"] == "passed"
    failure = next((line for line in lines if line["event"] in ("failed", "load")), None)
    if not events.isdisjoint({"gone", "timeout"}) or told.outcome != "exited":
        outcome.cause, outcome.message = _cause(told, ended, time_limit_s, timed_out="timeout" in events)
    elif "load" in events:
        outcome.cause, outcome.message = "load", str(failure["error"] if failure else "")
    elif "done" not in events:
        raise VerifierError(f"the testing process ended early: {told.text().strip()[-500:]}")
    elif failure is not None:
        outcome.cause, outcome.message = "failed", f"{failure['test']}: {failure['error']}"
    return outcome


def _cause(told: ExecResult, ended: ExecResult | None, time_limit_s: float, *, timed_out: bool) -> tuple[Cause, str]:
    if ended is not None and ended.outcome == "oom":
        return "memory", "the solution used more memory than allowed"
    if ended is not None and ended.outcome == "output_limit":
        return "output", "the solution wrote more than allowed"
    if told.outcome == "timeout" or timed_out:
        return "timeout", f"not done within {time_limit_s:g} s"
    if told.outcome == "oom":
        return "memory", "what the solution gave did not fit into the tests' memory"
    if told.outcome != "exited":
        raise VerifierError(f"the testing process was ended: {told.outcome}")
    detail = ended.stderr.decode(errors="replace").strip()[-300:] if ended else ""
    return "crash", f"the solution ended its process{': ' + detail if detail else ''}"


def _lines(told: ExecResult) -> Sequence[dict[str, Any]]:
    found = []
    for line in told.stdout.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError as error:
            raise VerifierError(f"the testing process said something odd: {line[:200]!r}") from error
    return found
