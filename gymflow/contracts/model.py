"""A model: where it is served, under which identity, how it is sampled."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from gymflow.contracts.base import Contract


class Sampling(Contract):
    """Sampling parameters; None means: not sent, the server's default holds. Zero is a value."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = None
    max_output_tokens: int | None = Field(None, ge=1)
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    reasoning_effort: str | None = None
    stop: list[str] | None = None
    extra: dict[str, Any] = Field(default_factory=dict, description="Sent to the endpoint as further body fields.")

    @property
    def given(self) -> dict[str, Any]:
        """The parameters that are set, by name."""
        return {name: value for name, value in vars(self).items() if value is not None and value != {}}


class ModelSpec(Contract):
    """One model of a run. `api_key` is a reference such as `${env:OPENAI_API_KEY}`, never the key itself."""

    provider: str = Field("openai", description="openai, embedded, scripted, replay; see `gym list models`.")
    model: str = Field("", description="The served name, as the endpoint knows it.")
    revision: str | None = Field(
        None, description="What makes a hosted name one fixed model; without it it is not pinned."
    )
    base_url: str | None = None
    api: Literal["responses", "chat"] = Field("chat", description="Dialect that the endpoint is spoken to in.")
    api_key: str | None = None
    sampling: Sampling = Field(default_factory=lambda: Sampling())
    concurrency: int | None = Field(None, ge=1, description="Most calls in flight to this model.")
    timeout_s: float = Field(600.0, gt=0, description="Longest that one call may take, in seconds.")
    max_retries: int = Field(5, ge=0, description="Further attempts of one call after the first.")
    parameters: dict[str, Any] = Field(default_factory=dict, description="The provider's own settings.")


class ModelIdentity(Contract):
    """What must be equal for two samples to come from the same model."""

    provider: str
    model: str
    revision: str | None = None

    @property
    def pinned(self) -> bool:
        """Whether the name cannot silently come to mean another model."""
        return self.revision is not None
