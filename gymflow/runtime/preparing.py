"""Making a run, or making sure that an existing one may go on."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gymflow.contracts.run import RunConfig, RunDocument
from gymflow.errors import InputError
from gymflow.models.gateway import Gateway
from gymflow.registry import Registry
from gymflow.runtime.judging import ROLE as JUDGE
from gymflow.runtime.planning import Planner, Selected
from gymflow.runtime.reusing import require_pinned
from gymflow.runtime.spent import require_prices
from gymflow.secrets import mask, written_out
from gymflow.store import Store
from gymflow.store.decisions import find_decision
from gymflow.store.lease import Lease
from gymflow.suggest import did_you_mean

_SHOWN = 5
_MAY_DIFFER = frozenset(
    [
        "name",
        "limit",
        "repeats",
        "limits",
        "run_budget",
        "reuse",
        "metrics",
        "skip_bad_rows",
        "base_url",
        "api_key",
        "api",
        "timeout_s",
        "max_retries",
        "concurrency",
    ]
)
"""Fields that a resume may change: how much is run, and how it is reached."""


async def prepare(
    store: Store,
    run_id: str,
    config: RunConfig,
    registry: Registry,
    accept_drift: Sequence[str] = (),
    decision: str | None = None,
) -> int:
    """Create the run, or check and extend it; returns how many rollouts are planned. `decision` names the one that it tests.

    Raises InputError where an existing run was sampled under another fingerprint, with the list of what differs, unless
    each difference is accepted (and then recorded); where nothing is selected; and, before anything is written, where a
    model cannot be called, in its endpoint's own words. Raises RunLocked where another process works on the run.
    """
    tested = find_decision(store, decision).decision_id if decision else None
    gateway = Gateway(config.models)
    if config.reuse == "store":
        require_pinned(gateway, config.models_sampled)
    planner = Planner(config, registry, gateway.identities())
    await planner.identify_sandboxes()
    require_references(config)
    require_prices(config, gateway)
    await gateway.preflight()
    if store.holds(run_id):
        # Held, so that a run which another process works on is not changed under it.
        lease = Lease(store.layout.run(run_id).lease, run_id)
        try:
            await asyncio.to_thread(lease.claim)
            _tie(store, run_id, tested)
            return _extend(store, run_id, config, planner, accept_drift)
        finally:
            lease.release()
    tasks = list(planner.tasks())
    planner.warn_of_defaults()
    if not tasks:
        raise InputError(
            "nothing is selected: no task is left by the limit, the task ids and the split; nothing was run"
        )
    await planner.preflight()
    document = planner.document(run_id).model_copy(update={"tests_decision": tested})
    store.create_run(document, tasks, planner.rollouts())
    return store.run(run_id).planned()


def require_references(config: RunConfig) -> None:
    """A run keeps its configuration with secrets masked, and is played from it: a secret that is written out could not be used.
    Raises InputError that names the fields."""
    if found := written_out({"models": config.model_dump(mode="json")["models"]}):
        raise InputError(
            f"{', '.join(found)}: a secret is written out; export it, and refer to it as ${{env:NAME}}, also within a URL or a "
            "header, such as http://user:${env:NAME}@host/v1"
        )


def _tie(store: Store, run_id: str, tested: str | None) -> None:
    """Let an existing run say which decision it tests, if it did not say so yet."""
    document = store.document(run_id)
    if tested is None or document.tests_decision == tested:
        return
    if document.tests_decision is not None:
        raise InputError(f"--decision {tested}: run {run_id} tests decision {document.tests_decision} already")
    store.update_run(document.model_copy(update={"tests_decision": tested}))


def _extend(store: Store, run_id: str, config: RunConfig, planner: Planner, accept_drift: Sequence[str]) -> int:
    reader = store.run(run_id)
    document = reader.document
    _check_growth(document, planner.selected)
    for name in accept_drift:
        if name not in document.fingerprint.sampling:
            raise InputError(f"--allow-drift {name}: {did_you_mean(name, document.fingerprint.sampling)}")
    drift = document.fingerprint.differing(planner.fingerprint())
    refused = [name for name in drift if name not in accept_drift]
    if refused:
        raise InputError(
            f"run {run_id} was sampled with another {', '.join(refused)}{_differences(document.config, config)}; "
            "start a new run, or go on with " + " ".join(f"--allow-drift {name}" for name in refused)
        )
    if _selection(config) == _selection(document.config) and not drift:
        kept = RunConfig.model_validate(mask(config))
        if kept != document.config:  # how it runs, and where its models are served, may change
            store.update_run(document.model_copy(update={"config": kept, "name": config.name or document.name}))
        return reader.planned()
    known_tasks: dict[tuple[str, str], tuple[int, str]] = {}
    count = 0
    for task in reader.tasks():
        known_tasks[task.environment, task.row_digest] = task.task_index, task.task_key
        if (
            "dataset" in drift
        ):  # an edited row stays the task that was planned under its id; it is not sampled as a second one
            known_tasks[task.environment, task.task_id] = task.task_index, task.task_key
        count += 1
    tasks = list(planner.tasks(first_index=count, known=known_tasks))
    planner.warn_of_defaults()
    last_index = last_chunk = -1
    known: set[tuple[int, str, int]] = set()
    for row in reader.plan():
        last_index, last_chunk = max(last_index, row.plan_index), max(last_chunk, row.chunk)
        known.add((row.task_index, row.agent, row.repeat))
    plan = planner.rollouts(last_index + 1, last_chunk + 1, frozenset(known))
    store.extend_plan(run_id, tasks, plan)
    grown = planner.document(run_id, config.name or document.name)
    accepted = sorted({*document.accepted_drift, *drift})
    kept_fields = {"created_at": document.created_at, "tests_decision": document.tests_decision}
    store.update_run(grown.model_copy(update=kept_fields | {"accepted_drift": accepted}))
    return store.run(run_id).planned()


def _check_growth(document: RunDocument, now: Iterable[Selected]) -> None:
    """A run keeps what it has planned: repeats and limits may grow, not shrink."""
    before = document.config
    limits = dict(zip(document.environments, (one.limit for one in before.environments), strict=True))
    for one in now:
        known = document.environments.get(one.label)
        if known is None:
            continue
        benchmark = known.manifest.benchmarks[known.benchmark].repeats if known.benchmark else 1
        if one.repeats < (repeats := before.repeats or benchmark):
            raise InputError(
                f"repeats {one.repeats}: the run has {repeats} of every task of {one.label}, and repeats can only grow"
            )
        limit, had = one.selection.limit, limits[one.label]
        if limit is not None and (had is None or limit < had):
            has = "all tasks" if had is None else f"the first {had} tasks"
            raise InputError(f"limit {limit}: the run has {has} of {one.label}, and a selection can only grow")


def _differences(before: RunConfig, now: RunConfig) -> str:
    """The fields of the configuration that differ, with both values; empty where what they refer to differs."""
    one, other = (dict(_flat(mask(config))) for config in (before, now))
    names = [
        name
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name) and _MAY_DIFFER.isdisjoint(name.split("."))
    ]
    shown = [f"{name} {one.get(name)!r} -> {other.get(name)!r}" for name in names[:_SHOWN]]
    more = [f"and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return f" ({', '.join(shown + more)})" if names else ""


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if not children:
        yield path, value
        return
    for name, child in children:
        yield from _flat(child, f"{path}.{name}" if path else str(name))


def _selection(config: RunConfig) -> dict[str, object]:
    """What decides which rollouts a plan has, and how they are judged."""
    fields = ("environments", "agents", "repeats", "shard", "skip_bad_rows")
    return config.model_dump(include=dict.fromkeys(fields, True) | {"models": {JUDGE}})
