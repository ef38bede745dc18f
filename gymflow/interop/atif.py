"""Agent Trajectory Interchange Format (https://github.com/laude-institute/harbor, RFC 0001), versions 1.0 to 1.8.

Read: one document, JSON Lines of them, or a folder, also a job of Harbor's, where `agent/trajectory.json` stands beside
`verifier/reward.txt`. Written: a folder with one document of version 1.7 a rollout, and `manifest.json`.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from gymflow.contracts.outcome import Status, StopReason
from gymflow.contracts.trajectory import Gap, ModelCall, ToolCall, Trajectory, Usage
from gymflow.contracts.verdict import Verdict, VerdictRecord
from gymflow.errors import InputError
from gymflow.interop import ours
from gymflow.interop.lines import rows_of
from gymflow.interop.observing import iso, seconds
from gymflow.interop.rebuilding import Item, Rebuilder, is_own, message, text_of, token_ids
from gymflow.interop.rollouts import OURS, ForeignRollout, OwnRollout
from gymflow.items import function_calls, output_text
from gymflow.models.dialects import function_call, reasoning, reasoning_text
from gymflow.store.encoding import dumps

VERSION = "ATIF-v1.7"
MANIFEST = "manifest.json"
FURTHER_TOKENS = ("reasoning_tokens", "cache_write_tokens")
"""Counts of ours that stand in `metrics.extra`."""

Row = dict[str, Any]


def read(file: Path, inputs: Path | None = None) -> Iterator[ForeignRollout | OwnRollout]:
    """The rollouts of a document, a file of lines or a folder. InputError names the file and the field."""
    for where, document, beside in _documents(file):
        extra = document.get("extra") or {}
        if OURS in extra:
            yield ours.decode(extra[OURS], where)
        else:
            yield _foreign(document, extra, beside, where)


def _documents(file: Path) -> Iterator[tuple[str, Row, Row]]:
    """Where it stands, the document, and what lies beside it."""
    if file.is_dir():
        yield from _in_folder(file)
    elif file.suffix == ".jsonl":
        for where, row in rows_of(file):
            yield where, _checked(row, where), {}
    else:
        yield str(file), _checked(_json(file), str(file)), {}


def _in_folder(folder: Path) -> Iterator[tuple[str, Row, Row]]:
    manifest = folder / MANIFEST
    if manifest.is_file():
        files = [folder / one["file"] for one in _json(manifest).get("trajectories", ())]
        for path in files:
            if folder.resolve() not in path.resolve().parents:
                raise InputError(f"{manifest}: {path} lies outside of the folder")
    else:
        files = sorted(folder.rglob("trajectory.json")) or sorted(folder.glob("*.json"))
    if not files:
        raise InputError(f"{folder} holds no trajectory")
    for path in files:
        yield str(path), _checked(_json(path), str(path)), _harbor(path)


def _harbor(path: Path) -> Row:
    """Reward and task of a trial of Harbor's, whose trajectory lies in `agent/`."""
    trial = path.parent.parent
    beside: Row = {}
    reward, result = trial / "verifier" / "reward.txt", trial / "result.json"
    if path.parent.name == "agent" and reward.is_file():
        try:
            beside["reward"] = float(reward.read_text())
        except ValueError:
            raise InputError(f"{reward}: {reward.read_text()[:40]!r} is no reward") from None
    if path.parent.name == "agent" and result.is_file():
        beside["task_id"] = _json(result).get("task_name")
    return beside


def _json(path: Path) -> Row:
    try:
        value = orjson.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: a JSON object is needed")
    return value


def _checked(document: Row, where: str) -> Row:
    if not str(document.get("schema_version", "")).startswith("ATIF-v1."):
        raise InputError(f"{where}: schema_version: {document.get('schema_version')!r} is no ATIF of version 1")
    steps = document.get("steps")
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise InputError(f"{where}: steps: a list of steps is needed")
    return document


def _foreign(document: Row, extra: Row, beside: Row, where: str) -> ForeignRollout:
    agent = document.get("agent") or {}
    model = str(agent.get("model_name") or "unknown")
    steps = document["steps"]
    first = next((n for n, step in enumerate(steps) if step.get("source") == "agent"), len(steps))
    given = [item for step in steps[:first] for item in (_told(step), *_came_back(step))]
    started = next((found for step in steps if (found := seconds(step.get("timestamp"))) is not None), 0.0)
    rebuilder = Rebuilder(given, model, started_at=started)
    for step in steps[first:]:
        _take(rebuilder, step, model)
    reward = extra.get("reward", beside.get("reward"))
    if reward is not None and (isinstance(reward, bool) or not isinstance(reward, int | float)):
        raise InputError(f"{where}: extra.reward: {reward!r} is not a number")
    task_id = (
        extra.get("task_id") or beside.get("task_id") or document.get("trajectory_id") or document.get("session_id")
    )
    tools = [_tool(one) for one in agent.get("tool_definitions") or ()]
    asked: Row = {"input": given} | ({"tools": tools} if tools else {})
    total = document.get("final_metrics") or {}
    trajectory = rebuilder.finish(StopReason.FINISHED, _gaps(document, rebuilder))
    return ForeignRollout(
        task={**(extra.get("task") or {}), "responses_create_params": asked, "task_id": task_id},
        task_id=None if task_id is None else str(task_id),
        identity=None,
        repeat=extra.get("repeat"),
        agent=str(agent.get("name") or "agent"),
        model=model,
        calls=rebuilder.calls,
        trajectory=trajectory,
        response=rebuilder.calls[-1].output if rebuilder.calls else [],
        usage=Usage(
            prompt_tokens=total.get("total_prompt_tokens"),
            completion_tokens=total.get("total_completion_tokens"),
            cached_tokens=total.get("total_cached_tokens"),
        ),
        started_at=started,
        duration_s=max(0.0, (seconds(steps[-1].get("timestamp")) or started) - started) if steps else 0.0,
        verdict=None if reward is None else Verdict(reward=float(reward)),
        rollout_id=None if document.get("trajectory_id") is None else str(document["trajectory_id"]),
        where=where,
    )


def _take(rebuilder: Rebuilder, step: Row, model: str) -> None:
    text = text_of(step.get("message"))
    if step.get("source") != "agent":
        rebuilder.observe([_told(step), *_came_back(step)])
        return
    output: list[Item] = [reasoning(step["reasoning_content"])] if step.get("reasoning_content") else []
    calls = step.get("tool_calls") or []
    if text or not calls:
        output.append(message(text))
    for call in calls:
        raw = (call.get("extra") or {}).get("raw_arguments")
        arguments = raw if isinstance(raw, str) else _spelt(call.get("arguments") or {})
        output.append(function_call(str(call.get("tool_call_id")), str(call.get("function_name")), arguments))
    metrics = step.get("metrics") or {}
    rebuilder.answer(
        output,
        usage=Usage(
            prompt_tokens=metrics.get("prompt_tokens"),
            completion_tokens=metrics.get("completion_tokens"),
            cached_tokens=metrics.get("cached_tokens"),
            **_further_tokens(metrics),
        ),
        tokens=rebuilder.tokens(
            metrics.get("prompt_token_ids"), metrics.get("completion_token_ids"), metrics.get("logprobs")
        ),
        cost_usd=metrics.get("cost_usd"),
        model=str(step.get("model_name") or model),
        **({"started_at": at} if (at := seconds(step.get("timestamp"))) is not None else {}),
    )
    rebuilder.observe(_came_back(step))


def _told(step: Row) -> Item:
    return message(text_of(step.get("message")), str(step.get("source")))


def _came_back(step: Row) -> list[Item]:
    """What a step observed: tool outputs first, then what answers no call by name."""
    results = (step.get("observation") or {}).get("results") or []
    return [
        {"type": "function_call_output", "call_id": str(one["source_call_id"]), "output": text_of(one.get("content"))}
        for one in results
        if one.get("source_call_id") is not None
    ] + [message(text_of(one.get("content")), "user") for one in results if one.get("source_call_id") is None]


def _further_tokens(metrics: Row) -> dict[str, int]:
    """Counts that have no field of their own there."""
    extra = metrics.get("extra")
    given = {name: extra.get(name) for name in FURTHER_TOKENS} if isinstance(extra, dict) else {}
    return {name: value for name, value in given.items() if isinstance(value, int) and not isinstance(value, bool)}


def _tool(definition: Row) -> Row:
    """A Responses function tool out of one that may be written as Chat Completions has it."""
    inner = definition.get("function")
    return {"type": "function", **inner} if isinstance(inner, dict) else definition


def _gaps(document: Row, rebuilder: Rebuilder) -> list[Gap]:
    gaps = [Gap(code="no_model_calls", detail="rebuilt from the steps"), Gap(code="no_snapshot")]
    calls = rebuilder.calls
    if any(turn.tool_calls for turn in rebuilder.trajectory.turns):
        gaps.append(Gap(code="no_tool_timing"))
    if not any(call.tokens for call in calls):
        gaps.append(Gap(code="no_token_ids"))
    if any(call.usage.completion_tokens is None for call in calls):
        gaps.append(Gap(code="no_usage"))
    if document.get("subagent_trajectories") or document.get("continued_trajectory_ref"):
        gaps.append(Gap(code="no_history", detail="subagents and continuations are left out"))
    return gaps


# Writing


def write(rollouts: Iterable[OwnRollout], verdict_sets: Sequence[str], output: Path) -> list[Path]:
    """A document for each rollout, and a manifest with their digests. InputError where the folder holds something."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"{output} exists already and is not empty; name another --output")
    output.mkdir(parents=True, exist_ok=True)
    listed: list[Row] = []
    written: list[Path] = []
    for own in rollouts:
        verdict = own.verdict_of(verdict_sets)
        path = output / f"{own.record.rollout.plan_index:06d}.json"
        data = dumps(document_of(own, verdict))[0]
        path.write_bytes(data)
        written.append(path)
        said = verdict.verdict if verdict else None
        listed.append(
            {
                "file": path.name,
                "sha256": hashlib.sha256(data).hexdigest(),
                "rollout_id": own.record.rollout.rollout_id,
                "task_id": own.record.rollout.task_id,
                "repeat": own.record.rollout.repeat,
                "status": own.record.rollout.status,
                "reward": said.reward if said else None,
            }
        )
    manifest = output / MANIFEST
    manifest.write_bytes(dumps({"schema_version": VERSION, "trajectories": listed})[0])
    return [manifest, *written]


def document_of(own: OwnRollout, verdict: VerdictRecord | None) -> Row:
    """A rollout as a document. One without any answer of the model still has the steps of its input."""
    rollout, trajectory = own.record.rollout, own.record.evidence.trajectory
    calls = [call for call in own.record.model_calls if call.role == "policy" and call.status == "ok"]
    asked = own.task.task.get("responses_create_params") or {}
    by_id = {call.call_id: call for turn in trajectory.turns for call in turn.tool_calls}
    steps: list[Row] = []
    for number, call in enumerate(calls):
        if number == 0 and call.instructions:
            steps.append({"source": "system", "message": call.instructions})
        said = [item for item in call.new_input if not is_own(item) and item.get("type", "message") == "message"]
        steps += [_said(item) for item in said]
        came_back = calls[number + 1].new_input if number + 1 < len(calls) else _last_words(trajectory, call.index)
        steps.append(_agent_step(call, calls[: number + 1], by_id, came_back))
    if calls:
        words = _last_words(trajectory, calls[-1].index)
        steps += [_said(item) for item in words if item.get("type", "message") == "message"]
    else:
        steps += [_said(item) for item in asked.get("input") or ()]
    steps = steps or [{"source": "user", "message": ""}]
    usage = rollout.usage
    agent: Row = {
        "name": rollout.agent,
        "version": "gymflow",
        "model_name": calls[-1].model if calls else rollout.model,
    }
    if asked.get("tools"):
        agent["tool_definitions"] = asked["tools"]
    said_verdict = verdict.verdict if verdict else None
    final = {
        "total_prompt_tokens": usage.prompt_tokens,
        "total_completion_tokens": usage.completion_tokens,
        "total_cached_tokens": usage.cached_tokens,
        "total_cost_usd": rollout.cost_usd,
        "total_steps": len(steps),
    }
    return {
        "schema_version": VERSION,
        "session_id": rollout.rollout_id,
        "trajectory_id": rollout.rollout_id,
        "agent": agent,
        "steps": [{"step_id": number} | step for number, step in enumerate(steps, 1)],
        "final_metrics": {name: value for name, value in final.items() if value is not None},
        "extra": {
            "reward": said_verdict.reward if said_verdict else None,
            "task_id": rollout.task_id,
            "repeat": rollout.repeat,
            "status": rollout.status.value,
            "failure": rollout.failure if rollout.status is Status.FAILED else None,
            "task": {name: value for name, value in own.task.task.items() if name != "responses_create_params"},
            OURS: ours.encode(own),
        },
    }


def _last_words(trajectory: Trajectory, call: int) -> list[Item]:
    """What the environment said after the last call, which no call saw."""
    ended = [turn.step for turn in trajectory.turns if turn.model_call == call and turn.step is not None]
    return [item for step in ended for item in step.messages]


def _said(item: Item) -> Row:
    role = item.get("role")
    return {"source": "user" if role == "user" else "system", "message": text_of(item.get("content"))}


def _agent_step(
    call: ModelCall, calls: Sequence[ModelCall], by_id: dict[str, ToolCall], came_back: Iterable[Item]
) -> Row:
    """An answer with its tool calls and what these gave; so do outputs of calls that nobody asked for."""
    thoughts = [reasoning_text(item) for item in call.output if item.get("type") == "reasoning"]
    asked = function_calls(call.output)
    step: Row = {
        "timestamp": iso(call.started_at),
        "source": "agent",
        "model_name": call.reported_model or call.model,
        "message": output_text(call.output),
        "llm_call_count": 1,
    }
    if any(thoughts):
        step["reasoning_content"] = "\n".join(thoughts)
    if asked:
        step["tool_calls"] = [_tool_call(item) for item in asked]
    results = [
        {"source_call_id": found.call_id, "content": found.output}
        for item in asked
        if (found := by_id.get(str(item.get("call_id")))) is not None and found.output is not None
    ] + [
        {"source_call_id": item["call_id"], "content": text_of(item.get("output"))}
        for item in came_back
        if item.get("type") == "function_call_output" and item.get("call_id") not in by_id
    ]
    if results:
        step["observation"] = {"results": results}
    usage, tokens = call.usage, call.tokens
    metrics: Row = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": call.cost_usd,
    }
    if tokens is not None:
        whole = token_ids(calls)
        metrics["prompt_token_ids"] = whole[: len(whole) - len(tokens.completion_token_ids)]
        metrics["completion_token_ids"] = tokens.completion_token_ids
        if None not in tokens.logprobs:
            metrics["logprobs"] = tokens.logprobs
    further = {name: value for name in FURTHER_TOKENS if (value := getattr(usage, name)) is not None}
    metrics["extra"] = further or None
    step["metrics"] = {name: value for name, value in metrics.items() if value is not None}
    return step


def _tool_call(item: Item) -> Row:
    """Arguments are an object there; what is none, or is spelt otherwise, is kept as the model wrote it."""
    text = str(item.get("arguments") or "")
    call: Row = {"tool_call_id": str(item.get("call_id")), "function_name": str(item.get("name")), "arguments": {}}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, dict):
        call["arguments"] = value
    if value != call["arguments"] or _spelt(value) != text:
        call["extra"] = {"raw_arguments": text}
    return call


def _spelt(arguments: Any) -> str:
    """Arguments as a reader of the format writes them, who has only the object."""
    return json.dumps(arguments, ensure_ascii=False)
