"""The stored form of a rollout as JSON Schema, published as docs/rollout.schema.json."""

from typing import Any

from gymflow.contracts.base import SCHEMA_VERSION
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.trajectory import TRAJECTORY_VERSION


def rollout_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of what one rollout leaves behind. The trajectory in it says its own version."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"gymflow:rollout:{SCHEMA_VERSION}.{TRAJECTORY_VERSION}",
        **RolloutRecord.model_json_schema(mode="serialization"),
    }
