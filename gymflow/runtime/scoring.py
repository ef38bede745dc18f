"""From evidence to a verdict record: the one place where a verifier is called."""

import asyncio
import math
import time
from typing import Any

from pydantic import ValidationError

from gymflow import keys
from gymflow.contracts.environment import Manifest
from gymflow.contracts.outcome import VerdictFailure
from gymflow.contracts.run import VerdictSet
from gymflow.contracts.task import Task
from gymflow.contracts.verdict import Judged, Verdict, VerdictRecord
from gymflow.runtime.components import RunEnvironment
from gymflow.verifiers import Evidence


async def score(
    *,
    run_id: str,
    rollout_id: str,
    verdict_set: str,
    task: Task,
    evidence: Evidence,
    evidence_digest: str,
    environment: RunEnvironment,
    timeout_s: float,
) -> VerdictRecord:
    """One verdict. Whatever the verifier raises becomes the reason why there is none; it never ends the run."""
    started = time.perf_counter()
    verdict: Verdict | None = None
    failure: VerdictFailure | None = None
    message: str | None = None
    try:
        fields = environment.verifier_fields(task)
        async with asyncio.timeout(timeout_s):
            verdict = await environment.verifier.verify(fields, evidence)
        message = reward_fault(verdict, environment.manifest)
        if message is not None:
            verdict, failure = None, VerdictFailure.VERIFIER_ERROR
    except TimeoutError:
        failure, message = VerdictFailure.VERIFIER_TIMEOUT, f"no verdict within {timeout_s:g} s"
    except ValidationError as error:
        failure, message = VerdictFailure.VERIFIER_ERROR, f"the task does not fit the verifier: {error}"
    except Exception as error:
        failure = getattr(error, "failure", VerdictFailure.VERIFIER_ERROR)
        message = f"{type(error).__name__}: {error}"
    return VerdictRecord(
        run_id=run_id,
        rollout_id=rollout_id,
        verdict_set=verdict_set,
        verdict_key=verdict_key(rollout_id, evidence_digest, environment.judged, task),
        verdict=verdict,
        failure=failure,
        failure_message=message,
        passed=verdict.reward >= environment.manifest.passing_reward if verdict else None,
        duration_s=time.perf_counter() - started,
        judged=environment.judged,
    )


def verdict_key(rollout_id: str, evidence_digest: str, judged: Judged, task: Task) -> str:
    """The key under which this verdict is found again."""
    return keys.verdict_key(
        rollout_id=rollout_id,
        evidence_digest=evidence_digest,
        judged=judged.model_dump(mode="json"),
        verifier_fields=task.verifier_fields,
    )


def reward_fault(verdict: Any, manifest: Manifest) -> str | None:
    """Why this is not a verdict that can be stored, or None."""
    if not isinstance(verdict, Verdict):
        return f"the verifier returned {type(verdict).__name__}, not a Verdict"
    if not math.isfinite(verdict.reward):
        return f"the reward is {verdict.reward}"
    broken = [name for name, value in verdict.components.items() if not math.isfinite(value)]
    return f"components that are not finite: {', '.join(broken)}" if broken else None


def verdict_set_of(environments: dict[str, RunEnvironment]) -> VerdictSet:
    """The set that these verifiers score into. Its name is eight hex digits over what judges, so that the same verifier finds
    its own set again."""
    judged = {label: environment.judged for label, environment in environments.items()}
    name = keys.digest({label: one.model_dump(mode="json") for label, one in judged.items()})[:8]
    return VerdictSet(name=name, created_at=time.time(), judged=judged)
