"""Stored runs made of arrays: columns that statistics read, in the store's own schemas, without playing a rollout."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gymflow.contracts.environment import Manifest
from gymflow.contracts.run import (
    EnvironmentOfRun,
    EnvironmentSelection,
    Fingerprint,
    RunConfig,
    RunDocument,
    VerdictSet,
)
from gymflow.contracts.verdict import Judged
from gymflow.store import Store
from gymflow.store.layout import RunLayout
from gymflow.store.manifest import Part, RunManifest
from gymflow.store.plan import PLAN, TASKS
from gymflow.store.tables import SCHEMAS

JUDGED = Judged(verifier="mcqa", version="1", code_digest="c" * 64, parameter_digest="d" * 64)
SAMPLING = dict.fromkeys(
    ("model", "harness", "prompt", "sampling", "dataset", "environment", "sandbox", "engine"), "same"
)
ENVIRONMENT = Manifest.model_validate(
    {
        "name": "mcqa",
        "version": "1",
        "description": "Questions.",
        "domain": "knowledge",
        "licence": "MIT",
        "datasets": {"test": {"file": "test.jsonl"}},
        "verifier": {"name": "mcqa"},
    }
)
_PART = "000000.parquet"


def write_run(
    store: Store,
    run_id: str,
    rewards: Any,
    *,
    answers: Sequence[str | None] | None = None,
    tags: Sequence[list[str]] | None = None,
    clusters: Sequence[str | None] | None = None,
    components: Sequence[str | None] | None = None,
    task_keys: Sequence[str] | None = None,
    row_digests: Sequence[str] | None = None,
    varied: dict[str, str] | None = None,
    calls: bool = False,
    cost_usd: float | None = None,
    created_at: float = 1.0,
    manifest: Manifest = ENVIRONMENT,
    sampled_in: str | None = None,
) -> None:
    """A run of tasks x repeats `rewards`; NaN: failed, not scored; infinite: missing. The other sequences are per rollout (`answers`,
    `components`, repeat by repeat like the plan) or per task. `varied` changes digests of the fingerprint."""
    rewards = np.asarray(rewards, float)
    tasks, repeats = rewards.shape
    layout = store.layout.run(run_id)
    for folder in ("journal", "parts/rollouts", "parts/verdicts", "parts/model_calls"):
        (layout.folder / folder).mkdir(parents=True, exist_ok=True)
    keys = pa.array(task_keys if task_keys is not None else _numbered("k", np.arange(tasks), 64))
    _write(
        layout.tasks,
        TASKS,
        tasks,
        run_id=run_id,
        task_index=np.arange(tasks),
        task_key=keys,
        row_digest=pa.array(row_digests) if row_digests is not None else keys,
        environment=manifest.name,
        split="test",
        task_id=_numbered("q", np.arange(tasks)),
        tags=pa.array(tags, pa.list_(pa.string()))
        if tags is not None
        else pa.array([[]] * tasks, pa.list_(pa.string())),
        cluster=pa.array(clusters, pa.string()) if clusters is not None else None,
        flags=pa.array([[]] * tasks, pa.list_(pa.string())),
        task="{}",
    )
    task = np.tile(np.arange(tasks), repeats)
    repeat = np.repeat(np.arange(repeats), tasks)
    index = np.arange(tasks * repeats)
    flat = rewards.T.reshape(-1)
    planned = {
        "run_id": run_id,
        "plan_index": index,
        "task_key": pc.take(keys, pa.array(task)),
        "task_id": _numbered("q", task),
        "environment": manifest.name,
        "split": "test",
        "agent": "policy",
        "repeat": repeat,
        "seed": index,
        "rollout_key": _numbered("r", index, 64),
    }
    _write(layout.plan, PLAN, len(index), **planned, task_index=task, chunk=index // 256)
    held, scored = ~np.isinf(flat), np.isfinite(flat)
    ids = _numbered(f"{run_id}-", index)
    rng = np.random.default_rng(0)
    rollouts = planned | {
        "rollout_id": ids,
        "seq": index,
        "model": "policy",
        "status": pa.array(np.where(scored, "completed", "failed")),
        "stop_reason": pc.if_else(pa.array(scored), "finished", None),
        "failure": pc.if_else(pa.array(scored), None, "model_unreachable"),
        "started_at": 1e9 + index,
        "duration_s": rng.gamma(2.0, 2.0, len(index)).round(3),
        "turns": np.ones(len(index), int),
        "model_calls": np.ones(len(index), int),
        "tool_calls": np.zeros(len(index), int),
        "prompt_tokens": rng.integers(100, 200, len(index)),
        "completion_tokens": rng.integers(10, 300, len(index)),
        "cost_usd": None if cost_usd is None else np.full(len(index), cost_usd),
        "attempts": np.zeros(len(index), int),
        "sampled_in": sampled_in or run_id,
        "evidence_digest": _numbered("e", index, 64),
    }
    parts = {"rollouts": _table("rollouts", rollouts, held)}
    parts["verdicts"] = _table(
        "verdicts",
        {
            "run_id": run_id,
            "rollout_id": ids,
            "verdict_set": "first",
            "seq": index,
            "verdict_key": _numbered("v", index, 64),
            "reward": flat,
            "passed": flat >= manifest.passing_reward,
            "extracted_answer": None if answers is None else pa.array(answers, pa.string()),
            "components": None if components is None else pa.array(components, pa.string()),
            "masked": np.zeros(len(index), bool),
            "duration_s": np.zeros(len(index)),
            "verifier": "mcqa",
            "verifier_version": "1",
            "code_digest": JUDGED.code_digest,
            "parameter_digest": JUDGED.parameter_digest,
        },
        scored,
    )
    if calls:
        parts["model_calls"] = _table(
            "model_calls",
            {name: rollouts[name] for name in ("run_id", "rollout_id", "seq", "prompt_tokens", "completion_tokens")}
            | {
                "call": np.zeros(len(index), int),
                "role": "policy",
                "model": "stand-in",
                "status": "ok",
                "attempts": np.ones(len(index), int),
                "started_at": rollouts["started_at"],
                "duration_s": rollouts["duration_s"],
            },
            held,
        )
    for table, rows in parts.items():
        pq.write_table(rows, layout.part(table, _PART), compression="zstd", compression_level=1, row_group_size=1 << 17)
    _commit(layout, run_id, parts, varied or {}, created_at, manifest)


def _commit(
    layout: RunLayout,
    run_id: str,
    parts: dict[str, pa.Table],
    varied: dict[str, str],
    created_at: float,
    manifest: Manifest,
) -> None:
    committed = {
        table: [Part(file=_PART, rows=rows.num_rows, bytes=layout.part(table, _PART).stat().st_size)]
        for table, rows in parts.items()
    }
    sets = [VerdictSet(name="first", created_at=1.0, judged={manifest.name: JUDGED})]
    at_most = max(rows.num_rows for rows in parts.values())
    layout.manifest.write_text(
        RunManifest(parts=committed, next_part=1, next_seq=at_most, verdict_sets=sets).model_dump_json()
    )
    document = RunDocument(
        run_id=run_id,
        name=run_id,
        created_at=created_at,
        config=RunConfig(environments=[EnvironmentSelection(name=manifest.name)]),
        fingerprint=Fingerprint(sampling=SAMPLING | varied, scoring={"verifier": "v", "judge": "j"}),
        environments={manifest.name: EnvironmentOfRun(reference=manifest.name, split="test", manifest=manifest)},
        agents={},
        identities={},
        versions={"gymflow": "0"},
    )
    layout.document.write_text(document.model_dump_json())


def _table(table: str, columns: dict[str, Any], kept: Any) -> pa.Table:
    return _columns(SCHEMAS[table], len(kept), columns).filter(pa.array(kept))


def _write(path: Any, schema: pa.Schema, count: int, **columns: Any) -> None:
    pq.write_table(_columns(schema, count, columns), path, compression="zstd", compression_level=1)


def _columns(schema: pa.Schema, count: int, columns: dict[str, Any]) -> pa.Table:
    unknown = columns.keys() - set(schema.names)
    assert not unknown, unknown
    arrays = []
    for field in schema:
        value = columns.get(field.name)
        if value is None:
            arrays.append(pa.nulls(count, field.type))
        elif isinstance(value, pa.Array | pa.ChunkedArray):
            arrays.append(value.cast(field.type))
        elif isinstance(value, np.ndarray):
            arrays.append(pa.array(value, field.type))
        else:
            arrays.append(pa.array(itertools.repeat(value, count), field.type, size=count))
    return pa.table(arrays, schema)


def _numbered(prefix: str, numbers: Any, width: int = 0) -> pa.Array:
    text = pc.cast(pa.array(numbers), pa.string())
    return pc.binary_join_element_wise(prefix, pc.utf8_lpad(text, width, "0") if width else text, "")
