"""A stored run as a model: what was asked before is answered as it was answered then, and anything else is an error.

    models:
      policy:
        provider: replay
        model: qwen3-8b             # served name in that run; may be left out when the run has only one model
        parameters: {run: nightly-7, store: ./gymflow-store}

A request is the same when its history, instructions, tools and parameters are, the seed included. Of several answers to the
same request each is given in turn.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, cast

from gymflow.contracts.model import ModelIdentity, ModelSpec
from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.trajectory import ModelCall
from gymflow.errors import InputError
from gymflow.keys import digest
from gymflow.models.base import FinishReason, Item, ModelError, ModelRequest, ModelResponse, Provider
from gymflow.models.client import call_parameters, tools_digest
from gymflow.models.history import core
from gymflow.paths import store_root
from gymflow.store import Store


@dataclass(slots=True)
class _Answers:
    """Recorded answers to one request, and how many have been given."""

    calls: list[ModelCall]
    given: int = 0


class Replay(Provider):
    """Reads the run when it is opened; later calls need no store."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self._run = spec.parameters.get("run")
        if not self._run:
            raise InputError("a replay model needs `parameters.run`: the run that it answers from")
        if unknown := sorted(spec.parameters.keys() - {"run", "store", "price"}):
            raise InputError(f"a replay model has no parameter {unknown[0]!r}; it has run and store")
        self._answers: dict[str, _Answers] | None = None

    async def open(self) -> None:
        self._loaded()

    async def close(self) -> None:
        """Nothing to release."""

    async def probe(self) -> None:
        self._loaded()

    def identity(self) -> ModelIdentity:
        return ModelIdentity(provider="replay", model=self.spec.model, revision=str(self._run))

    async def complete(self, request: ModelRequest) -> ModelResponse:
        answers = self._loaded().get(request_key(request))
        if answers is None:
            raise ModelError(FailureKind.MODEL_ERROR, f"run {self._run} holds no answer to this request")
        call = answers.calls[answers.given % len(answers.calls)]
        answers.given += 1
        return ModelResponse(
            output=call.output,
            finish_reason=cast(FinishReason, call.finish_reason),
            usage=call.usage.model_copy(),
            reported_model=call.reported_model,
            response_id=call.response_id,
        )

    def _loaded(self) -> dict[str, _Answers]:
        if self._answers is None:
            reader = Store(store_root(self.spec.parameters.get("store"))).run(str(self._run))
            recorded: dict[str, list[ModelCall]] = defaultdict(list)
            models: set[str] = set()
            for record in reader.records(reader.completed()):
                for call in record.model_calls:
                    models.add(call.model)
                    if call.status == "ok" and self.spec.model in ("", call.model):
                        recorded[_call_key(record.model_calls, call)].append(call)
            if not recorded or (not self.spec.model and len(models) > 1):
                names = ", ".join(sorted(models)) or "none"
                raise InputError(
                    f"replay of run {self._run}: no calls of model {self.spec.model!r}; it called: {names}"
                )
            self._answers = {key: _Answers(calls) for key, calls in recorded.items()}
        return self._answers


def request_key(request: ModelRequest) -> str:
    """Digest of all that decides an answer."""
    return _key(request.input, request.instructions, tools_digest(request.tools), call_parameters(request))


def _call_key(calls: list[ModelCall], call: ModelCall) -> str:
    history: list[Item] = []
    at: ModelCall = call
    parts = [call.new_input]
    while at.parent is not None:
        at = calls[at.parent]
        parts += [at.output, at.new_input]
    for part in reversed(parts):
        history += part
    return _key(history, at.instructions, call.tools_digest, call.parameters)


def _key(items: list[Item], instructions: str | None, tools: str | None, parameters: dict[str, Any]) -> str:
    return digest([[core(item) for item in items], instructions, tools, parameters])
