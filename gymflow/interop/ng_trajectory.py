"""NeMo Gym trajectory records (`ng_trajectory`, schema 1.0): rollout lines that hold one, or bare records, one a line.

A record has the model calls as they were made, with their requests and answers, and times of tool calls; so there are fewer gaps
than in a rollout line alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gymflow.contracts.outcome import FailureKind, Status, StopReason
from gymflow.contracts.trajectory import Gap, Invocation, ModelCall, Trajectory, Usage
from gymflow.errors import InputError
from gymflow.interop import nemo_gym, ours
from gymflow.interop.lines import Lines, rows_of
from gymflow.interop.observing import Observer, iso, seconds
from gymflow.interop.rebuilding import Item, conversation
from gymflow.interop.rollouts import OURS, ForeignRollout, OwnRollout
from gymflow.models.base import ModelRequest
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
    named: dict[str, ModelCall] = {}
    requests: list[ModelRequest] = []
    for call in record.get("model_calls") or ():
        request = _observe(observer, call)
        if request is None:
            undecoded += 1
        else:
            requests.append(request)
            named[str(call.get("model_call_id"))] = observer.calls[-1]
    gaps = [Gap(code="imported"), *(_gap(gap) for gap in record.get("gaps") or ())]
    if undecoded:
        gaps.append(
            Gap(code="no_model_calls", detail=f"{undecoded} calls whose request or answer is of no known dialect")
        )
    _invoked(record, named)
    trajectory = observer.trajectory(_times(record))
    _executed(trajectory, record)
    _invocations(trajectory, record)
    answered = [call for call in observer.calls if call.status == "ok"]
    if not answered:
        gaps.append(Gap(code="no_turns"))
    gaps += [Gap(code="no_snapshot"), Gap(code="no_token_ids")]
    trajectory.gaps = gaps
    trajectory.stop_reason = StopReason.FINISHED
    foreign = _of_row(row, where) if row else _bare(record, observer.calls, requests)
    foreign.rollout_id = foreign.rollout_id or (str(record["rollout_id"]) if record.get("rollout_id") else None)
    foreign.where = where
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


def _bare(record: Row, calls: Sequence[ModelCall], requests: Sequence[ModelRequest]) -> ForeignRollout:
    """A record without its rollout line: no reward, and the task is what the first call was asked."""
    first = next((call for call in calls if call.parent is None), None)
    asked: Row = {"input": first.new_input if first else []}
    if first is not None and first.instructions is not None:
        asked["instructions"] = first.instructions
    if requests and requests[0].tools:
        asked["tools"] = requests[0].tools
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


def _observe(observer: Observer, call: Row) -> ModelRequest | None:
    """Take a call; returns what it asked, or None where that is of no known dialect."""
    about = call.get("response_metadata") or {}
    dialect = about.get("dialect")
    usage = _usage(call.get("token_stats"))
    body = call.get("request") or {}
    known: Row = {
        "model": str((body.get("model") if isinstance(body, dict) else None) or about.get("model") or "unknown"),
        "reported_model": about.get("model"),
        "response_id": about.get("response_id"),
        "http_status": about.get("status_code"),
        "started_at": seconds(call.get("started_at")) or 0.0,
        "duration_s": (call.get("duration_ms") or 0) / 1000,
        "queue_s": _queued(call),
        "first_token_s": None if about.get("latency_ttft_ms") is None else about["latency_ttft_ms"] / 1000,
    }
    if dialect not in _REQUESTS:
        return None
    try:
        request = _REQUESTS[dialect](body)
        known["parameters"] = request.sampling.given | ({} if request.seed is None else {"seed": request.seed})
        if about.get("error_category"):
            observer.add(
                request.input,
                [],
                instructions=request.instructions,
                tools=request.tools,
                usage=usage,
                status="error",
                error_kind=_kind(about["error_category"]),
                error_message=str(about["error_category"]),
                **known,
            )
            return request
        answer = _ANSWERS[dialect](call.get("response") or {})
    except (DialectError, KeyError, TypeError, AttributeError, ValueError):
        return None
    observer.add(
        request.input,
        answer.output,
        instructions=request.instructions,
        tools=request.tools,
        usage=usage,
        finish_reason=about.get("finish_reason") or answer.finish_reason,
        **known,
    )
    return request


def _queued(call: Row) -> float:
    """What of the time between start and completion was no answering."""
    started, completed = seconds(call.get("started_at")), seconds(call.get("completed_at"))
    if started is None or completed is None:
        return 0.0
    return max(0.0, round(completed - started - (call.get("duration_ms") or 0) / 1000, 6))


def _kind(category: Any) -> FailureKind | None:
    return FailureKind(category) if category in set(FailureKind) else None


def _invoked(record: Row, named: Mapping[str, ModelCall]) -> None:
    """Every call gets the number of the loop that claims it."""
    for index, invocation in enumerate(record.get("invocations") or ()):
        for claimed in invocation.get("model_calls") or ():
            if (call := named.get(str(claimed.get("model_call_id")))) is not None:
                call.invocation = index


def _executed(trajectory: Trajectory, record: Row) -> None:
    """How tool calls ended, and the outputs that no later call saw."""
    told = {str(one.get("tool_call_id")): one for one in record.get("tool_calls") or ()}
    for call in (call for turn in trajectory.turns for call in turn.tool_calls):
        one = told.get(call.call_id)
        if one is None:
            continue
        if call.output is None and isinstance(one.get("output"), str):
            call.output = one["output"]
        if call.output is not None:
            call.status = "error" if one.get("status") == "failed" else "ok"
        call.timing = "harness_event" if one.get("timing_source") == "harness" else "executor"


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
    """The loops; calls and turns carry their numbers."""
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
