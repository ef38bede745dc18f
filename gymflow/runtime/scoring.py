"""From evidence to a verdict record: the one place where a verifier is called."""

import math
import time
from collections.abc import Set
from typing import Any

from gymflow import keys
from gymflow.contracts.outcome import VerdictFailure
from gymflow.contracts.verdict import Verdict, VerdictRecord
from gymflow.runtime.components import RunEnvironment, RunTask
from gymflow.runtime.concurrency import within
from gymflow.runtime.plugins import own_doing
from gymflow.verifiers import Evidence, VerifierError


async def score(
    *,
    run_id: str,
    rollout_id: str,
    verdict_set: str,
    task: RunTask,
    evidence: Evidence,
    evidence_digest: str,
    environment: RunEnvironment,
    timeout_s: float,
    refused: VerifierError | None = None,
) -> VerdictRecord:
    """One verdict. Whatever the verifier raises becomes the reason why there is none; it never ends the run.

    `refused` says why the evidence cannot be judged, where that is known already. A verifier that asks a judge model is not timed: its calls have limits of their own, and wait for the model's slots.
    """
    started = time.perf_counter()
    hearing = environment.judge.hearing() if environment.judge else None
    evidence.judge = hearing
    evidence.input = task.input
    verdict: Verdict | None = None
    failure: VerdictFailure | None = None
    message: str | None = None
    try:
        if refused is not None:
            raise refused
        if task.fields is None:
            raise VerifierError(task.fault)
        if (lacking := missing_evidence(environment.verifier.needs, evidence)) is not None:
            raise MissingEvidence(lacking)
        judging = environment.verifier.verify(task.fields, evidence)
        verdict = await within(None if hearing else timeout_s, judging)
        if (message := reward_fault(verdict, environment.manifest.reward_range)) is not None:
            verdict, failure = None, VerdictFailure.VERIFIER_ERROR
    except TimeoutError:
        failure, message = VerdictFailure.VERIFIER_TIMEOUT, f"no verdict within {timeout_s:g} s"
    except BaseException as error:
        if not own_doing(error):
            raise
        failure = getattr(error, "failure", VerdictFailure.VERIFIER_ERROR)
        message = f"{type(error).__name__}: {error}"
    return VerdictRecord(
        run_id=run_id,
        rollout_id=rollout_id,
        verdict_set=verdict_set,
        verdict_key=keys.verdict_key(
            rollout_id=rollout_id,
            evidence_digest=evidence_digest,
            judged_digest=environment.judged_digest,
            fields_digest=task.fields_digest,
        ),
        verdict=verdict,
        failure=failure,
        failure_message=message,
        passed=verdict.reward >= environment.manifest.passing_reward if verdict else None,
        duration_s=time.perf_counter() - started,
        judged=environment.judged,
        calls=tuple(hearing.calls) if hearing else (),
    )


class MissingEvidence(VerifierError):
    """The rollout lacks what the verifier reads."""


_NO_TRAJECTORY = ("no_turns", "no_history")


def missing_evidence(needs: Set[str], evidence: Evidence) -> str | None:
    """Which piece of evidence a verifier needs and the rollout does not have; None where all is there. Only what a rollout says
    it could not show counts as missing: an agent that said nothing has said so."""
    if "state" in needs and evidence.snapshot is None:
        return "it needs state, and the rollout has no snapshot of its session"
    if needs & {"trajectory", "artifacts"}:
        gaps = {gap.code for gap in evidence.trajectory.gaps}
        if "trajectory" in needs and (found := sorted(gaps.intersection(_NO_TRAJECTORY))):
            return f"it needs the trajectory, and the rollout has a gap: {', '.join(found)}"
        if "artifacts" in needs and "imported" in gaps and not evidence.artifacts:
            return "it needs artifacts, and the rollout was imported without any"
    return None


def reward_fault(verdict: Any, reward_range: tuple[float, float]) -> str | None:
    """Why this is not a verdict that can be stored, or None. What the manifest's range does not hold was not given by its rules."""
    if not isinstance(verdict, Verdict):
        return f"the verifier returned {type(verdict).__name__}, not a Verdict"
    if not math.isfinite(verdict.reward):
        return f"the reward is {verdict.reward}"
    low, high = reward_range
    if not low <= verdict.reward <= high:
        return f"the reward {verdict.reward:g} lies outside the manifest's reward_range, {low:g} to {high:g}"
    broken = [name for name, value in verdict.components.items() if not math.isfinite(value)]
    return f"components that are not finite: {', '.join(broken)}" if broken else None
