"""vLLM servers that run elsewhere: exact token ids over every turn, several replicas.

Settings in a model's `parameters`, all optional, besides those of `openai`: `replicas` (base URLs of further servers of the same
model), `data_parallel_size` (engines behind one server), `logprobs_mode` (as the server was started with; default `raw`), and
`weight_version`.

A rollout stays with one replica, whose prefix cache then holds its history, and moves to another only when that one dies.

Exact ids: what the model saw and sampled is sent back id by id. A stock server takes them in `kv_transfer_params.prompt_token_ids`
of a chat request; the new part of the prompt is cut out of the server's own rendering of the conversation (`/tokenize`), behind
the last end-of-turn token of the history. The ids that the server says it used are stored, and the client compares them, so a
version that ignores the field shows as a break in the chain, never as wrong ids.
"""

import asyncio
import hashlib
from dataclasses import replace
from typing import Any

from gymflow.contracts.model import ModelIdentity, ModelSpec
from gymflow.contracts.outcome import FailureKind
from gymflow.errors import InputError
from gymflow.models import wire
from gymflow.models.base import Dialect, EventSink, ModelError, ModelRequest, ModelResponse, Provider
from gymflow.models.dialects import DialectError, chat
from gymflow.models.dialects.checked import label, token_ids
from gymflow.models.openai import OpenAI

DEAD_FOR_S = 10.0
"""How long a replica that could not be reached is left out."""
_OWN = frozenset({"replicas", "data_parallel_size", "logprobs_mode", "weight_version"})


class Vllm(Provider):
    """One or several servers of one model. Always spoken to in chat: Responses gives no exact ids."""

    dialect: Dialect | None = "chat"

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        if not spec.base_url:
            raise InputError(f"model {spec.model!r}: a vLLM server needs `base_url`, such as http://host:8000/v1")
        inner = {name: value for name, value in spec.parameters.items() if name not in _OWN - {"data_parallel_size"}}
        urls = [spec.base_url, *spec.parameters.get("replicas", ())]
        self._replicas = [
            _Replica(
                spec.model_copy(update={"base_url": url, "api": "chat", "parameters": {"token_ids": True, **inner}})
            )
            for url in urls
        ]
        self._logprobs_mode = str(spec.parameters.get("logprobs_mode", "raw"))
        self._weight_version = label(spec.parameters.get("weight_version"))
        self._end_of_turn: int | None = None

    async def open(self) -> None:
        for replica in self._replicas:
            await replica.open()

    async def close(self) -> None:
        for replica in self._replicas:
            await replica.close()

    def identity(self) -> ModelIdentity:
        return ModelIdentity(provider="vllm", model=self.spec.model, revision=self.spec.revision)

    async def probe(self) -> None:
        """Enough that one replica can be called; the others are left out until they can."""
        failures = [
            failure for failure in await asyncio.gather(*(replica.revive() for replica in self._replicas)) if failure
        ]
        if len(failures) == len(self._replicas):
            raise failures[0]

    async def complete(self, request: ModelRequest) -> ModelResponse:
        return await self._on_replica(request, None)

    async def stream(self, request: ModelRequest, sink: EventSink) -> ModelResponse:
        return await self._on_replica(request, sink)

    async def text_of(self, token_ids: list[int]) -> str | None:
        now = asyncio.get_running_loop().time()
        alive = next((replica for replica in self._replicas if replica.dead_until <= now), None)
        return await alive.text_of(token_ids) if alive is not None else None

    async def _on_replica(self, request: ModelRequest, sink: EventSink | None) -> ModelResponse:
        """The call on the rollout's replica, or on the next one when that turns out to be dead."""
        loop = asyncio.get_running_loop()
        while True:
            alive = [replica for replica in self._replicas if replica.dead_until <= loop.time()]
            replica = max(alive or self._replicas, key=lambda one: one.affinity(request.affinity))
            try:
                response = await self._call(replica, request, sink)
            except ModelError as error:
                if error.kind is not FailureKind.MODEL_UNREACHABLE:
                    raise
                replica.dead_until = loop.time() + DEAD_FOR_S
                if len(alive) <= 1 or sink is not None:
                    raise  # a stream may have begun; whether to ask again is decided above
            else:
                return self._finished(response)

    async def _call(self, replica: "_Replica", request: ModelRequest, sink: EventSink | None) -> ModelResponse:
        fields: dict[str, Any] = {}
        if request.exact_prefix and (exact := await self._exact_prompt(replica, request)):
            fields["kv_transfer_params"] = {"prompt_token_ids": exact}
        if fields:
            native = request.native and (request.native[0], {**request.native[1], **fields})
            request = replace(request, extra={**request.extra, **fields}, native=native)
        return await (replica.complete(request) if sink is None else replica.stream(request, sink))

    async def _exact_prompt(self, replica: "_Replica", request: ModelRequest) -> list[int] | None:
        """The exact history followed by what the server renders behind it; None where the history has no end to cut at."""
        assert request.exact_prefix is not None
        end = self._end_of_turn
        try:
            messages = chat.encode_messages(request.input, request.instructions)
            before = len(chat.encode_messages(request.input[: request.prefix_items], request.instructions))
        except DialectError:
            return None
        if end is None or before == 0:
            return None  # a history that ends with no answer is one whose answer was empty: its tokens were sampled all the same
        try:
            whole, history = await asyncio.gather(
                replica.tokenize(messages, request, generation_prompt=True),
                replica.tokenize(messages[:before], request, generation_prompt=False),
            )
        except ModelError as error:
            if error.status != 404:
                raise
            return None
        # Templates may render earlier turns differently once there are later ones, but not how many turns there are.
        cut = _nth_index(whole, end, history.count(end))
        if cut is None:
            return None
        closed = [] if request.exact_prefix[-1] == end else [end]
        return [*request.exact_prefix, *closed, *whole[cut + 1 :]]

    def _finished(self, response: ModelResponse) -> ModelResponse:
        tokens = response.tokens
        if tokens is not None:
            tokens.logprobs_mode = self._logprobs_mode
            tokens.weight_version = tokens.weight_version or self._weight_version
            if response.finish_reason in ("stop", "tool_calls") and tokens.completion:
                # The server ends a completion that was not cut with the token that closes the turn.
                self._end_of_turn = tokens.completion[-1]
        return response


class _Replica(OpenAI):
    """One server."""

    known_parameters = OpenAI.known_parameters | {"data_parallel_size"}

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self.dead_until = 0.0
        self._ranks: int = spec.parameters.get("data_parallel_size", 1)
        self._seed = hashlib.sha256((spec.base_url or "").encode()).digest()

    def affinity(self, rollout: int | None) -> bytes:
        """Rendezvous hashing: the replica with the highest value has the rollout, whichever others there are."""
        return hashlib.sha256(self._seed + str(rollout).encode()).digest()

    def request_headers(self, request: ModelRequest) -> dict[str, str] | None:
        if self._ranks == 1 or request.affinity is None:
            return None
        return {"x-data-parallel-rank": str(request.affinity % self._ranks)}

    async def revive(self) -> ModelError | None:
        """Probe; an answer ends its exclusion."""
        try:
            await self.probe()
        except ModelError as error:
            return error
        self.dead_until = 0.0
        return None

    async def tokenize(self, messages: list[Any], request: ModelRequest, *, generation_prompt: bool) -> list[int]:
        """The server's own rendering of a conversation. Lies beside `/v1`, not below it."""
        body: dict[str, Any] = {
            "model": self.spec.model,
            "messages": messages,
            "add_generation_prompt": generation_prompt,
        }
        if request.tools:
            body["tools"] = [chat.encode_tool(tool) for tool in request.tools]
        if "chat_template_kwargs" in request.extra:
            body["chat_template_kwargs"] = request.extra["chat_template_kwargs"]
        status, headers, content = await self.endpoint.send("POST", "/tokenize", wire.dumps(body), beside_version=True)
        if status != 200:
            raise self.endpoint.failure(status, headers, content)
        rendered = self.endpoint.parsed(content).get("tokens")
        try:
            return token_ids(rendered)
        except DialectError as error:
            words = f"{self.endpoint.shown_url}: /tokenize: {error}"
            raise ModelError(FailureKind.MODEL_ERROR, words, status=200) from error


def _nth_index(ids: list[int], wanted: int, count: int) -> int | None:
    """Where an id occurs for the n-th time, or None."""
    found = [index for index, token in enumerate(ids) if token == wanted]
    return found[count - 1] if 0 < count <= len(found) else None
