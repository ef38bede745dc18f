"""What a harness asks of a model, what it gets, and what a provider has to do.

The engine speaks the OpenAI Responses item vocabulary (`message`, `function_call`, `function_call_output`, `reasoning`);
a provider translates to what its endpoint speaks. These are plain dataclasses: they are built once per call on the hot path.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from gymflow.contracts.model import ModelIdentity, ModelSpec, Sampling
from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.trajectory import Usage

Item = dict[str, Any]
Dialect = Literal["chat", "responses", "messages"]
EventSink = Callable[[bytes], Awaitable[None]]
"""Takes the server-sent events of an answer, one whole event at a time, as they arrive."""

FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "refusal"]


@dataclass(slots=True)
class ModelRequest:
    """One call, with the complete history. `seed` is the rollout's own, already mixed with the repeat and call index."""

    input: list[Item]
    tools: list[Item] = field(default_factory=list)
    instructions: str | None = None
    sampling: Sampling = field(default_factory=Sampling)
    seed: int | None = None
    tool_choice: str | Item | None = None
    parallel_tool_calls: bool | None = None
    text: Item | None = None
    reasoning: Item | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    exact_prefix: list[int] | None = None
    """Exact ids of the conversation so far (prompt + completion of the parent call), where the provider can be handed them."""
    prefix_items: int = 0
    """How many leading items of `input` the exact prefix covers."""
    affinity: int | None = None
    """A number that the calls of one rollout share, so that they can go to one replica and its prefix cache."""
    native: tuple[Dialect, dict[str, Any]] | None = None
    """The body that a foreign harness sent, and its dialect: passed on as it is to an endpoint that speaks it."""

    def of_rollout(self, seed: int | None, affinity: int) -> "ModelRequest":
        """A copy with the rollout's own. Written out, as `dataclasses.replace` takes three times as long."""
        return ModelRequest(
            self.input,
            self.tools,
            self.instructions,
            self.sampling,
            seed,
            self.tool_choice,
            self.parallel_tool_calls,
            self.text,
            self.reasoning,
            self.extra,
            self.exact_prefix,
            self.prefix_items,
            affinity,
            self.native,
        )


@dataclass(slots=True)
class TokenIds:
    """Exact ids of one call, as the server used and sampled them; `logprobs` in nats, one per completion id."""

    prompt: list[int]
    completion: list[int]
    logprobs: list[float | None]
    logprobs_mode: str = "processed"
    tokenizer_digest: str | None = None
    weight_version: str | None = None


@dataclass(slots=True)
class ModelResponse:
    """One answer: output items in order, and what the server said about it."""

    output: list[Item]
    finish_reason: FinishReason
    usage: Usage
    reported_model: str | None = None
    response_id: str | None = None
    tokens: TokenIds | None = None
    first_token_s: float | None = None
    native: dict[str, Any] | None = None
    """The endpoint's whole answer in its own dialect, where the request was passed on as it was."""


class ModelError(Exception):
    """One attempt of a call failed. `message` holds the endpoint's own words, secrets removed."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class SinkClosed(Exception):
    """Raised by a sink: nobody reads the answer any more."""


class ContextOverflow(Exception):
    """The history no longer fits the model's context: the agent's doing, not an infrastructure failure."""


class RemoteSink(ABC):
    """A sink in another process, which makes the attempt itself, so that no event comes through this one."""

    begun = False
    """Whether something has been handed on."""

    @abstractmethod
    async def stream(self, provider: "Provider", request: ModelRequest) -> ModelResponse:
        """`provider.stream`, made elsewhere. Raises ModelError or ContextOverflow."""


Sink = EventSink | RemoteSink
"""Where a streamed answer goes."""


class Provider(ABC):
    """Talks to one kind of endpoint. One instance serves all rollouts of a run; retries are not its business."""

    dialect: Dialect | None = None
    """What its endpoint speaks; None where requests cannot be passed on to it as they are."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec

    @abstractmethod
    async def open(self) -> None:
        """Acquire connections, load weights."""

    @abstractmethod
    async def close(self) -> None:
        """Release them; idempotent."""

    @abstractmethod
    def identity(self) -> ModelIdentity:
        """What the samples' identity digests; valid before `open` where the provider can."""

    def remote_spec(self) -> ModelSpec:
        """What another process makes a provider of, to call the same endpoint."""
        return self.spec

    @abstractmethod
    async def probe(self) -> None:
        """Cheapest proof that calls can succeed (reachable, key accepted, model served). Raises ModelError within 5 s."""

    async def preflight(self) -> None:
        """Before a run: what would keep its calls from succeeding, found out within seconds. The provider is not left open."""
        await self.open()
        try:
            await self.probe()
        finally:
            await self.close()

    @abstractmethod
    async def complete(self, request: ModelRequest) -> ModelResponse:
        """One attempt of one call. Raises ModelError or ContextOverflow."""

    async def text_of(self, token_ids: list[int]) -> str | None:
        """What token ids say, special ones included; None where the endpoint does not tell."""
        return None

    async def stream(self, request: ModelRequest, sink: EventSink) -> ModelResponse:
        """`complete`, handing the endpoint's events on as they arrive. Only for `native` requests in the provider's dialect."""
        raise NotImplementedError(f"{type(self).__name__} does not stream")
