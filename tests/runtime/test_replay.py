"""Outputs played into a session leave what a run would have recorded."""

from typing import Any

import pytest

from gymflow.contracts.outcome import StopReason
from gymflow.contracts.task import Task
from gymflow.environments import Observation, Session, Snapshot, ToolResult, function_tool
from gymflow.errors import InputError, RolloutFailure
from gymflow.runtime.replay import action_items, message_item, play
from gymflow.verifiers import Evidence


class Till(Session):
    """Sums what is put in; ends at 10; answers messages with the sum."""

    closed = 0

    async def start(self) -> Observation:
        self.sum = 0
        return Observation(messages=[{"role": "user", "content": "open"}])

    async def tools(self) -> list[dict[str, Any]]:
        return [function_tool("put", "Add.", {"n": {"type": "integer"}})]

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        if arguments["n"] < 0:
            raise RuntimeError("the drawer is stuck")
        self.sum += arguments["n"]
        return ToolResult(str(self.sum), reward=1.0, done=self.sum >= 10)

    async def respond(self, message: str) -> Observation | None:
        return Observation(messages=[{"role": "user", "content": f"{message}: {self.sum}"}], reward=0.5)

    async def snapshot(self) -> Snapshot:
        return Snapshot({"sum": self.sum}, {"slip": str(self.sum).encode()})

    async def close(self) -> None:
        type(self).closed += 1


def outputs(*actions: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [action_items(action, index) for index, action in enumerate(actions)]


def till() -> Till:
    return Till(Task(), seed=0)


async def test_tool_calls_and_messages_become_turns_steps_and_a_snapshot() -> None:
    kept: list[bytes] = []
    record = await play(
        till(),
        outputs({"name": "put", "arguments": {"n": 4}}, {"message": "how much"}),
        put_artifact=lambda content: kept.append(content) or "digest",  # type: ignore[func-returns-value]
    )
    first, second = record.trajectory.turns
    assert record.trajectory.start is not None and record.trajectory.start.messages[0]["content"] == "open"
    assert [(call.name, call.arguments, call.output, call.status) for call in first.tool_calls] == [
        ("put", '{"n":4}', "4", "ok")
    ]
    assert first.step is not None and first.step.reward == 1.0
    assert second.step is not None and second.step.messages[0]["content"] == "how much: 4"
    assert record.trajectory.stop_reason is StopReason.FINISHED
    assert record.snapshot == {"sum": 4} and record.artifacts == {"slip": "digest"} and kept == [b"4"]
    assert Evidence.of(record).final_text == "how much"


async def test_parallel_calls_of_one_turn_stay_together() -> None:
    calls = [item for index in range(2) for item in action_items({"name": "put", "arguments": {"n": 1}}, index)]
    record = await play(till(), [calls])
    assert [len(turn.tool_calls) for turn in record.trajectory.turns] == [2]
    assert record.snapshot == {"sum": 2}


@pytest.mark.parametrize(
    ("action", "status"),
    [
        ({"name": "put", "arguments": '{"n": '}, "malformed"),
        ({"name": "put", "arguments": {"n": "x"}}, "malformed"),
        ({"name": "take", "arguments": {}}, "unknown_tool"),
    ],
)
async def test_calls_that_cannot_be_made_are_recorded_as_such(action: dict[str, Any], status: str) -> None:
    record = await play(till(), outputs(action))
    assert record.trajectory.turns[0].tool_calls[0].status == status
    assert record.snapshot == {"sum": 0}


async def test_the_environments_end_is_the_stop_reason_and_nothing_may_follow() -> None:
    ten = {"name": "put", "arguments": {"n": 10}}
    assert (await play(till(), outputs(ten))).trajectory.stop_reason is StopReason.ENVIRONMENT_DONE
    with pytest.raises(InputError, match="ended the episode after 1 of 2 actions"):
        await play(till(), outputs(ten, ten))


async def test_a_session_that_fails_is_closed_and_its_failure_told() -> None:
    before = Till.closed
    with pytest.raises(RolloutFailure, match="failed in tool put: RuntimeError: the drawer is stuck"):
        await play(till(), outputs({"name": "put", "arguments": {"n": -1}}))
    assert Till.closed == before + 1


async def test_a_stateless_session_leaves_calls_unexecuted() -> None:
    record = await play(Session(Task(), seed=0), outputs({"name": "put", "arguments": {"n": 1}}))
    assert record.trajectory.turns[0].tool_calls == []
    assert Evidence.of(record).final_tool_calls[0]["name"] == "put"


async def test_an_agent_that_says_nothing_leaves_empty_evidence() -> None:
    record = await play(till(), [])
    assert record.response == {"output": []} and record.trajectory.turns == [] and record.snapshot == {"sum": 0}


@pytest.mark.parametrize("action", [{}, {"message": "x", "name": "y"}, {"name": "y", "argumets": {}}])
def test_an_action_of_another_shape_is_refused(action: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="action 3: write"):
        action_items(action, 3)


def test_a_message_item_is_read_back_as_its_text() -> None:
    assert Evidence(response={"output": [message_item("hello")]}).final_text == "hello"
