"""Rescore: a new verdict set over stored rollouts."""

from dataclasses import asdict
from typing import Any

from gymflow.paths import store_root
from gymflow.registry import Registry
from gymflow.runtime.rescoring import rescore
from gymflow.store import Store
from tasks import step


@step(task_run_name="rescore {run_id}")
async def rescore_run(run_id: str, parameters: dict[str, Any], store: str | None) -> dict[str, Any]:
    """Score every completed rollout that has no reward from this verifier yet; returns counts and what was refused."""
    place = Store(store_root(store))
    return asdict(await rescore(place, place.resolve_run_id(run_id), parameters, Registry()))
