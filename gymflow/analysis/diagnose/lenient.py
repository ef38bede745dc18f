"""Scoring failed rollouts a second time, leniently: what passes then failed for its form alone."""

from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from gymflow.analysis.judging import manifest_as_judged
from gymflow.registry import Registry
from gymflow.runtime.components import PreparedTasks, RunEnvironment, run_environment, verifier_parameters
from gymflow.runtime.concurrency import spread
from gymflow.runtime.rejudging import NOT_RERUN
from gymflow.runtime.scoring import score
from gymflow.store import RunReader, StoredRollout
from gymflow.store.memory import release

AT_ONCE = 64
TASKS_KEPT = 4_000


async def score_leniently(connection: duckdb.DuckDBPyConnection, reader: RunReader, verdict_set: str | None) -> None:
    """Make `facts.lenient` (rollout_id): scored rollouts that did not pass in the set and do under its verifiers' `lenient()`.

    Verifiers without a lenient twin, that ask a judge, or whose verdicts cannot be made again are left out.
    """
    connection.execute("create table facts.lenient (rollout_id varchar)")
    named = connection.execute(
        "select distinct environment from facts.rollouts where outcome = 'scored' and not passed"
    ).fetchall()
    environments = dict(_twins(reader, verdict_set, {environment for (environment,) in named}))
    if not environments:
        return
    wanted = _failing(connection, list(environments))
    tasks = PreparedTasks(environments, TASKS_KEPT)
    try:
        for environment in environments.values():
            await environment.verifier.open()
        for batch in reader.stored():
            chosen = [one for one in batch if one.plan_index < len(wanted) and wanted[one.plan_index]]
            if passing := await _passing(reader, chosen, environments, tasks):
                connection.register("_passing", pa.table({"rollout_id": passing}))
                connection.execute("insert into facts.lenient select rollout_id from _passing")
                connection.unregister("_passing")
    finally:
        for environment in environments.values():
            await environment.verifier.close()
        release(connection)


def _failing(connection: duckdb.DuckDBPyConnection, environments: list[str]) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """By plan index, whether a rollout of these environments was scored and did not pass."""
    query = """
    select plan_index from facts.rollouts where outcome = 'scored' and not passed and list_contains($names, environment)
    """
    places = connection.execute(query, {"names": environments}).fetchnumpy()["plan_index"]
    wanted = np.zeros(int(places.max()) + 1 if len(places) else 0, dtype=np.bool_)
    wanted[places] = True
    return wanted


async def _passing(
    reader: RunReader,
    batch: list[StoredRollout],
    environments: Mapping[str, RunEnvironment],
    tasks: PreparedTasks,
) -> list[str]:
    """Those that pass."""
    timeout_s = reader.document.config.limits.verifier_timeout_s

    async def one(stored: StoredRollout) -> str | None:
        record = await score(
            run_id=reader.run_id,
            rollout_id=stored.rollout_id,
            verdict_set="lenient",
            task=tasks.of(stored),
            evidence=stored.evidence,
            evidence_digest=stored.evidence_digest,
            environment=environments[stored.environment],
            timeout_s=timeout_s,
        )
        return stored.rollout_id if record.passed else None

    return [found for found in await spread(one, batch, AT_ONCE) if found]


def _twins(reader: RunReader, verdict_set: str | None, wanted: set[str]) -> Iterator[tuple[str, RunEnvironment]]:
    registry = Registry()
    for label in sorted(wanted & reader.document.environments.keys()):
        reference = reader.document.environments[label].reference
        entry = registry.environment(reference) if reference else None
        manifest = manifest_as_judged(reader, label, verdict_set)
        cls = registry.verifier_class(manifest.verifier.name, entry)
        verifier = cls(verifier_parameters(cls, manifest))
        if verifier.rerun in NOT_RERUN or "judge" in verifier.needs or (twin := verifier.lenient()) is None:
            continue
        changed = manifest.verifier.model_copy(update={"parameters": twin.model_dump()})
        yield label, run_environment(registry, entry, manifest.model_copy(update={"verifier": changed}), None)
