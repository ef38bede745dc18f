"""Prefect cache policies of the steps."""

from dataclasses import dataclass
from typing import Any

from prefect.cache_policies import CachePolicy
from prefect.context import TaskRunContext


@dataclass
class ChunkKeys(CachePolicy):
    """The digest that a chunk carries is its key; what else a step is handed does not matter."""

    def compute_key(
        self, task_ctx: TaskRunContext, inputs: dict[str, Any], flow_parameters: dict[str, Any], **_: Any
    ) -> str:
        return str(inputs["chunk"].digest)
