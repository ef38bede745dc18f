"""The rollout store: what a run planned, sampled and scored, kept for good.

    store = Store("gymflow-store")
    store.create_run(document, tasks, plan)
    async with store.writer(run_id) as writer:
        await writer.commit(record, verdicts)      # durable when it returns
        await writer.finish()
    for row in connect(store.root).execute("select task_id, reward from outcomes").fetchall(): ...

The names below are imported when they are first used: `import gymflow.store` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gymflow.store.catalog import Store
    from gymflow.store.layout import rollout_id
    from gymflow.store.reader import RunReader
    from gymflow.store.reuse import find_completed, reused
    from gymflow.store.sql import QueryResult, query
    from gymflow.store.stored import StoredRollout
    from gymflow.store.views import connect
    from gymflow.store.writer import RunWriter

_WHERE = {
    "QueryResult": "sql",
    "RunReader": "reader",
    "RunWriter": "writer",
    "Store": "catalog",
    "StoredRollout": "stored",
    "connect": "views",
    "find_completed": "reuse",
    "query": "sql",
    "reused": "reuse",
    "rollout_id": "layout",
}

__all__ = [
    "QueryResult",
    "RunReader",
    "RunWriter",
    "Store",
    "StoredRollout",
    "connect",
    "find_completed",
    "query",
    "reused",
    "rollout_id",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'gymflow.store' has no attribute {name!r}")
    return getattr(import_module(f"gymflow.store.{_WHERE[name]}"), name)
