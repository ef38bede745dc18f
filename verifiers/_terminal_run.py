"""Running a Harbor task's tests in a sandbox, and reading the reward that they write."""

import json
import math
from collections.abc import Mapping
from typing import Any

from gymflow.sandboxes import ExecResult, Sandbox, TooLarge, UnsafePath, archive
from gymflow.verifiers import Verdict, VerifierError

TESTS, LOGS = "/tests", "/logs/verifier"
MAX_REWARD_BYTES = 1 << 16
SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a command."""


ENDED, ORDER = ".ended", ".order"
SESSION = f"""
before=" $(cd /proc && echo [0-9]*) $$ "
$(command -v bash || echo sh) {TESTS}/test.sh
code=$?
: > {LOGS}/{ENDED}
sleep 0.02
for one in /proc/[0-9]*; do
    case "$before" in *" ${{one#/proc/}} "*) ;; *) kill -9 "${{one#/proc/}}" 2>/dev/null ;; esac
done
cd {LOGS} && ls -1tc {ENDED} reward.txt reward.json > {ORDER} 2>/dev/null
exit $code
"""
"""Runs test.sh, ends what it left running, and writes down which files were changed after it had ended. Who writes a reward all the
time has shown it by then."""


class Forged(Exception):
    """The reward was written by something that test.sh left running."""


async def run_tests(
    sandbox: Sandbox, tests: Mapping[str, str], time_limit_s: float
) -> tuple[ExecResult, dict[str, float] | None]:
    """Put the tests in and run test.sh; how that ended, and the rewards by name, None where it wrote none.

    Raises VerifierError where what it wrote is no reward, Forged where a reward was written after its end, OSError where the tests
    have no room.
    """
    await sandbox.put_archive(TESTS, archive.pack(tests))
    await sandbox.put(f"{LOGS}/.keep", b"")
    result = await sandbox.exec(["sh", "-c", SESSION], timeout_s=time_limit_s)
    if result.outcome != "exited":
        return result, None
    order = (await _read(sandbox, ORDER) or "").split()
    if order[:1] != [ENDED]:
        raise Forged("the reward was changed when test.sh had ended")
    return result, await _rewards(sandbox)


def verdict_of(
    outcome: str, exit_code: int | None, output: str, rewards: Mapping[str, float] | None, details: dict[str, Any]
) -> Verdict:
    """The verdict on a finished test run. Raises VerifierError where it ended without a reward."""
    if outcome != "exited":
        return Verdict(reward=0.0, reason=f"the tests did not run to their end: {outcome}", details=details)
    if rewards is None and exit_code is not None and exit_code > SIGNALLED:
        return Verdict(reward=0.0, reason=f"test.sh was ended by signal {exit_code - SIGNALLED}", details=details)
    if rewards is None:
        raise VerifierError(f"test.sh wrote no reward: exit code {exit_code}, {output.strip()[-500:]}")
    reward = _reward(rewards)
    said = None if reward else output.strip()[-500:] or None
    return Verdict(reward=reward, components=dict(rewards), reason=said, details=details)


async def _rewards(sandbox: Sandbox) -> dict[str, float] | None:
    """Named rewards out of reward.json, or the one in reward.txt. Where both were written, the lower one counts, and not one that is
    none: one of them may be by what test.sh ran."""
    found, faults = [], []
    for name in ("reward.json", "reward.txt"):
        if (text := await _read(sandbox, name)) is not None:
            try:
                found.append(_parsed(name, text))
            except VerifierError as error:
                faults.append(error)
    if faults and not found:
        raise faults[0]
    return min(found, key=_reward, default=None)


def _parsed(name: str, text: str) -> dict[str, float]:
    try:
        parsed = json.loads(text)
        named = parsed if isinstance(parsed, dict) else {"reward": parsed}
        rewards = {str(key): float(value) for key, value in named.items()}
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise VerifierError(f"{name} holds no reward: {text[:200]!r}") from error
    if not rewards or not all(math.isfinite(value) for value in rewards.values()):
        raise VerifierError(f"{name} holds no finite reward: {text[:200]!r}")
    return rewards


def _reward(rewards: Mapping[str, float]) -> float:
    return rewards.get("reward", sum(rewards.values()) / len(rewards))


async def _read(sandbox: Sandbox, name: str) -> str | None:
    try:
        return (await sandbox.get(f"{LOGS}/{name}", max_bytes=MAX_REWARD_BYTES)).decode(errors="replace")
    except (OSError, UnsafePath, TooLarge):
        return None
