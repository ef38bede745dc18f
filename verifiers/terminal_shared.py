"""Terminal tasks in the Harbor format whose tests look at the whole machine: services, installed packages, files anywhere.

    row: {"tests": {"test.sh": "curl -s localhost:8000 | grep -q ok && echo 1 > /logs/verifier/reward.txt || …"}}

The tests run where the agent worked, when its episode has ended: what it left running is ended, /tests and /logs/verifier are made
anew, and what they say is kept as evidence. So the verdict is `recorded`, cannot be computed again, and is worth as much as the
machine that an agent could change: `terminal` is to be preferred where a working directory tells all.
"""

from typing import Any

import orjson
from gymflow.verifiers._terminal_run import LOGS, TESTS, Forged, run_tests, verdict_of
from gymflow.verifiers.terminal import TerminalTask
from pydantic import Field

from gymflow.sandboxes import Sandbox
from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier, VerifierError

ARTIFACT = "verification"


class TerminalShared(Verifier[TerminalTask]):
    """The reward that `test.sh` wrote in the agent's own sandbox."""

    needs = frozenset({"artifacts"})
    rerun = "recorded"
    includes = ("_code.py", "_terminal_run.py", "_workspace.py", "terminal.py")

    class Parameters(BaseParameters):
        """A task's own `time_limit_s` wins."""

        time_limit_s: float = Field(600.0, gt=0)

    async def observe(self, task: TerminalTask, sandbox: Sandbox) -> dict[str, bytes]:
        """Run the tests; how that ended and what they wrote, as JSON."""
        planted = await sandbox.exec(
            f"ls -A {TESTS} {LOGS} 2>/dev/null | grep -v :; rm -rf {TESTS} {LOGS}; ls -d {TESTS} {LOGS}"
        )
        kept = planted.stdout.decode(errors="replace").split()
        if TESTS in kept or LOGS in kept:
            return {ARTIFACT: orjson.dumps({"lost": "the agent's /tests or /logs/verifier could not be removed"})}
        try:
            result, rewards = await run_tests(sandbox, task.tests, task.time_limit_s or self.parameters.time_limit_s)
        except VerifierError as error:
            return {ARTIFACT: orjson.dumps({"fault": str(error)})}
        except OSError as error:
            return {ARTIFACT: orjson.dumps({"lost": f"the tests could not be put in: {error}"})}
        except Forged as error:
            return {ARTIFACT: orjson.dumps({"lost": str(error)})}
        told = {
            "outcome": result.outcome,
            "exit_code": result.exit_code,
            "output": result.text()[-2000:],
            "rewards": rewards,
            "planted": kept,
        }
        return {ARTIFACT: orjson.dumps(told)}

    async def verify(self, task: TerminalTask, evidence: Evidence) -> Verdict:
        if ARTIFACT not in evidence.artifacts:
            raise VerifierError("the tests were not run when the episode ended, and cannot be run afterwards")
        told: dict[str, Any] = orjson.loads(evidence.read_artifact(ARTIFACT))
        if "fault" in told:
            raise VerifierError(told["fault"])
        if "lost" in told:
            return Verdict(reward=0.0, reason=told["lost"], details={"shared": True, "tamper_suspected": True})
        details = {"shared": True, **({"tamper_suspected": True} if told["planted"] else {})}
        verdict: Verdict = verdict_of(told["outcome"], told["exit_code"], told["output"], told["rewards"], details)
        return verdict
