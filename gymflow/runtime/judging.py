"""The judge model of a run, as its verifiers ask it: through the gateway, once per question, every call captured."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from gymflow import keys
from gymflow.contracts.model import ModelIdentity, ModelSpec
from gymflow.contracts.run import RunConfig
from gymflow.contracts.trajectory import ModelCall
from gymflow.contracts.verdict import JudgeCall
from gymflow.errors import RolloutFailure, StopEpisode
from gymflow.items import output_text
from gymflow.models.base import ModelError, ModelRequest
from gymflow.models.client import JUDGE_ROLE, ModelClient
from gymflow.models.gateway import Gateway
from gymflow.models.health import EndpointDown
from gymflow.store.judgements import Judgements
from gymflow.verifiers.judging import JudgeError, JudgeRefused, JudgeUnparseable, Question

T = TypeVar("T")

ROLE = JUDGE_ROLE
"""The judge's name in a run's `models`, and the role of its calls."""

REFUSALS = ("content_filter", "refusal")
_SCHEMA_WORDS = ("response_format", "json_schema", "text.format", "output_config", "guided", "structured")


def judge_identity(models: Mapping[str, ModelSpec], identities: Mapping[str, ModelIdentity]) -> dict[str, Any] | None:
    """What of the judge decides a verdict: which model it is and how it is sampled. None for a run without one."""
    if ROLE not in models:
        return None
    sampling = models[ROLE].sampling.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return {**identities[ROLE].model_dump(mode="json"), "sampling": sampling}


def judge_model(gateway: Gateway, config: RunConfig, judgements: Judgements | None) -> "JudgeModel | None":
    """The judge of a run, asked through a gateway that has its models; None for a run without one."""
    identity = judge_identity(config.models, gateway.identities())
    if identity is None:
        return None
    return JudgeModel(gateway, identity, judgements, seeded=config.seed is not None)


class JudgeModel:
    """Shared by all verdicts of a run. `judgements` is where answers are kept; without it each question is asked."""

    def __init__(
        self, gateway: Gateway, identity: dict[str, Any], judgements: Judgements | None = None, *, seeded: bool = True
    ) -> None:
        self.gateway = gateway
        self.judgements = judgements
        self.takes_schema = True
        self._identity = identity
        self._seeded = seeded
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def hearing(self) -> "Hearing":
        """The judge for one verdict."""
        return Hearing(self)

    def key(self, question: Question) -> str:
        """Identifies a question to this judge."""
        return keys.question_key(
            judge=self._identity,
            instructions=question.instructions,
            text=question.text,
            schema=question.schema,
            sample=question.sample,
        )

    def one_at_a_time(self, key: str) -> asyncio.Lock:
        """Held while a question is asked, so that repeats with the same answer do not ask it several times at once."""
        return self._asking.setdefault(key, asyncio.Lock())

    def client(self) -> ModelClient:
        """A client for one question."""
        return self.gateway.client(ROLE, auxiliary={ROLE: ROLE})

    def request(self, question: Question, key: str) -> ModelRequest:
        """The question as a model call."""
        wanted = {"type": "json_schema", "name": "verdict", "schema": question.schema, "strict": True}
        return ModelRequest(
            input=[{"type": "message", "role": "user", "content": question.text}],
            instructions=question.instructions,
            sampling=self.gateway[ROLE].spec.sampling,
            seed=keys.derived_seed(key) if self._seeded else None,
            text={"format": wanted} if self.takes_schema else None,
        )


@dataclass(slots=True)
class Hearing:
    """The judge for one verdict; `calls` grows by what was asked for it."""

    model: JudgeModel
    calls: list[JudgeCall] = field(default_factory=list)

    async def ask(self, question: Question, read: Callable[[str], T]) -> T:
        """See `gymflow.verifiers.judging.Judge`."""
        key = self.model.key(question)
        async with self.model.one_at_a_time(key):
            kept = await self._kept(key)
            if kept is not None:
                try:
                    answer = read(self._text(kept))
                except JudgeUnparseable:
                    pass  # kept under an earlier way of reading
                else:
                    self._capture(key, kept, reused=True)
                    return answer
            call = await self._call(question, key)
            answer = read(self._text(call))
            if self.model.judgements is not None:
                with suppress(OSError):  # the verdict holds the call as well, and says if the disk takes nothing
                    await asyncio.to_thread(self.model.judgements.keep, key, call)
            return answer

    async def _kept(self, key: str) -> ModelCall | None:
        if self.model.judgements is None:
            return None
        return await asyncio.to_thread(self.model.judgements.find, key)

    async def _call(self, question: Question, key: str) -> ModelCall:
        client = self.model.client()
        try:
            try:
                await client.create(self.model.request(question, key), role=ROLE)
            except RolloutFailure as failure:
                if not (self.model.takes_schema and _refuses_schemas(failure)):
                    raise
                self.model.takes_schema = False
                await client.create(self.model.request(question, key), role=ROLE)
        except (RolloutFailure, StopEpisode, EndpointDown) as error:
            raise JudgeError(f"the judge model could not be asked: {error}") from error
        finally:
            for call in client.calls:
                self._capture(key, call, reused=False)
        call = client.calls[-1]
        if call.finish_reason in REFUSALS:
            raise JudgeRefused(
                f"the judge declined ({call.finish_reason}): {self._text(call)[:200] or 'it said nothing'}"
            )
        return call

    def _capture(self, key: str, call: ModelCall, *, reused: bool) -> None:
        numbered = call.model_copy(update={"index": len(self.calls)})
        self.calls.append(JudgeCall(key=key, reused=reused, call=numbered))

    def _text(self, call: ModelCall) -> str:
        """The judge's own message. A judge may quote what it was shown, also a key."""
        return self.model.gateway.redactor.text(output_text(call.output))


def _refuses_schemas(failure: RolloutFailure) -> bool:
    cause = failure.__cause__
    status = cause.status if isinstance(cause, ModelError) else None
    return status in (400, 404, 422, 501) and any(word in failure.message for word in _SCHEMA_WORDS)
