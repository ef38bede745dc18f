"""What a foreign agent's trajectory is made of, source by source."""

from typing import Any

from gymflow.contracts.trajectory import ModelCall, ToolCall, Trajectory, Turn
from gymflow.runtime.foreign.calls import TurnCalls
from gymflow.runtime.foreign.protocol import Seen, ServedCall
from gymflow.runtime.foreign.record import complete


def asking(index: int, *calls: tuple[str, str, str], parent: int | None = None, brings: Any = ()) -> ModelCall:
    """A model call that begins at 10 * index, takes 2 s, and asks for tools."""
    return ModelCall(
        index=index,
        parent=parent,
        new_input=[{"type": "function_call_output", "call_id": one, "output": said} for one, said in brings],
        output=[
            {"type": "function_call", "call_id": one, "name": name, "arguments": text} for one, name, text in calls
        ],
        model="m",
        status="ok",
        started_at=10.0 * index,
        duration_s=2.0,
    )


def completed(calls: list[ModelCall], seen: Seen | None = None, served: list[ServedCall] | None = None) -> Trajectory:
    trajectory = Trajectory(turns=[Turn(index=call.index, model_call=call.index) for call in calls])
    counted = TurnCalls.__new__(TurnCalls)
    counted.offered = {call.index: frozenset({"sh", "mcp__gym__add"}) for call in calls}
    counted.answered = {f"r{call.index}": call.index for call in calls}
    complete(trajectory, calls, counted, seen or Seen(), served or [])
    return trajectory


def serve(name: str, arguments: str, output: str, **meta: Any) -> ServedCall:
    record = ToolCall(call_id="", name=name, arguments=arguments, output=output, started_at=3.0, ended_at=4.0)
    return ServedCall(record, meta)


def test_without_events_a_call_took_from_the_answer_to_the_call_that_brought_its_output_back() -> None:
    trajectory = completed([asking(0, ("a", "sh", "{}")), asking(1, parent=0, brings=[("a", "done")])])
    [call] = trajectory.turns[0].tool_calls
    assert (call.output, call.status, call.timing) == ("done", "ok", "gateway")
    assert (call.started_at, call.ended_at) == (2.0, 10.0)


def test_a_call_that_never_began_and_one_that_was_cut_off() -> None:
    seen = Seen()
    seen.began(2.5, "b")
    trajectory = completed([asking(0, ("a", "sh", "{}"), ("b", "sh", "{}"))], seen)
    never, cut = trajectory.turns[0].tool_calls
    assert (never.status, never.started_at, never.output) == ("not_executed", None, None)
    assert (cut.status, cut.started_at, cut.ended_at, cut.output) == ("error", 2.5, None, None)


def test_equal_calls_over_mcp_are_told_apart_by_id_else_taken_in_order() -> None:
    one = '{"n":1}'
    calls = [asking(0, ("a", "mcp__gym__add", one), ("b", "mcp__gym__add", '{"n": 1}'))]
    in_order = completed(calls, served=[serve("add", one, "first"), serve("add", one, "second")])
    assert [call.output for call in in_order.turns[0].tool_calls] == ["first", "second"]
    by_id = completed(calls, served=[serve("add", one, "second", tool="b"), serve("add", one, "first", tool="a")])
    assert [(call.name, call.call_id, call.output) for call in by_id.turns[0].tool_calls] == [
        ("add", "a", "first"),
        ("add", "b", "second"),
    ]


def test_a_tool_whose_name_ends_like_the_environments_is_not_it() -> None:
    trajectory = completed([asking(0, ("a", "readd", "{}"))], served=[serve("add", "{}", "1")])
    assert [(call.name, call.status) for call in trajectory.turns[0].tool_calls] == [
        ("readd", "not_executed"),
        ("add", "ok"),
    ]


def test_a_compaction_begins_a_loop_and_calls_go_on_in_the_loop_that_they_extend() -> None:
    calls = [asking(0), asking(1, parent=0), asking(2), asking(3, parent=2)]
    trajectory = completed(calls, Seen(compactions=[15.0]))
    assert [(one.kind, one.parent_turn) for one in trajectory.invocations] == [("main", None), ("compaction", 1)]
    assert [turn.invocation for turn in trajectory.turns] == [0, 0, 1, 1]


def test_turns_that_were_taken_back_leave_no_hole() -> None:
    calls = [asking(0), asking(1), asking(2, parent=0)]
    trajectory = Trajectory(turns=[Turn(index=0, model_call=0), Turn(index=2, model_call=2)])
    counted = TurnCalls.__new__(TurnCalls)
    counted.offered, counted.answered = {}, {}
    complete(trajectory, calls, counted, Seen(), [])
    assert [turn.index for turn in trajectory.turns] == [0, 1]
    assert [call.turn for call in calls] == [0, None, 1]
