"""ATIF and trajectory records keep what they can hold of any rollout of ours, and ours keeps what it can hold of theirs."""

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gymflow.contracts.outcome import FailureKind, Status, StopReason
from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.contracts.rollout import EvidenceRecord, Rollout, RolloutRecord
from gymflow.contracts.trajectory import CallTokens, Invocation, ModelCall, Step, ToolCall, Trajectory, Turn, Usage
from gymflow.interop import atif, ng_trajectory, ours
from gymflow.interop.rebuilding import message
from gymflow.interop.rollouts import OURS, ForeignRollout, OwnRollout
from gymflow.items import function_calls, output_text
from gymflow.models.dialects import function_call, reasoning, reasoning_text
from gymflow.store.encoding import dumps

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
NAME = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
TOKENS = st.none() | st.integers(0, 10_000)
ARGUMENTS = st.dictionaries(NAME, st.integers(-9, 9) | TEXT | st.none(), max_size=2).map(json.dumps) | st.sampled_from(
    ["not json", "[1]", ""]
)
MOMENT = st.integers(1_700_000_000_000, 1_800_000_000_000).map(lambda ms: ms / 1000)


@dataclass
class Told:
    """One turn as it happened."""

    text: str
    thought: str
    tools: list[tuple[str, str, str | None]]
    after: str | None
    usage: Usage
    cost_usd: float | None
    started_at: float
    ids: list[int]
    logprobs: bool
    answer: list[int] = field(default_factory=lambda: [7])


TURNS = st.lists(
    st.builds(
        Told,
        text=TEXT,
        thought=TEXT,
        tools=st.lists(st.tuples(NAME, ARGUMENTS, st.none() | TEXT), max_size=3),
        after=st.none() | TEXT.filter(bool),
        usage=st.builds(
            Usage, prompt_tokens=TOKENS, completion_tokens=TOKENS, reasoning_tokens=TOKENS, cached_tokens=TOKENS
        ),
        cost_usd=st.none() | st.floats(0, 9),
        started_at=MOMENT,
        ids=st.lists(st.integers(0, 99), min_size=1, max_size=3),
        logprobs=st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


def own(turns: list[Told], question: str, instructions: str | None) -> OwnRollout:
    """A rollout in which this happened: what a turn left is new to the call after it."""
    calls: list[ModelCall] = []
    told: list[Turn] = []
    new: list[dict[str, Any]] = [{"type": "message", "role": "user", "content": question}]
    for at, turn in enumerate(turns):
        asked = [(f"c{at}_{n}", *tool) for n, tool in enumerate(turn.tools)]
        output = [reasoning(turn.thought)] if turn.thought else []
        output += [message(turn.text)] if turn.text or not asked else []
        output += [function_call(call_id, name, arguments) for call_id, name, arguments, _ in asked]
        calls.append(
            ModelCall(
                index=at,
                turn=at,
                parent=at - 1 if at else None,
                new_input=new,
                instructions=instructions if at == 0 else None,
                output=output,
                model="m",
                reported_model="m-1",
                response_id=f"resp{at}",
                finish_reason="tool_calls" if asked else "stop",
                http_status=200,
                started_at=turn.started_at,
                duration_s=0.25,
                first_token_s=0.125,
                usage=turn.usage,
                cost_usd=turn.cost_usd,
                tokens=CallTokens(
                    chained=at > 0,
                    prompt_token_ids=turn.ids,
                    completion_token_ids=turn.answer,
                    logprobs=[-0.5 if turn.logprobs else None],
                ),
            )
        )
        new = [
            {"type": "function_call_output", "call_id": call_id, "output": given}
            for call_id, _, _, given in asked
            if given is not None
        ]
        step = None
        if turn.after is not None:
            step = Step(messages=[{"type": "message", "role": "user", "content": turn.after}])
            new = new + step.messages
        told.append(
            Turn(
                index=at,
                model_call=at,
                tool_calls=[
                    ToolCall(
                        call_id=call_id,
                        name=name,
                        arguments=arguments,
                        output=given,
                        status="not_executed" if given is None else "ok",
                        started_at=turn.started_at + 0.25,
                        ended_at=turn.started_at + 0.5,
                    )
                    for call_id, name, arguments, given in asked
                ],
                step=step,
            )
        )
    trajectory = Trajectory(turns=told, stop_reason=StopReason.FINISHED)
    rollout = Rollout(
        run_id="r",
        rollout_id="r-0",
        rollout_key="k",
        plan_index=0,
        task_key="t",
        task_id="q",
        repeat=0,
        environment="e",
        split="test",
        agent="a",
        model="policy",
        seed=1,
        status=Status.COMPLETED,
        stop_reason=StopReason.FINISHED,
        started_at=turns[0].started_at,
        duration_s=1.0,
        turns=len(told),
        model_calls=len(calls),
        sampled_in="r",
        evidence_digest="d",
    )
    asked_of = {"input": calls[0].new_input} | ({"instructions": instructions} if instructions else {})
    return OwnRollout(
        record=RolloutRecord(
            rollout=rollout,
            evidence=EvidenceRecord(trajectory=trajectory, response={"output": calls[-1].output}),
            model_calls=calls,
        ),
        planned=PlannedRollout(
            plan_index=0,
            task_index=0,
            task_key="t",
            task_id="q",
            environment="e",
            split="test",
            agent="a",
            repeat=0,
            seed=1,
            chunk=0,
            rollout_key="k",
        ),
        task=PlannedTask(
            task_index=0,
            task_key="t",
            row_digest="d",
            environment="e",
            split="test",
            task_id="q",
            tags=[],
            cluster=None,
            task={"responses_create_params": asked_of, "expected_answer": "x"},
        ),
        verdicts=[],
    )


ROLLOUTS = st.builds(own, TURNS, TEXT.filter(bool), st.none() | TEXT.filter(bool))
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def written(value: Any) -> Any:
    """As it is read from a file."""
    return json.loads(dumps(value)[0])


def messages(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [
        (str(item.get("role")), str(item.get("content")))
        for item in items
        if item.get("type", "message") == "message" and item.get("role") != "assistant"
    ]


def answers(calls: list[ModelCall]) -> list[tuple[Any, ...]]:
    return [
        (
            output_text(call.output),
            "\n".join(reasoning_text(item) for item in call.output if item.get("type") == "reasoning"),
            [(one["call_id"], one["name"], one["arguments"]) for one in function_calls(call.output)],
        )
        for call in calls
    ]


def outputs(trajectory: Trajectory) -> list[tuple[str, str | None]]:
    return [(one.call_id, one.output) for turn in trajectory.turns for one in turn.tool_calls]


def of_atif(rollout: OwnRollout) -> ForeignRollout:
    document = written(atif.document_of(rollout, None))
    extra = {name: value for name, value in document["extra"].items() if name != OURS}
    return atif._foreign(document | {"extra": extra}, extra, {}, "here")


@QUICK
@given(ROLLOUTS)
def test_atif_holds_the_conversation_its_tools_tokens_costs_and_times(rollout: OwnRollout) -> None:
    record, found = rollout.record, of_atif(rollout)
    assert answers(found.calls) == answers(record.model_calls)
    assert outputs(found.trajectory) == outputs(record.evidence.trajectory)
    system = record.model_calls[0].instructions
    given = [("system", system)] if system else []
    assert messages(found.calls[0].new_input) == given + messages(record.model_calls[0].new_input)
    for mine, theirs in zip(record.model_calls[1:], found.calls[1:], strict=True):
        assert messages(theirs.new_input) == messages(mine.new_input)
    told = [messages(turn.step.messages) if turn.step else [] for turn in found.trajectory.turns]
    assert told == [messages(turn.step.messages) if turn.step else [] for turn in record.evidence.trajectory.turns]
    for mine, theirs in zip(record.model_calls, found.calls, strict=True):
        assert theirs.usage == mine.usage and theirs.cost_usd == mine.cost_usd
        assert theirs.started_at == mine.started_at and theirs.model == mine.reported_model
        assert mine.tokens is not None and theirs.tokens is not None
        assert theirs.tokens.completion_token_ids == mine.tokens.completion_token_ids
        assert theirs.tokens.prompt_token_ids == mine.tokens.prompt_token_ids
        assert theirs.tokens.logprobs == mine.tokens.logprobs and theirs.tokens.chained == mine.tokens.chained
    assert (found.task["expected_answer"], found.repeat, found.agent) == ("x", 0, "a")


@QUICK
@given(ROLLOUTS)
def test_trajectory_records_hold_calls_as_they_were_made_and_tools_with_their_times(rollout: OwnRollout) -> None:
    record = rollout.record
    found = ng_trajectory._foreign({}, written(ng_trajectory.record_of(rollout)), "here")
    assert answers(found.calls) == answers(record.model_calls)
    fields = ("parent", "new_input", "output", "instructions", "started_at", "duration_s", "first_token_s")
    fields += ("response_id", "finish_reason", "http_status", "usage", "status")
    for mine, theirs in zip(record.model_calls, found.calls, strict=True):
        assert {name: getattr(theirs, name) for name in fields} == {name: getattr(mine, name) for name in fields}
        assert theirs.reported_model == mine.reported_model
    tools = [
        [(one.call_id, one.name, one.arguments, one.output, one.started_at, one.ended_at) for one in turn.tool_calls]
        for turn in record.evidence.trajectory.turns
    ]
    assert tools == [
        [(one.call_id, one.name, one.arguments, one.output, one.started_at, one.ended_at) for one in turn.tool_calls]
        for turn in found.trajectory.turns
    ]


def test_trajectory_records_hold_failed_calls_loops_queues_and_settings() -> None:
    told = Told("", "", [("look", "{}", "no")], None, Usage(), None, 1_700_000_000.5, [1], True)
    rollout = own([told, told], "q", "be brief")
    calls, trajectory = rollout.record.model_calls, rollout.record.evidence.trajectory
    trajectory.turns[0].tool_calls[0].status = "error"
    trajectory.turns[0].tool_calls[0].timing = "harness_event"
    trajectory.invocations.append(Invocation(index=1, kind="subagent"))
    calls[1].invocation = trajectory.turns[1].invocation = 1
    for call in calls:
        call.queue_s = 0.75
        call.parameters = {"temperature": 0.5, "max_output_tokens": 9, "seed": 3}
    failed = calls[1].model_copy(update={"index": 2, "parent": 1, "turn": None, "new_input": [], "output": []})
    failed.status, failed.error_kind, failed.finish_reason = "error", FailureKind.MODEL_TIMEOUT, None
    failed.http_status = 504
    calls.append(failed)
    found = ng_trajectory._foreign({}, written(ng_trajectory.record_of(rollout)), "here")
    fields = ("parent", "queue_s", "parameters", "invocation", "status", "error_kind", "http_status", "model")
    for mine, theirs in zip(calls, found.calls, strict=True):
        assert {name: getattr(theirs, name) for name in fields} == {name: getattr(mine, name) for name in fields}
    [first, second] = found.trajectory.turns
    assert (first.tool_calls[0].status, first.tool_calls[0].timing) == ("error", "harness_event")
    assert (first.invocation, second.invocation) == (0, 1)
    assert [one.kind for one in found.trajectory.invocations] == ["main", "subagent"]


@QUICK
@given(ROLLOUTS)
def test_what_comes_from_a_format_goes_back_into_it(rollout: OwnRollout) -> None:
    """Foreign to ours to foreign: the steps and calls that were read are written again."""
    first = written(atif.document_of(rollout, None))
    found = of_atif(rollout)
    again = written(atif.document_of(_owned(rollout, found), None))
    assert again["steps"] == first["steps"]
    record = written(ng_trajectory.record_of(rollout))
    found = ng_trajectory._foreign({}, record, "here")
    back = written(ng_trajectory.record_of(_owned(rollout, found)))
    assert back["model_calls"] == record["model_calls"] and back["tool_calls"] == record["tool_calls"]


@QUICK
@given(ROLLOUTS)
def test_what_we_keep_beside_a_format_is_everything(rollout: OwnRollout) -> None:
    for value in (written(atif.document_of(rollout, None))["extra"][OURS], written(ours.encode(rollout))):
        assert ours.decode(value, "here") == rollout


def _owned(rollout: OwnRollout, found: ForeignRollout) -> OwnRollout:
    evidence = EvidenceRecord(trajectory=found.trajectory, response={"output": found.response})
    record = rollout.record.model_copy(update={"evidence": evidence, "model_calls": found.calls})
    return OwnRollout(record=record, planned=rollout.planned, task=rollout.task, verdicts=[])
