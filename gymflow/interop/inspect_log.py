"""Inspect AI logs (https://inspect.aisi.org.uk/eval-logs.html), version 2: `.eval` archives and `.json` documents.

A sample is a rollout, an epoch a repeat. Its model events are the calls; a log without events is rebuilt from the messages.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from gymflow.contracts.outcome import FailureKind, StopReason, VerdictFailure
from gymflow.contracts.trajectory import Gap, Trajectory, Usage
from gymflow.contracts.verdict import Verdict
from gymflow.errors import InputError
from gymflow.interop import ours
from gymflow.interop.inspect_files import LogFile, Samples, open_log
from gymflow.interop.inspect_writing import header_of, sample_of
from gymflow.interop.observing import Observer, seconds
from gymflow.interop.rebuilding import Item, Rebuilder, message, text_of
from gymflow.interop.rollouts import OURS, ForeignRollout, OwnRollout
from gymflow.models.dialects import function_call, reasoning

VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partially correct, incorrect, no answer."""
LIMITS = {
    "context": StopReason.CONTEXT_OVERFLOW,
    "time": StopReason.WALL_TIME,
    "working": StopReason.WALL_TIME,
    "token": StopReason.TOKEN_BUDGET,
    "cost": StopReason.COST_BUDGET,
    "message": StopReason.MAX_TURNS,
    "turn": StopReason.MAX_TURNS,
}

Row = dict[str, Any]


def read(file: Path, inputs: Path | None = None) -> Iterator[ForeignRollout | OwnRollout]:
    """The samples of a log. InputError names the file, the sample and the field."""
    log = open_log(file)
    for name, sample in log.samples():
        where = f"{file}: sample {name}"
        metadata = sample.get("metadata") or {}
        if OURS in metadata:
            yield ours.decode(metadata[OURS], where)
        else:
            yield _foreign(log, sample, where)


def _foreign(log: LogFile, sample: Row, where: str) -> ForeignRollout:
    sample = _with_attachments(sample, sample.get("attachments") or {})
    model = str(log.eval.get("model") or "unknown")
    events = [event for event in sample.get("events") or () if event.get("event") in ("model", "tool")]
    given = _given(sample)
    calls, trajectory = _observed(sample, events, model) or _rebuilt(sample, given, model)
    error, limit = sample.get("error"), sample.get("limit") or {}
    trajectory.stop_reason = None if error else LIMITS.get(str(limit.get("type")), StopReason.FINISHED)
    answered = [call for call in calls if call.status == "ok" and call.role == "policy"]
    usage = (sample.get("model_usage") or {}).get(model)
    verdict, failure, said = (None, None, None) if error else _verdict(log, sample)
    metadata = {name: value for name, value in (sample.get("metadata") or {}).items() if name not in _RESERVED}
    return ForeignRollout(
        task=metadata
        | _target(sample)
        | {"responses_create_params": {"input": given}, "task_id": str(sample.get("id"))},
        task_id=str(sample.get("id")),
        identity=str(sample.get("id")),
        where=where,
        repeat=max(0, int(sample.get("epoch") or 1) - 1),
        agent=str(log.eval.get("solver") or log.eval.get("task") or "inspect"),
        model=model,
        calls=calls,
        trajectory=trajectory,
        response=answered[-1].output if answered else [],
        usage=_usage(usage),
        started_at=seconds(sample.get("started_at")) or 0.0,
        duration_s=float(sample.get("total_time") or 0.0),
        snapshot=sample.get("store") or None,
        failure=FailureKind.HARNESS_ERROR if error else None,
        failure_message=str(error.get("message"))[:2000] if isinstance(error, dict) else None,
        verdict=verdict,
        verdict_failure=failure,
        verdict_message=said,
    )


_RESERVED = ("responses_create_params", "task_id", "state", "sandbox", "tags", "cluster", "agent_ref")


def _given(sample: Row) -> list[Item]:
    given = sample.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return [item for said in given or () for item in items_of(said)]


def _target(sample: Row) -> Row:
    """What our verifiers call the expected answer; the choices as NeMo Gym rows have options."""
    target = sample.get("target")
    fields: Row = {"target": target}
    fields["expected_answer"] = target[0] if isinstance(target, list) and len(target) == 1 else target
    if choices := sample.get("choices"):
        fields["options"] = [{chr(ord("A") + number): text} for number, text in enumerate(choices)]
    return fields


def _observed(sample: Row, events: list[Row], model: str) -> tuple[list[Any], Trajectory] | None:
    pool = (sample.get("events_data") or {}).get("messages") or []
    observer = Observer()
    times: dict[str, tuple[float | None, float | None]] = {}
    for event in events:
        if event["event"] == "tool":
            times[str(event.get("id"))] = seconds(event.get("timestamp")), seconds(event.get("completed"))
            continue
        said = list(event.get("input") or ())
        for start, end in event.get("input_refs") or ():
            said += pool[start:end]
        output = event.get("output") or {}
        choice = (output.get("choices") or [{}])[0]
        failed = bool(event.get("error")) or not choice
        observer.add(
            [item for one in said for item in items_of(one)],
            [] if failed else items_of(choice.get("message") or {}),
            tools=[{"type": "function", **tool} for tool in event.get("tools") or ()],
            usage=_usage(output.get("usage")),
            role="policy" if event.get("role") in (None, "policy") else str(event["role"]),
            model=str(event.get("model") or model),
            reported_model=output.get("model"),
            started_at=seconds(event.get("timestamp")) or 0.0,
            duration_s=float(output.get("time") or event.get("working_time") or 0.0),
            finish_reason=_FINISH.get(str(choice.get("stop_reason"))),
            status="error" if failed else "ok",
            error_message=str(event["error"])[:2000] if event.get("error") else None,
        )
    if not any(call.status == "ok" for call in observer.calls):
        return None
    trajectory = observer.trajectory(times)
    trajectory.gaps = [Gap(code="imported"), Gap(code="no_token_ids")]
    if not sample.get("store"):
        trajectory.gaps.append(Gap(code="no_snapshot"))
    return observer.calls, trajectory


_FINISH = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
}


def _rebuilt(sample: Row, given: list[Item], model: str) -> tuple[list[Any], Trajectory]:
    said = [item for one in sample.get("messages") or () for item in items_of(one)]
    rebuilder = Rebuilder(given, model, started_at=seconds(sample.get("started_at")) or 0.0)
    rebuilder.items(said[len(given) :])
    gaps = [
        Gap(code="no_model_calls", detail="rebuilt from the messages"),
        Gap(code="no_usage"),
        Gap(code="no_token_ids"),
    ]
    if any(turn.tool_calls for turn in rebuilder.trajectory.turns):
        gaps.append(Gap(code="no_tool_timing"))
    if not sample.get("store"):
        gaps.append(Gap(code="no_snapshot"))
    return rebuilder.calls, rebuilder.finish(None, gaps)


def items_of(said: Row) -> list[Item]:
    """A chat message as Responses items."""
    role, content = said.get("role"), said.get("content")
    if role == "tool":
        return [{"type": "function_call_output", "call_id": str(said.get("tool_call_id")), "output": text_of(content)}]
    if role != "assistant":
        return [message(text_of(content), str(role or "user"))]
    items: list[Item] = []
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    for part in parts:
        if part.get("type") == "reasoning":
            items.append(reasoning(str(part.get("reasoning") or "")))
        elif part.get("type") == "text" and (part.get("text") or len(parts) > 1):
            items.append(message(str(part.get("text") or "")))
    for call in said.get("tool_calls") or ():
        arguments = orjson.dumps(call.get("arguments") or {}).decode()
        items.append(function_call(str(call.get("id")), str(call.get("function")), arguments))
    return items or [message("")]


def _usage(found: Any) -> Usage:
    found = found if isinstance(found, dict) else {}
    return Usage(
        prompt_tokens=found.get("input_tokens"),
        completion_tokens=found.get("output_tokens"),
        reasoning_tokens=found.get("reasoning_tokens"),
        cached_tokens=found.get("input_tokens_cache_read"),
        cache_write_tokens=found.get("input_tokens_cache_write"),
    )


def _verdict(log: LogFile, sample: Row) -> tuple[Verdict | None, VerdictFailure | None, str | None]:
    """The headline scorer's value is the reward, else the first one's; every scorer is a component."""
    scores = sample.get("scores") or {}
    if not scores:
        return None, None, None
    headline = log.headline if log.headline in scores else next(iter(scores))
    values = {name: number for name, score in scores.items() for name, number in _numbers(name, score.get("value"))}
    score = scores[headline]
    reward = _number(score.get("value"))
    if reward is None:
        return None, VerdictFailure.VERIFIER_ERROR, f"scorer {headline} gave {str(score.get('value'))[:200]}"
    answer = score.get("answer")
    return (
        Verdict(
            reward=reward,
            components=values if len(values) > 1 else {},
            extracted_answer=answer if isinstance(answer, str) else None,
            reason=score.get("explanation") or None,
            details={"scorer": headline} | ({"metadata": score["metadata"]} if score.get("metadata") else {}),
        ),
        None,
        None,
    )


def _number(value: Any) -> float | None:
    """A score as a number: letters, truth values and numbers; a score of several parts is their mean."""
    if isinstance(value, str):
        return VALUES.get(value)
    if isinstance(value, bool | int | float):
        return float(value) if value == value else None
    if isinstance(value, dict | list) and value:
        parts = [_number(part) for part in (value.values() if isinstance(value, dict) else value)]
        known = [part for part in parts if part is not None]
        return sum(known) / len(known) if len(known) == len(parts) else None
    return None


def _numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for part, inner in value.items():
            if (number := _number(inner)) is not None:
                yield f"{name}.{part}", number
    elif (number := _number(value)) is not None:
        yield name, number


def _with_attachments(value: Any, attachments: Row) -> Any:
    """Long values that the log keeps apart, put back in."""
    if not attachments:
        return value
    if isinstance(value, str):
        return (
            attachments.get(value.removeprefix("attachment://"), value) if value.startswith("attachment://") else value
        )
    if isinstance(value, dict):
        return {
            name: inner if name == "attachments" else _with_attachments(inner, attachments)
            for name, inner in value.items()
        }
    return [_with_attachments(inner, attachments) for inner in value] if isinstance(value, list) else value


# Writing


def write(rollouts: Iterable[OwnRollout], verdict_sets: Sequence[str], output: Path) -> list[Path]:
    """One log, `.eval` or `.json`. InputError for a run of several environments or agents: a log is of one task and model."""
    with Samples(output) as samples:
        of: tuple[str, str] | None = None
        for own in rollouts:
            rollout = own.record.rollout
            pair = rollout.environment, rollout.agent
            if of is None:
                of = pair
                samples.header = header_of(own)
            elif of != pair:
                raise InputError(
                    f"a log of Inspect holds one task and model, and the run has {', '.join(of)} and {', '.join(pair)}; export "
                    "it as nemo-gym or atif"
                )
            name, sample = sample_of(own, own.verdict_of(verdict_sets))
            samples.add(name, sample)
    return [output]
