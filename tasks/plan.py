"""Plan: which rollouts the run consists of, written before the first is played."""

import secrets
import time

from gymflow.contracts.run import RunConfig
from gymflow.paths import store_root
from gymflow.registry import Registry
from gymflow.runtime.preparing import prepare
from gymflow.store import Store
from tasks import in_flow_run, step


@step(task_run_name="plan {run_id}")
async def plan_run(
    config: RunConfig, run_id: str, store: str | None, accept_drift: list[str], decision: str | None = None
) -> int:
    """Create the run, or check that an existing one may go on and let it grow. Returns the number of planned rollouts."""
    return await prepare(Store(store_root(store)), run_id, config, Registry(), accept_drift, decision)


def new_run_id(config: RunConfig) -> str:
    """Derived from the flow run, so that its Retry continues the run; inline, from the time and chance."""
    slug = "".join(letter if letter.isalnum() else "-" for letter in config.title.lower())[:40].strip("-")
    if in_flow_run():
        from prefect.runtime import flow_run

        return f"{slug}-{flow_run.id[:8]}"
    return f"{slug}-{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(2)}"
