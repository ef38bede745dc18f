"""An agent: a harness with its parameters, on a model."""

from typing import Any

from pydantic import Field

from gymflow.contracts.base import Contract


class ComponentRef(Contract):
    """A harness or verifier by name (`root:name` where two roots have it), with its parameters."""

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)


class AgentSpec(Contract):
    """One entry of a run's `agents` map. Without a harness each environment's default one is used."""

    harness: ComponentRef | None = None
    model: str = Field("policy", description="Name in the run's `models` map.")
