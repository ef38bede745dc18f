"""Running a Harbor task's tests in a sandbox, and reading the reward that they write."""

import json
import math
from collections.abc import Mapping
from typing import Any

from gymflow.sandboxes import ExecResult, Sandbox, TooLarge, UnsafePath, archive
from gymflow.verifiers import Verdict, VerifierError

TESTS, LOGS = "/tests", "/logs/verifier"
MAX_REWARD_BYTES = 1 << 16


async def run_tests(
    sandbox: Sandbox, tests: Mapping[str, str], time_limit_s: float
) -> tuple[ExecResult, dict[str, float] | None]:
    """Put the tests in and run test.sh; how that ended, and the rewards by name, None where it wrote none.

    Raises VerifierError where what it wrote is no reward.
    """
    await sandbox.put_archive(TESTS, archive.pack(tests))
    await sandbox.put(f"{LOGS}/.keep", b"")
    script = f"exec $(command -v bash || echo sh) {TESTS}/test.sh"
    result = await sandbox.exec(["sh", "-c", script], timeout_s=time_limit_s)
    return result, await _rewards(sandbox)


def verdict_of(
    outcome: str, exit_code: int | None, output: str, rewards: Mapping[str, float] | None, details: dict[str, Any]
) -> Verdict:
    """The verdict on a finished test run. Raises VerifierError where it ended without a reward."""
    if outcome != "exited":
        return Verdict(reward=0.0, reason=f"the tests did not run to their end: {outcome}", details=details)
    if rewards is None:
        raise VerifierError(f"test.sh wrote no reward: exit code {exit_code}, {output.strip()[-500:]}")
    reward = rewards.get("reward", sum(rewards.values()) / len(rewards))
    said = None if reward else output.strip()[-500:] or None
    return Verdict(reward=reward, components=dict(rewards), reason=said, details=details)


async def _rewards(sandbox: Sandbox) -> dict[str, float] | None:
    """Named rewards out of reward.json, or the one in reward.txt."""
    for name in ("reward.json", "reward.txt"):
        try:
            text = (await sandbox.get(f"{LOGS}/{name}", max_bytes=MAX_REWARD_BYTES)).decode(errors="replace")
        except (FileNotFoundError, IsADirectoryError, UnsafePath, TooLarge):
            continue
        try:
            parsed = json.loads(text)
            named = parsed if isinstance(parsed, dict) else {"reward": parsed}
            rewards = {str(key): float(value) for key, value in named.items()}
        except (ValueError, TypeError) as error:
            raise VerifierError(f"{name} holds no reward: {text[:200]!r}") from error
        if not rewards or not all(math.isfinite(value) for value in rewards.values()):
            raise VerifierError(f"{name} holds no finite reward: {text[:200]!r}")
        return rewards
    return None
