"""Which calls make a conversation, and what is stored of one that goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gymflow.contracts.model import ModelSpec
from gymflow.contracts.outcome import FailureKind, Status
from gymflow.contracts.trajectory import Usage
from gymflow.errors import RolloutFailure
from gymflow.models import Gateway, Item, ModelError, ModelRequest, ModelResponse
from gymflow.models.dialects import message
from gymflow.models.scripted import Scripted
from gymflow.runtime import conversations as conversations_module
from gymflow.runtime.captured import Captured
from gymflow.runtime.conversations import Conversations
from gymflow.secrets import Redactor
from gymflow.store import Store

SPEC = ModelSpec(provider="scripted", model="s")


def user(text: str) -> Item:
    return {"role": "user", "content": text}


def answer(request: ModelRequest) -> ModelResponse:
    return ModelResponse([message("hello")], "stop", Usage())


@asynccontextmanager
async def conversing(reply: Callable = answer) -> AsyncIterator[Conversations]:
    async with Gateway({"policy": SPEC}, providers={"policy": Scripted(SPEC, answer=reply)}) as gateway:
        yield Conversations(gateway)


async def ask(conversations: Conversations, *said: str) -> None:
    """One call whose history holds what was said, with the model's `hello` after each but the last."""
    items = [item for text in said for item in (user(text), message("hello"))][:-1]
    await conversations.create(ModelRequest(items))


async def test_callers_who_begin_alike_have_a_conversation_each() -> None:
    async with conversing() as conversations:
        for said in (["hi"], ["hi"], ["hi", "a"], ["hi", "b"], ["hi", "a", "more"], ["hi", "b", "more"]):
            await ask(conversations, *said)
        due = conversations.due()
    assert [[call.parent for call in one.calls] for one in due] == [[None, 0, 1]] * 2
    assert {tuple(call.new_input[-1]["content"] for call in one.calls) for one in due} == {
        ("hi", "a", "more"),
        ("hi", "b", "more"),
    }


async def test_callers_who_begin_alike_are_told_apart_also_while_both_are_answered() -> None:
    async def slowly(request: ModelRequest) -> ModelResponse:
        await asyncio.sleep(0.02)
        return answer(request)

    async with conversing(slowly) as conversations:
        await asyncio.gather(*(ask(conversations, "hi") for _ in range(3)))
        await asyncio.gather(*(ask(conversations, "hi", text) for text in "abc"))
        due = conversations.due()
    assert sorted(len(one.calls) for one in due) == [2, 2, 2]


async def test_who_goes_on_in_two_ways_branches_one_conversation() -> None:
    async with conversing() as conversations:
        for said in (["hi"], ["hi", "a"], ["hi", "b"]):
            await ask(conversations, *said)
        [one] = conversations.due()
    assert [call.parent for call in one.calls] == [None, 0, 0]


async def test_a_call_that_failed_is_asked_again_in_its_own_conversation() -> None:
    failures = iter([True])

    def reply(request: ModelRequest) -> ModelResponse:
        if len(request.input) > 1 and next(failures, False):
            raise ModelError(FailureKind.MODEL_ERROR, "no")
        return answer(request)

    async with conversing(reply) as conversations:
        await ask(conversations, "hi")
        await ask(conversations, "hi")
        with pytest.raises(RolloutFailure):
            await ask(conversations, "hi", "a")
        await ask(conversations, "hi", "a")
        due = conversations.due()
    assert sorted([call.status for call in one.calls] for one in due) == [["ok"], ["ok", "error", "ok"]]


async def test_a_conversation_is_due_once_for_what_is_new_and_stays_open() -> None:
    async with conversing() as conversations:
        await ask(conversations, "hi")
        assert conversations.due(idle_s=60, at_most_s=60) == []
        assert len(conversations.due(idle_s=60, at_most_s=0)) == 1, "one that goes on and on is stored now and then"
        assert conversations.due() == []
        await ask(conversations, "hi", "a")
        [one] = conversations.due()
        assert len(one.calls) == 2


async def test_memory_bounds_how_many_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations_module, "OPEN", 3)
    async with conversing() as conversations:
        for number in range(6):
            await ask(conversations, f"q{number}")
        assert len(conversations.due()) == 6, "none is lost that has not been stored"
        await ask(conversations, "q5", "a")
        await ask(conversations, "q0", "a")
        assert [len(one.calls) for one in conversations.due()] == [2, 1], "the ones used last are still known"


async def test_one_rollout_holds_a_conversation_however_long_it_pauses(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    async with conversing() as conversations:
        captured = Captured(store, "r", SPEC, Scripted(SPEC, answer=answer).identity(), Redactor())
        await captured.keep(conversations.due())
        said = ["hi"]
        for turn in range(3):
            await ask(conversations, *said)
            await captured.keep(conversations.due())
            record = store.run("r").record(0)
            assert (record.rollout.status, record.rollout.model_calls) == (Status.COMPLETED, turn + 1)
            said.append(f"more {turn}")
        await ask(conversations, "other")
        await captured.keep(conversations.due())
        await captured.close()
    reader = store.run("r")
    assert [len(record.model_calls) for record in reader.records([0, 1])] == [3, 1]
    assert captured.count == 2


async def test_a_conversation_that_cannot_be_kept_loses_no_other(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    async with conversing() as conversations:
        captured = Captured(store, "r", SPEC, Scripted(SPEC, answer=answer).identity(), Redactor())
        for text in ("broken", "good"):
            await ask(conversations, text)
        due = conversations.due()
        due[0].calls[0].output = object()  # type: ignore[assignment]
        await captured.keep(due)
        await captured.close()
    assert store.run("r").record(1).model_calls[0].new_input == [user("good")]
