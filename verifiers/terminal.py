"""Terminal tasks in the Harbor format: a folder `tests` whose `test.sh` writes a reward.

    row:      {"files": {"data.txt": "3 1 2"}, "tests": {"test.sh": "grep -q '1 2 3' /app/sorted.txt; ..."}}
    evidence: artifact `workspace`: what the agent left of /app

The tests run in a fresh sandbox in which no process of the agent ever ran: /tests and /logs/verifier are made anew, and a reward
that the agent wrote beforehand is gone and recorded.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from gymflow.verifiers._workspace import NoWorkspace, PatchError, guarded, workspace_of
from pydantic import BaseModel, Field, field_validator

from gymflow.sandboxes import SandboxLimits, SandboxSpec, TooLarge, UnsafePath, archive, open_sandbox
from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier, VerifierError

TESTS, LOGS = "/tests", "/logs/verifier"
MAX_REWARD_BYTES = 1 << 16


class TerminalTask(BaseModel):
    """`files`: the workspace at the start. `tests`: the folder `tests`, with `test.sh` in it."""

    files: dict[str, str] = Field(default_factory=dict)
    tests: dict[str, str]

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
    includes = ("_code.py", "_workspace.py")

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
        spec: SandboxSpec = self.parameters.sandbox
        if spec.limits == SandboxLimits():
            spec = spec.model_copy(update={"limits": SandboxLimits(memory_mib=2048, processes=256)})
        async with open_sandbox(spec) as sandbox:
            await sandbox.put_archive(spec.workdir, archive.pack(work.files))
            await sandbox.put_archive(TESTS, archive.pack(task.tests))
            await sandbox.put(f"{LOGS}/.keep", b"")
            result = await sandbox.exec(["sh", "-c", f"exec $(command -v bash || echo sh) {TESTS}/test.sh"], timeout_s=self.parameters.time_limit_s)  # fmt: skip
            rewards = await _rewards(sandbox)
        details: dict[str, Any] = {"reset": work.reset} if work.reset else {}
        if any(path.rsplit("/", 1)[-1].startswith("reward.") for path in work.reset):
            details["tamper_suspected"] = True
        if result.outcome != "exited":
            return Verdict(reward=0.0, reason=f"the tests did not run to their end: {result.outcome}", details=details)
        if rewards is None:
            raise VerifierError(
                f"test.sh wrote no reward: exit code {result.exit_code}, {result.text().strip()[-500:]}"
            )
        reward = rewards.get("reward", sum(rewards.values()) / len(rewards))
        return Verdict(
            reward=reward,
            components=dict(rewards),
            reason=None if reward else result.text().strip()[-500:] or None,
            details=details,
        )


async def _rewards(sandbox: Any) -> Mapping[str, float] | None:
    """Named rewards out of reward.json, or the one in reward.txt; None where there is neither."""
    for name in ("reward.json", "reward.txt"):
        try:
            text = (await sandbox.get(f"{LOGS}/{name}", max_bytes=MAX_REWARD_BYTES)).decode(errors="replace")
        except (FileNotFoundError, IsADirectoryError, UnsafePath, TooLarge):
            continue
        try:
            parsed = json.loads(text)
            rewards = (
                {"reward": float(parsed)}
                if not isinstance(parsed, dict)
                else {str(k): float(v) for k, v in parsed.items()}
            )
        except (ValueError, TypeError) as error:
            raise VerifierError(f"{name} holds no reward: {text[:200]!r}") from error
        if not rewards or not all(math.isfinite(value) for value in rewards.values()):
            raise VerifierError(f"{name} holds no finite reward: {text[:200]!r}")
        return rewards
    return None
