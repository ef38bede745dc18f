"""The digests that identify what a rollout is and what judged it.

All are SHA-256 over canonical JSON, in lower-case hex. Golden tests pin every one of them: a change here makes stored work
unfindable, so it is made by raising a protocol number, never by accident.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from pydantic_core import PydanticSerializationError

from gymflow.canonical import canonical_json
from gymflow.contracts.model import ModelIdentity, Sampling
from gymflow.contracts.rollout import EvidenceRecord
from gymflow.contracts.sandbox import merged
from gymflow.contracts.task import Task

SAMPLING_PROTOCOL = 1
"""Raised when the engine changes what a model sees."""

SCORING_PROTOCOL = 1
"""Raised when the engine changes how evidence is read."""

DECIDED_BY_THE_RUN = ("provider", "options", "limits")
"""Parts of an environment's sandbox that are in the rollout key, but do not make it another task."""


def digest(value: Any) -> str:
    """SHA-256 of a JSON value."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def files_digest(files: Iterable[tuple[str, bytes]]) -> str:
    """SHA-256 over (relative path, bytes) pairs in the order of their paths. Lengths frame each part, so that moving bytes
    between neighbours cannot give the same digest."""
    total = hashlib.sha256()
    for path, content in sorted(files):
        name = path.encode("utf-8", "surrogateescape")
        total.update(len(name).to_bytes(8, "big") + name + len(content).to_bytes(8, "big") + content)
    return total.hexdigest()


def task_key(task: Task, sandbox: dict[str, Any] | None) -> str:
    """What the agent sees of a task with rendered input: pairs tasks across runs. Sampling values in the row, the verifier's
    fields, and what the run decides about the environment's sandbox (its provider and limits) are not part of it."""
    create = task.responses_create_params
    return digest(
        {
            "input": create.input,
            "instructions": create.instructions,
            "tools": create.tools or [],
            "tool_choice": create.tool_choice,
            "state": task.state,
            "sandbox": merged(
                sandbox and {name: value for name, value in sandbox.items() if name not in DECIDED_BY_THE_RUN},
                task.sandbox,
            ),
        }
    )


def row_digest(task: Task) -> str:
    """The whole row, the verifier's fields included."""
    return digest(task.model_dump(mode="json", exclude_none=True))


def sampling_digest(sampling: Sampling) -> str:
    """Sampling parameters that are set."""
    return digest(sampling.model_dump(mode="json", exclude_none=True, exclude_defaults=True))


def agent_digest(
    *,
    environment_digest: str,
    harness_digest: str,
    harness_parameters: dict[str, Any],
    model: ModelIdentity,
    sampling: Sampling,
    auxiliary: dict[str, ModelIdentity],
    budgets: dict[str, Any],
    sandbox: dict[str, Any] | None,
) -> str:
    """The part of a rollout key that all rollouts of one agent in one environment share."""
    return digest(
        {
            "protocol": SAMPLING_PROTOCOL,
            "environment": environment_digest,
            "harness": harness_digest,
            "harness_parameters": harness_parameters,
            "model": model.model_dump(mode="json"),
            "sampling": sampling_digest(sampling),
            "auxiliary": {role: identity.model_dump(mode="json") for role, identity in auxiliary.items()},
            "budgets": budgets,
            "sandbox": sandbox,
        }
    )


def rollout_key(
    agent: str, task: str, *, row_sampling: dict[str, Any], seed: int | None, repeat: int, occurrence: int
) -> str:
    """What was asked of one rollout. `agent` and `task` are digests; `occurrence` counts equal rows of one dataset."""
    return digest([agent, task, row_sampling, seed, repeat, occurrence])


def evidence_json(evidence: EvidenceRecord) -> bytes:
    """The evidence as what its digest is over."""
    try:
        return evidence.model_dump_json().encode()
    except PydanticSerializationError:  # a lone surrogate in what the model said
        return canonical_json(evidence.model_dump(mode="json"))


def evidence_digest(evidence: EvidenceRecord | bytes) -> str:
    """What a verifier may read, or its `evidence_json`. Computed once, when the rollout ends, and stored with it."""
    return hashlib.sha256(evidence if isinstance(evidence, bytes) else evidence_json(evidence)).hexdigest()


def verdict_key(*, rollout_id: str, evidence_digest: str, judged_digest: str, fields_digest: str) -> str:
    """What a verdict depends on: the same key gives the same verdict. `judged_digest` is over what judges, `fields_digest` over
    the task's verifier fields."""
    return digest([SCORING_PROTOCOL, rollout_id, evidence_digest, judged_digest, fields_digest])


def question_key(*, judge: dict[str, Any], instructions: str, text: str, schema: dict[str, Any], sample: int) -> str:
    """A question to a judge model: who is asked (identity and sampling), what, and for which of several votes."""
    return digest([SCORING_PROTOCOL, judge, instructions, text, schema, sample])


def derived_seed(*parts: Any) -> int:
    """A seed in [0, 2^31) from whatever identifies its use; equal parts give equal seeds on every machine."""
    return int.from_bytes(hashlib.sha256(canonical_json(list(parts))).digest()[:4], "big") >> 1
