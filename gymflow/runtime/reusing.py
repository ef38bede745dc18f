"""Reuse scope `store`: any run's rollout with the same key serves, instead of sampling it again."""

from collections import defaultdict

from gymflow.contracts.plan import PlannedRollout
from gymflow.errors import InputError
from gymflow.models.gateway import Gateway
from gymflow.runtime.active import ActiveRun
from gymflow.store import Store, find_completed, reused
from gymflow.store.layout import plan_index_of


def require_pinned(gateway: Gateway, models: list[str]) -> None:
    """Refuse to reuse samples of a name that may have come to mean another model."""
    loose = [name for name, identity in gateway.identities().items() if name in models and not identity.pinned]
    if loose:
        raise InputError(
            f"--reuse store: model {', '.join(loose)} is not pinned, so its earlier samples may be another model's; give it a "
            "`revision` in the configuration, or use --reuse run"
        )


async def reuse(run: ActiveRun, store: Store) -> None:
    """Copy into the run what other runs of the store hold of its pending rollouts, scored by this run's verifiers."""
    for chunk in run.plan.chunks():
        by_key: dict[str, PlannedRollout] = {row.rollout_key: row for row in run.plan.rows(chunk, run.completed)}
        found = find_completed(store.root, by_key)
        sources: dict[str, dict[int, str]] = defaultdict(dict)
        for key, (source, rollout) in found.items():
            if source != run.run_id:
                sources[source][plan_index_of(rollout)] = key
        for source, keys in sources.items():
            for record in store.run(source).records(keys):
                planned = by_key[keys[record.rollout.plan_index]]
                await run.take(reused(record, run.run_id, planned), planned)
