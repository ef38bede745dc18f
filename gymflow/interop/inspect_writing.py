"""A rollout as a sample of an Inspect log, and a run as its header."""

from typing import Any

import orjson

from gymflow.contracts.outcome import Status
from gymflow.contracts.trajectory import ModelCall, Usage
from gymflow.contracts.verdict import VerdictRecord
from gymflow.interop import ours
from gymflow.interop.ng_trajectory import history_of
from gymflow.interop.observing import iso
from gymflow.interop.rebuilding import Item, is_own, text_of
from gymflow.interop.rollouts import OURS, OwnRollout
from gymflow.models.dialects import reasoning_text

Row = dict[str, Any]

_STOP = {"stop": "stop", "tool_calls": "tool_calls", "length": "max_tokens", "content_filter": "content_filter"}


def header_of(own: OwnRollout) -> Row:
    """The header of the log whose first rollout this is."""
    rollout = own.record.rollout
    created = iso(own.run.created_at if own.run else rollout.started_at)
    model = _model(own)
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": rollout.run_id,
            "run_id": rollout.run_id,
            "created": created,
            "task": rollout.environment,
            "task_id": rollout.environment,
            "task_version": 0,
            "solver": rollout.agent,
            "dataset": {"name": rollout.environment, "samples": 0, "shuffled": False},
            "model": model,
            "config": {},
        },
        "plan": {"name": "plan", "steps": [{"solver": rollout.agent, "params": {}}], "config": {}},
        "results": {"total_samples": 0, "completed_samples": 0, "scores": []},
        "stats": {"started_at": created, "completed_at": created, "model_usage": {}},
    }


def sample_of(own: OwnRollout, verdict: VerdictRecord | None) -> tuple[str, Row]:
    """Name and content of a rollout's sample."""
    rollout = own.record.rollout
    epoch = rollout.repeat + 1
    calls = own.record.model_calls
    answered = [call for call in calls if call.role == "policy" and call.status == "ok"]
    asked = (own.task.task.get("responses_create_params") or {}).get("input") or []
    last = answered[-1] if answered else None
    messages = _messages([*history_of(last, calls), *last.output]) if last else _messages(asked)
    expected = own.task.task.get("expected_answer")
    sample: Row = {
        "id": rollout.task_id,
        "epoch": epoch,
        "input": _messages(asked),
        "target": expected if isinstance(expected, str) else [str(one) for one in expected or ()],
        "messages": messages,
        "output": _output(last) if last else {"model": _model(own), "choices": []},
        "scores": _scores(own, verdict),
        "metadata": {OURS: ours.encode(own)},
        "store": {},
        "events": [],
        "model_usage": {_model(own): _usage(rollout.usage)},
        "started_at": iso(rollout.started_at),
        "completed_at": iso(rollout.started_at + rollout.duration_s),
        "total_time": rollout.duration_s,
        "uuid": rollout.rollout_id,
    }
    if rollout.status is Status.FAILED:
        said = f"{rollout.failure}: {rollout.failure_message}"
        sample["error"] = {"message": said, "traceback": "", "traceback_ansi": ""}
    return f"{own.planned.plan_index}_epoch_{epoch}", sample


def _model(own: OwnRollout) -> str:
    calls = own.record.model_calls
    return next((call.model for call in calls if call.model), own.record.rollout.model)


def _messages(items: list[Item]) -> list[Row]:
    """Chat messages out of items: what a model said in one answer is one message."""
    messages: list[Row] = []
    open_answer: Row | None = None
    for item in items:
        if not is_own(item):
            open_answer = None
            messages.append(_given(item))
            continue
        if open_answer is None:
            open_answer = {"role": "assistant", "content": [], "source": "generate"}
            messages.append(open_answer)
        _add(open_answer, item)
    return messages


def _given(item: Item) -> Row:
    if item.get("type") == "function_call_output":
        return {"role": "tool", "content": text_of(item.get("output")), "tool_call_id": item.get("call_id")}
    role = item.get("role")
    return {"role": role if role in ("user", "system") else "system", "content": text_of(item.get("content"))}


def _add(answer: Row, item: Item) -> None:
    kind = item.get("type", "message")
    if kind == "reasoning":
        answer["content"].append({"type": "reasoning", "reasoning": reasoning_text(item)})
    elif kind == "function_call":
        text = str(item.get("arguments") or "")
        try:
            arguments = orjson.loads(text or "{}")
        except orjson.JSONDecodeError:
            arguments = None
        call: Row = {"id": str(item.get("call_id")), "function": str(item.get("name")), "type": "function"}
        call["arguments"] = arguments if isinstance(arguments, dict) else {}
        if not isinstance(arguments, dict):
            call["parse_error"] = f"not a JSON object: {text}"
        answer.setdefault("tool_calls", []).append(call)
    else:
        answer["content"].append({"type": "text", "text": text_of(item.get("content"))})


def _output(call: ModelCall) -> Row:
    [message] = _messages(call.output) or [{"role": "assistant", "content": ""}]
    return {
        "model": call.reported_model or call.model,
        "choices": [{"message": message, "stop_reason": _STOP.get(call.finish_reason or "", "unknown")}],
        "usage": _usage(call.usage),
        "time": call.duration_s,
    }


def _usage(usage: Usage) -> Row:
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    found = {
        "input_tokens": prompt,
        "output_tokens": completion,
        "total_tokens": prompt + completion,
        "input_tokens_cache_read": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }
    return {name: value for name, value in found.items() if value is not None}


def _scores(own: OwnRollout, verdict: VerdictRecord | None) -> Row:
    if verdict is None or verdict.verdict is None:
        return {}
    said = verdict.verdict
    return {
        verdict.judged.verifier.removeprefix("./").removesuffix(".py"): {
            "value": said.reward,
            "answer": said.extracted_answer,
            "explanation": said.reason,
        }
    }
