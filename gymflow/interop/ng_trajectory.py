"""NeMo Gym trajectory records (`ng_trajectory`, schema 1.0): rollout lines that hold one, or bare records, one a line.

A record has the model calls as they were made, with their requests and answers, and times of tool calls; so there are fewer gaps
than in a rollout line alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gymflow.contracts.outcome import Status, StopReason
from gymflow.contracts.trajectory import Gap, Invocation, ModelCall, Trajectory, Usage
from gymflow.errors import InputError
from gymflow.interop import nemo_gym, ours
from gymflow.interop.lines import Lines, rows_of
from gymflow.interop.observing import Observer, iso, seconds
from gymflow.interop.rebuilding import Item, conversation
from gymflow.interop.rollouts import OURS, ForeignRollout, OwnRollout
from gymflow.models.dialects import DialectError, chat, messages, responses, serve_chat, serve_messages, serve_responses

FIELD, VERSION = "ng_trajectory", "1.0"

_REQUESTS = {
    "responses": serve_responses.decode_request,
    "chat": serve_chat.decode_request,
    "messages": serve_messages.decode_request,
}
_ANSWERS = {
    "responses": responses.decode_response,
    "chat": chat.decode_response,
    "messages": messages.decode_response,
}

Row = dict[str, Any]


def read(file: Path, inputs: Path | None = None) -> Iterator[ForeignRollout | OwnRollout]:
    """The rollouts of a file. InputError names file, line and field."""
    for where, row in rows_of(file):
        if OURS in row:
            yield ours.decode(row[OURS], where)
            continue
        record = row.get(FIELD) if FIELD in row else row
        if not isinstance(record, dict) or record.get("schema_version") != VERSION:
            raise InputError(f"{where}: {FIELD}: no trajectory record of schema {VERSION}; see `--format nemo-gym`")
        yield _foreign(row if FIELD in row else {}, record, where)
    failures = file.with_name(f"{file.stem}{nemo_gym.FAILURES}.jsonl")
    if failures.is_file():
        for where, row in rows_of(failures):
            if OURS in row:
                yield ours.decode(row[OURS], where)


def _foreign(row: Row, record: Row, where: str) -> ForeignRollout:
    observer = Observer()
    undecoded = 0
    for call in record.get("model_calls") or ():
        undecoded += not _observe(observer, call)
    gaps = [Gap(code="imported"), *(_gap(gap) for gap in record.get("gaps") or ())]
    if undecoded:
        gaps.append(
            Gap(code="no_model_calls", detail=f"{undecoded} calls whose request or answer is of no known dialect")
        )
    trajectory = observer.trajectory(_times(record))
    _invocations(trajectory, record)
    answered = [call for call in observer.calls if call.status == "ok"]
    if not answered:
        gaps.append(Gap(code="no_turns"))
    gaps += [Gap(code="no_snapshot"), Gap(code="no_token_ids")]
    trajectory.gaps = gaps
    trajectory.stop_reason = StopReason.FINISHED
    foreign = _of_row(row, where) if row else _bare(record, observer.calls)
    if answered:
        foreign.calls, foreign.trajectory = observer.calls, trajectory
        foreign.started_at = foreign.started_at or answered[0].started_at
        foreign.duration_s = answered[-1].started_at + answered[-1].duration_s - answered[0].started_at
    else:
        foreign.trajectory.gaps = gaps
    return foreign


def _of_row(row: Row, where: str) -> ForeignRollout:
    foreign = nemo_gym.foreign_of(row, where)
    foreign.task.setdefault("task_id", row[FIELD].get("task_id"))
    return foreign


def _bare(record: Row, calls: Sequence[ModelCall]) -> ForeignRollout:
    """A record without its rollout line: no reward, and the task is what the first call was asked."""
    first = next((call for call in calls if call.parent is None), None)
    asked: Row = {"input": first.new_input if first else []}
    if first is not None and first.instructions is not None:
        asked["instructions"] = first.instructions
    return ForeignRollout(
        task={"responses_create_params": asked, "task_id": record.get("task_id")},
        task_id=record.get("task_id"),
        identity=record.get("task_id"),
        repeat=None,
        agent="agent",
        model=calls[0].model if calls else "unknown",
        calls=list(calls),
        trajectory=Trajectory(),
        response=conversation(calls),
    )


def _observe(observer: Observer, call: Row) -> bool:
    about = call.get("response_metadata") or {}
    dialect = about.get("dialect")
    usage = _usage(call.get("token_stats"))
    known: Row = {
        "model": str(about.get("model") or "unknown"),
        "reported_model": about.get("model"),
        "response_id": about.get("response_id"),
        "http_status": about.get("status_code"),
        "started_at": seconds(call.get("started_at")) or 0.0,
        "duration_s": (call.get("duration_ms") or 0) / 1000,
        "first_token_s": None if about.get("latency_ttft_ms") is None else about["latency_ttft_ms"] / 1000,
    }
    if dialect not in _REQUESTS:
        return False
    try:
        request = _REQUESTS[dialect](call.get("request") or {})
        if about.get("error_category"):
            observer.add(
                request.input,
                [],
                instructions=request.instructions,
                tools=request.tools,
                usage=usage,
                status="error",
                error_message=str(about["error_category"]),
                **known,
            )
            return True
        answer = _ANSWERS[dialect](call.get("response") or {})
    except (DialectError, KeyError, TypeError, AttributeError, ValueError):
        return False
    observer.add(
        request.input,
        answer.output,
        instructions=request.instructions,
        tools=request.tools,
        usage=usage,
        finish_reason=about.get("finish_reason") or answer.finish_reason,
        **known,
    )
    return True


def _usage(stats: Any) -> Usage:
    stats = stats if isinstance(stats, dict) else {}
    return Usage(
        prompt_tokens=stats.get("prompt"),
        completion_tokens=stats.get("completion"),
        reasoning_tokens=stats.get("reasoning"),
        cached_tokens=stats.get("cached"),
    )


def _times(record: Row) -> dict[str, tuple[float | None, float | None]]:
    return {
        str(one.get("tool_call_id")): (seconds(one.get("started_at")), seconds(one.get("completed_at")))
        for one in record.get("tool_calls") or ()
    }


def _invocations(trajectory: Trajectory, record: Row) -> None:
    """Turns of subagents carry the number of their loop; calls are told apart by the turns that claim them."""
    names = [str(one.get("invocation_id")) for one in record.get("invocations") or ()]
    if len(names) > 1:
        trajectory.invocations = [
            Invocation(index=index, kind="main" if index == 0 else "subagent") for index in range(len(names))
        ]


_GAPS = {
    "model_calls_unavailable": "no_model_calls",
    "no_records": "no_model_calls",
    "turns_unavailable": "no_turns",
    "conversation_unavailable": "no_history",
    "multimodal_history_redacted": "no_history",
}


def _gap(gap: Row) -> Gap:
    code: Any = _GAPS.get(str(gap.get("code")), "no_model_calls")
    return Gap(code=code, detail=f"{gap.get('code')}: {gap.get('detail') or ''}".rstrip(": "))


# Writing


def write(rollouts: Iterable[OwnRollout], verdict_sets: Sequence[str], output: Path) -> list[Path]:
    """Rollout lines of NeMo Gym with their trajectory record. Rollouts without a reward stand in `X_failures.jsonl`."""
    failures = output.with_name(f"{output.stem}{nemo_gym.FAILURES}.jsonl")
    with Lines(output, failures) as lines:
        for own in rollouts:
            verdict = own.verdict_of(verdict_sets)
            scored = verdict is not None and verdict.verdict is not None
            row = nemo_gym.row_of(own, verdict)
            lines.write(output if scored else failures, row | {FIELD: record_of(own)})
    return lines.written


def record_of(own: OwnRollout) -> Row:
    """The trajectory record of a rollout."""
    rollout, trajectory = own.record.rollout, own.record.evidence.trajectory
    calls = own.record.model_calls
    ids = {call.index: f"{rollout.rollout_id}:{call.index}" for call in calls}
    said = [turn for turn in trajectory.turns if turn.model_call is not None]
    return {
        "schema_version": VERSION,
        "task_id": rollout.task_id,
        "rollout_id": rollout.rollout_id,
        "invocations": [
            {
                "invocation_id": str(one.index),
                "parent_invocation_id": None if one.index == 0 else "0",
                "status": "completed" if rollout.status is Status.COMPLETED else "failed",
                "model_calls": [{"model_call_id": ids[c.index]} for c in calls if c.invocation == one.index],
            }
            for one in trajectory.invocations
        ],
        "turns": [
            {
                "invocation_id": str(turn.invocation),
                "task_id": rollout.task_id,
                "rollout_id": rollout.rollout_id,
                "turn_no": turn.index + 1,
                "step_count": len(turn.tool_calls),
                "model_calls": [{"model_call_id": ids[turn.model_call]}],
            }
            for turn in said
            if turn.model_call is not None
        ],
        "model_calls": [_call_record(call, calls, ids[call.index]) for call in calls],
        "tool_calls": [
            {
                "invocation_id": str(turn.invocation),
                "tool_call_id": call.call_id,
                "tool_name": call.name,
                "started_at": None if call.started_at is None else iso(call.started_at),
                "completed_at": None if call.ended_at is None else iso(call.ended_at),
                "timing_source": "executor" if call.timing == "executor" else "harness",
                "status": "completed" if call.status == "ok" else "failed" if call.output is not None else "incomplete",
                "output": call.output,
            }
            for turn in trajectory.turns
            for call in turn.tool_calls
        ],
        "gaps": [{"code": gap.code, "detail": gap.detail} for gap in trajectory.gaps],
    }


def _call_record(call: ModelCall, calls: Sequence[ModelCall], name: str) -> Row:
    request: Row = {"model": call.model, "input": history_of(call, calls), **_sampling(call)}
    root = call
    while root.parent is not None:
        root = calls[root.parent]
    if root.instructions is not None:
        request["instructions"] = root.instructions
    usage = call.usage
    return {
        "model_call_id": name,
        "started_at": iso(call.started_at),
        "completed_at": iso(call.started_at + call.queue_s + call.duration_s),
        "duration_ms": call.duration_s * 1000,
        "request": request,
        "response": {
            "id": call.response_id,
            "object": "response",
            "status": "completed",
            "model": call.reported_model or call.model,
            "output": call.output,
        },
        "response_metadata": {
            "response_id": call.response_id,
            "model": call.reported_model or call.model,
            "dialect": "responses",
            "status_code": call.http_status or (200 if call.status == "ok" else None),
            "finish_reason": call.finish_reason,
            "error_category": None if call.status == "ok" else call.error_kind or "error",
            "latency_ttft_ms": None if call.first_token_s is None else call.first_token_s * 1000,
        },
        "token_stats": {
            "prompt": usage.prompt_tokens,
            "completion": usage.completion_tokens,
            "reasoning": usage.reasoning_tokens,
            "cached": usage.cached_tokens,
        },
    }


def _sampling(call: ModelCall) -> Row:
    return {
        name: value
        for name, value in call.parameters.items()
        if name in ("temperature", "top_p", "max_output_tokens", "seed") and value is not None
    }


def history_of(call: ModelCall, calls: Sequence[ModelCall]) -> list[Item]:
    """All that a call saw."""
    parts: list[list[Item]] = [call.new_input]
    at = call.parent
    while at is not None:
        parts += [calls[at].output, calls[at].new_input]
        at = calls[at].parent
    return [item for part in reversed(parts) for item in part]
