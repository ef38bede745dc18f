"""The embedded model as a provider: exact token ids and log-probabilities on every call, chained over turns.

Settings in a model's `parameters`, both optional: `path` (a checkpoint folder other than the shipped one) and `max_batch`. It
samples with temperature, top_p, a token limit and a seed; it cannot be made to call a tool or to keep to a schema, so that
`tool_choice` and `text` have no effect.
"""

from pathlib import Path
from typing import Any

from gymflow.contracts.model import ModelIdentity, ModelSpec
from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.trajectory import Usage
from gymflow.errors import InputError
from gymflow.keys import files_digest
from gymflow.models.base import (
    ContextOverflow,
    FinishReason,
    Item,
    ModelError,
    ModelRequest,
    ModelResponse,
    Provider,
    TokenIds,
)
from gymflow.models.dialects import DialectError, chat, function_call, message
from gymflow.models.embedded import CheckpointError, EmbeddedModel, GenerationRequest, parse_reply
from gymflow.models.embedded import ContextOverflow as EmbeddedOverflow
from gymflow.paths import data_dir

_UNSUPPORTED = ("top_k", "frequency_penalty", "presence_penalty", "reasoning_effort", "stop")


class Embedded(Provider):
    """One loaded model serves all rollouts of a run in one running batch."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        if unknown := sorted(spec.parameters.keys() - {"path", "max_batch", "price"}):
            raise InputError(f"the embedded model has no parameter {unknown[0]!r}; it has path and max_batch")
        self._model: EmbeddedModel | None = None
        self._tokenizer_digest = ""

    async def open(self) -> None:
        self._loaded()

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()

    def identity(self) -> ModelIdentity:
        return self._loaded().identity

    async def probe(self) -> None:
        self._loaded()

    async def complete(self, request: ModelRequest) -> ModelResponse:
        model = self._loaded()
        prompt = self._prompt(model, request)
        sampling = request.sampling
        refused = [name for name in _UNSUPPORTED if getattr(sampling, name) is not None]
        if refused:
            raise ModelError(FailureKind.MODEL_ERROR, f"the embedded model cannot sample with {', '.join(refused)}")
        wanted = GenerationRequest(
            prompt_token_ids=prompt,
            max_tokens=sampling.max_output_tokens,
            temperature=1.0 if sampling.temperature is None else sampling.temperature,
            top_p=1.0 if sampling.top_p is None else sampling.top_p,
            seed=request.seed,
            stop_token_ids=[model.tokenizer.stop_token_id],
        )
        try:
            generation = await model.generate(wanted)
        except EmbeddedOverflow as error:
            raise ContextOverflow(str(error)) from error
        reply = parse_reply(model.tokenizer.decode(generation.token_ids))
        output: list[Item] = [message(reply.content)] if reply.content or not reply.tool_calls else []
        for position, call in enumerate(reply.tool_calls):
            # Unique in the conversation, and the same whenever the rollout is repeated.
            call_id = f"call_{len(request.input)}_{position}"
            output.append(function_call(call_id, call.name, call.arguments))
        finished: FinishReason = (
            "length" if generation.finish_reason == "length" else "tool_calls" if reply.tool_calls else "stop"
        )
        return ModelResponse(
            output=output,
            finish_reason=finished,
            usage=Usage(prompt_tokens=len(prompt), completion_tokens=len(generation.token_ids)),
            reported_model=model.identity.model,
            tokens=TokenIds(
                prompt=prompt,
                completion=generation.token_ids,
                logprobs=list(generation.logprobs),
                tokenizer_digest=self._tokenizer_digest,
                weight_version=model.identity.revision,
            ),
        )

    async def text_of(self, token_ids: list[int]) -> str | None:
        return self._loaded().tokenizer.decode(token_ids)

    def _prompt(self, model: EmbeddedModel, request: ModelRequest) -> list[int]:
        try:
            if request.exact_prefix:
                new = chat.encode_messages(request.input[request.prefix_items :])
                return model.tokenizer.extend(request.exact_prefix[:-1], request.exact_prefix[-1:], new)
            messages = chat.encode_messages(request.input, request.instructions)
            return model.tokenizer.encode_chat(messages, [_tool(tool) for tool in request.tools])
        except (DialectError, ValueError) as error:
            raise ModelError(FailureKind.MODEL_ERROR, f"the embedded model: {error}") from error

    def _loaded(self) -> EmbeddedModel:
        if self._model is None:
            path = Path(self.spec.parameters.get("path") or data_dir() / "embedded").expanduser()
            try:
                self._model = EmbeddedModel.load(path, max_batch=self.spec.parameters.get("max_batch", 64))
                self._tokenizer_digest = files_digest([("tokenizer.json", (path / "tokenizer.json").read_bytes())])
            except (CheckpointError, OSError) as error:
                raise InputError(f"the embedded model cannot be loaded from {path}: {error}") from error
        return self._model


def _tool(tool: Item) -> dict[str, Any]:
    encoded = chat.encode_tool(tool)
    schema = encoded["function"].get("parameters") or {}
    encoded["function"]["parameters"] = {"properties": {}, **schema}
    return encoded
