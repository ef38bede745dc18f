"""NVIDIA NeMo Gym rollout files: `X.jsonl` with one verified rollout a line, `X_failures.jsonl` beside it, and the rows that were
asked, `X_materialized_inputs.jsonl`.

A response there is the whole episode in one list of items, so calls and turns are rebuilt from it; a verifier reads all of it, as
the ones of NeMo Gym do. A line `{"task": …, "rollout": …}` holds a dataset row with its rollout.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gymflow.contracts.outcome import FailureKind, Status, StopReason, VerdictFailure
from gymflow.contracts.trajectory import Gap, ModelCall
from gymflow.contracts.verdict import Verdict, VerdictRecord
from gymflow.errors import InputError
from gymflow.interop import ours
from gymflow.interop.lines import Lines, rows_of
from gymflow.interop.rebuilding import Item, Rebuilder, conversation, is_own, token_ids
from gymflow.interop.rollouts import OURS, ForeignRollout, OwnRollout
from gymflow.models.dialects.responses import decode_usage

FAILURES, INPUTS = "_failures", "_materialized_inputs"

RESULT_FIELDS = frozenset(
    {
        "responses_create_params",
        "response",
        "reward",
        "reward_components",
        "mask_sample",
        "failure_kind",
        "failure_reason",
    }
    | {"agent_ref", "task_source", "skills_ref"}
)
"""Fields of a rollout line that are not the task's own; neither are those that begin with `_ng_` or `ng_`."""
IDS = ("task_id", "problem_id", "instance_id", "uuid", "id")
JUDGE_FAILURES = ("judge_failed", "judge_invalid")

Row = dict[str, Any]


def read(file: Path, inputs: Path | None = None) -> Iterator[ForeignRollout | OwnRollout]:
    """The rollouts of a file, then those of its failures whose rollout never succeeded. InputError names file, line and field."""
    rows = _inputs(inputs or _sibling(file, INPUTS), required=inputs is not None)
    done: set[Any] = set()
    for where, row in rows_of(file):
        done.add(_attempted(row, where))
        yield _rollout(row, rows, where)
    failed: dict[Any, tuple[str, Row]] = {}
    failures = _sibling(file, FAILURES)
    if failures.is_file():
        for where, row in rows_of(failures):
            failed[_attempted(row, where)] = (where, row)
    for attempted, (where, row) in failed.items():
        if attempted not in done:
            yield _rollout(row, rows, where)


def _sibling(file: Path, suffix: str) -> Path:
    return file.with_name(f"{file.stem}{suffix}.jsonl")


def _inputs(file: Path, *, required: bool) -> dict[tuple[Any, Any], Row]:
    if not required and not file.is_file():
        return {}
    return {key: row for _, row in rows_of(file) if (key := _key(row)) is not None}


def _key(row: Row) -> tuple[Any, Any] | None:
    task, rollout = row.get("_ng_task_index"), row.get("_ng_rollout_index")
    return None if task is None or rollout is None else (task, rollout)


def _attempted(row: Row, where: str) -> Any:
    """What the attempts of one rollout share."""
    key = _key(row)
    return where if key is None else (key, (row.get("agent_ref") or {}).get("name"))


def _rollout(row: Row, inputs: dict[tuple[Any, Any], Row], where: str) -> ForeignRollout | OwnRollout:
    if OURS in row:
        return ours.decode(row[OURS], where)
    task: Row | None = None
    if set(row) == {"task", "rollout"} and isinstance(row["rollout"], dict):
        task, row = row["task"], row["rollout"]
    key = _key(row)
    if task is None and key is not None:
        task = inputs.get(key)
    if task is None:
        task = {name: value for name, value in row.items() if _is_of_task(name)}
    response = row.get("response")
    failure = row.get("_ng_failure_class")
    if failure is None and (not isinstance(response, dict) or not isinstance(response.get("output"), list)):
        raise InputError(f"{where}: response.output: a rollout of NeMo Gym has its list of items there")
    for name, value in _objects(task, row, response):
        if not isinstance(value, dict):
            raise InputError(f"{where}: {name}: {value!r} is no object")
    return _foreign(row, _task_row(task, row), response if isinstance(response, dict) else {}, where)


def _objects(task: Row, row: Row, response: Any) -> Iterator[tuple[str, Any]]:
    """Fields that have to be objects, where they are there at all."""
    for holder in (task, row):
        for name in ("responses_create_params", "agent_ref"):
            if holder.get(name) is not None:
                yield name, holder[name]
    if isinstance(response, dict):
        for index, item in enumerate(response.get("output") or []):
            yield f"response.output.{index}", item


def foreign_of(row: Row, where: str) -> ForeignRollout:
    """A rollout line that is not ours, on its own."""
    found = _rollout(row, {}, where)
    assert isinstance(found, ForeignRollout)
    return found


def _is_of_task(name: str) -> bool:
    return name not in RESULT_FIELDS and not name.startswith(("_ng_", "ng_"))


def _task_row(task: Row, row: Row) -> Row:
    """The task as a row of ours: create parameters without nulls, and the flat fields."""
    asked = task.get("responses_create_params") or row.get("responses_create_params") or {}
    asked = {name: value for name, value in asked.items() if value is not None}
    if isinstance(asked.get("input"), str):
        asked["input"] = [{"role": "user", "content": asked["input"]}]
    fields = {name: value for name, value in task.items() if _is_of_task(name)}
    return {**fields, "responses_create_params": asked}


def _foreign(row: Row, task: Row, response: Row, where: str) -> ForeignRollout:
    agent = row.get("agent_ref") or task.get("agent_ref") or {}
    model = str(response.get("model") or "unknown")
    output: list[Item] = response.get("output") or []
    started = float(response.get("created_at") or 0.0)
    asked = task["responses_create_params"]
    rebuilder = Rebuilder(asked.get("input") or [], model, instructions=asked.get("instructions"), started_at=started)
    _rebuild(rebuilder, output)
    verdict, verdict_failure, message = _verdict(row, task, where)
    failure = row.get("_ng_failure_class")
    failed = failure is not None and verdict_failure is None
    index = row.get("_ng_task_index")
    task_id = next((str(task[name]) for name in IDS if isinstance(task.get(name), str | int)), None)
    return ForeignRollout(
        task={name: value for name, value in task.items() if name not in ("task_id", "agent_ref")}
        | {"task_id": task_id or (None if index is None else str(index))},
        task_id=task_id or (None if index is None else str(index)),
        identity=None if index is None else str(index),
        repeat=row.get("_ng_rollout_index"),
        agent=str(agent.get("name") or "agent"),
        model=model,
        calls=rebuilder.calls,
        trajectory=rebuilder.finish(_stop_reason(response), _gaps(rebuilder)),
        response=output,
        usage=decode_usage(response.get("usage")),
        started_at=started,
        failure=FailureKind.HARNESS_ERROR if failed else None,
        failure_message=f"{failure}: {row.get('_ng_failure_message') or row.get('_ng_failure_type')}"
        if failed
        else None,
        verdict=verdict,
        verdict_failure=verdict_failure,
        verdict_message=message,
        rollout_id=_text(row.get("_ng_rollout_id")),
        where=where,
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _rebuild(rebuilder: Rebuilder, output: Iterable[Item]) -> None:
    """Answers end where something came back to the model, or where an item carries its call's token ids."""
    answer: list[Item] = []
    for item in output:
        if not is_own(item):
            if answer:
                _answer(rebuilder, answer)
                answer = []
            rebuilder.observe([item])
            continue
        answer.append(item)
        if item.get("generation_token_ids"):
            _answer(rebuilder, answer)
            answer = []
    if answer:
        _answer(rebuilder, answer)


_TOKEN_FIELDS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")


def _answer(rebuilder: Rebuilder, answer: list[Item]) -> None:
    bearer: Item = next((item for item in answer if item.get("generation_token_ids")), {})
    kept = [{name: value for name, value in item.items() if name not in _TOKEN_FIELDS} for item in answer]
    rebuilder.answer(kept, tokens=rebuilder.tokens(*(bearer.get(name) for name in _TOKEN_FIELDS)))


def _gaps(rebuilder: Rebuilder) -> list[Gap]:
    gaps = [
        Gap(code="no_model_calls", detail="rebuilt from the items of the response"),
        Gap(code="no_usage", detail="of single calls"),
        Gap(code="no_snapshot"),
    ]
    if any(turn.tool_calls for turn in rebuilder.trajectory.turns):
        gaps.append(Gap(code="no_tool_timing"))
    if not any(call.tokens for call in rebuilder.calls):
        gaps.append(Gap(code="no_token_ids"))
    return gaps


def _stop_reason(response: Row) -> StopReason:
    if response.get("status") != "incomplete":
        return StopReason.FINISHED
    reason = (response.get("incomplete_details") or {}).get("reason")
    return StopReason.REFUSAL if reason == "content_filter" else StopReason.MAX_OUTPUT_TOKENS


def _verdict(row: Row, task: Row, where: str) -> tuple[Verdict | None, VerdictFailure | None, str | None]:
    failure = row.get("_ng_failure_class")
    if failure in JUDGE_FAILURES:
        return None, VerdictFailure.JUDGE_ERROR, f"{failure}: {row.get('_ng_failure_message') or ''}".rstrip(": ")
    reward = row.get("reward")
    if reward is None or failure is not None:
        return None, None, None
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        raise InputError(f"{where}: reward: {reward!r} is not a number")
    said = {name: value for name, value in row.items() if _is_of_task(name) and task.get(name) != value}
    components = row.get("reward_components")
    answer = row.get("extracted_answer")
    return (
        Verdict(
            reward=float(reward),
            components={
                name: float(value)
                for name, value in (components.items() if isinstance(components, dict) else ())
                if isinstance(value, int | float)
            },
            extracted_answer=answer if isinstance(answer, str) else None,
            reason=row.get("failure_reason") or None,
            masked=bool(row.get("mask_sample")),
            details=said,
        ),
        None,
        None,
    )


# Writing


def write(rollouts: Iterable[OwnRollout], verdict_sets: Sequence[str], output: Path) -> list[Path]:
    """`X.jsonl` with the scored rollouts, `X_failures.jsonl` with the others, `X_materialized_inputs.jsonl` with what was asked."""
    places = [output, _sibling(output, FAILURES), _sibling(output, INPUTS)]
    with Lines(*places) as lines:
        for own in rollouts:
            verdict = own.verdict_of(verdict_sets)
            scored = verdict is not None and verdict.verdict is not None
            lines.write(output if scored else places[1], row_of(own, verdict))
            lines.write(places[2], _input_row(own))
    return lines.written


def row_of(own: OwnRollout, verdict: VerdictRecord | None) -> Row:
    """A rollout as a line of theirs, with ours beside it."""
    record = own.record
    row = _input_row(own) | {
        "_ng_rollout_id": record.rollout.rollout_id,
        "response": response_of(own),
        "agent_ref": {"type": "responses_api_agents", "name": record.rollout.agent},
    }
    if verdict is not None and (said := verdict.verdict) is not None:
        row["reward"] = said.reward
        row |= {"reward_components": said.components} if said.components else {}
        row |= {"extracted_answer": said.extracted_answer} if said.extracted_answer is not None else {}
        row |= {"mask_sample": True} if said.masked else {}
        row |= {"failure_reason": said.reason} if said.reason else {}
    else:
        failed = record.rollout.status is Status.FAILED
        kind = record.rollout.failure if failed else verdict.failure if verdict else "unscored"
        message = record.rollout.failure_message if failed else verdict.failure_message if verdict else None
        row |= {"_ng_failure_class": kind, "_ng_failure_message": message}
    return row | {OURS: ours.encode(own)}


def response_of(own: OwnRollout) -> Row:
    """The whole episode as one Responses object; token ids stand on the last item of their call."""
    calls = own.record.model_calls
    policy = [call for call in calls if call.role == "policy" and call.status == "ok"]
    usage = own.record.rollout.usage
    items = _with_tokens(policy) if any(call.tokens for call in policy) else conversation(calls)
    return {
        "id": (policy[-1].response_id if policy else None) or own.record.rollout.rollout_id,
        "object": "response",
        "created_at": own.record.rollout.started_at,
        "model": (policy[-1].reported_model or policy[-1].model) if policy else own.record.rollout.model,
        "status": "incomplete" if own.record.rollout.stop_reason is StopReason.MAX_OUTPUT_TOKENS else "completed",
        "output": items or own.record.evidence.response.get("output") or [],
        "usage": {
            "input_tokens": usage.prompt_tokens,
            "output_tokens": usage.completion_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens},
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        },
    }


def _with_tokens(calls: list[ModelCall]) -> list[Item]:
    items: list[Item] = []
    for number, call in enumerate(calls):
        if number:
            items += call.new_input
        output = list(call.output)
        if call.tokens is not None and output:
            whole = token_ids(calls[: number + 1])
            completion = call.tokens.completion_token_ids
            output[-1] = output[-1] | {
                "prompt_token_ids": whole[: len(whole) - len(completion)],
                "generation_token_ids": completion,
                "generation_log_probs": call.tokens.logprobs,
            }
        items += output
    return items


def _input_row(own: OwnRollout) -> Row:
    return own.task.task | {"_ng_task_index": own.planned.task_index, "_ng_rollout_index": own.planned.repeat}
