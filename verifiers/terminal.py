"""Terminal tasks in the Harbor format: a folder `tests` whose `test.sh` writes a reward.

    row:      {"files": {"data.txt": "3 1 2"}, "tests": {"test.sh": "grep -q '1 2 3' /app/sorted.txt; ..."}}
    evidence: artifact `workspace`: what the agent left of /app

The tests run in a fresh sandbox in which no process of the agent ever ran: /tests and /logs/verifier are made anew, and a reward
that the agent wrote beforehand is gone and recorded. A test.sh that runs the agent's programs should write its reward afterwards: what
they leave running is ended, a reward that changes after test.sh counts as a forgery, and of reward.txt and reward.json the lower one
counts.
"""

from typing import Any

from gymflow.verifiers._terminal_run import Forged, run_tests, verdict_of
from gymflow.verifiers._workspace import NoWorkspace, PatchError, guarded, rebuilt, workspace_of
from pydantic import BaseModel, Field, field_validator

from gymflow.sandboxes import SandboxLimits, SandboxSpec, TooLarge, UnsafePath, archive, open_sandbox
from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier

ROOM_MIB = 128


class TerminalTask(BaseModel):
    """`files`: the workspace at the start. `tests`: the folder `tests`, with `test.sh` in it. `sandbox`: the task's part of the
    sandbox that it was played in."""

    files: dict[str, str] = Field(default_factory=dict)
    tests: dict[str, str]
    sandbox: dict[str, Any] = Field(default_factory=dict)
    time_limit_s: float | None = Field(None, gt=0)

    @field_validator("tests")
    @classmethod
    def _runnable(cls, tests: dict[str, str]) -> dict[str, str]:
        if "test.sh" not in tests:
            raise ValueError("`tests` has no test.sh")
        for path in tests:
            archive.safe_name(path)
        return tests


class Terminal(Verifier[TerminalTask]):
    """The reward that `test.sh` writes to /logs/verifier/reward.txt or reward.json; without one its exit code decides nothing,
    and the verdict is a verifier error."""

    needs = frozenset({"artifacts", "sandbox"})
    includes = ("_code.py", "_terminal_run.py", "_workspace.py")

    class Parameters(BaseParameters):
        """`sandbox` is where the tests run; its workdir is where the workspace is put."""

        sandbox: SandboxSpec = Field(default_factory=lambda: SandboxSpec(workdir="/app"))
        protected: list[str] = Field(default_factory=list, description="Globs of files that are the task's.")
        time_limit_s: float = Field(600.0, gt=0)

    async def verify(self, task: TerminalTask, evidence: Evidence) -> Verdict:
        base = {archive.safe_name(path): text.encode() for path, text in task.files.items()}
        try:
            left = workspace_of(evidence, base)
        except (NoWorkspace, PatchError, UnsafePath, TooLarge) as error:
            return Verdict(reward=0.0, reason=str(error))
        work = guarded(left, base, {}, self.parameters.protected)
        spec = self._spec(task)
        details: dict[str, Any] = {"reset": work.reset} if work.reset else {}
        if any(path.rsplit("/", 1)[-1].startswith("reward.") for path in work.reset):
            details["tamper_suspected"] = True
        async with open_sandbox(spec) as sandbox:
            try:
                await sandbox.put_archive(spec.workdir, rebuilt(evidence, work, self.parameters.protected))
            except (OSError, UnsafePath, TooLarge) as error:
                return Verdict(
                    reward=0.0, reason=f"the workspace cannot be put anywhere else: {error}", details=details
                )
            try:
                result, rewards = await run_tests(
                    sandbox, task.tests, task.time_limit_s or self.parameters.time_limit_s
                )
            except Forged as error:
                return Verdict(reward=0.0, reason=str(error), details={**details, "tamper_suspected": True})
        verdict: Verdict = verdict_of(result.outcome, result.exit_code, result.text(), rewards, details)
        return verdict

    def _spec(self, task: TerminalTask) -> SandboxSpec:
        """As the agent's was, with no files of its own, no way out but an open network, and room for the tests beside a full disk."""
        spec: SandboxSpec = self.parameters.sandbox.overlaid(task.sandbox)
        changes: dict[str, Any] = {"files": {}}
        if spec.network == "gateway":
            changes["network"] = "none"
        given = spec.limits.model_dump(exclude_none=True)
        if "disk_mib" in given:
            given["disk_mib"] += ROOM_MIB + (sum(map(len, task.tests.values())) >> 18)
        if spec.provider != "local":
            # The tests write to / itself, which takes root and a disk without a bound where / is not the sandbox's own memory.
            given.pop("disk_mib", None)
            changes["user"] = spec.user or "root"
        changes["limits"] = SandboxLimits.model_validate({"memory_mib": 2048, "processes": 256, **given})
        return spec.model_copy(update=changes)
