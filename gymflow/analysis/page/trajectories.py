"""Trajectories for the page: what a reader sees of each, packed. The page unpacks one when it is opened and puts it in as text."""

import base64
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from gymflow.analysis.marks import Mark
from gymflow.analysis.moments import Moment, moments, outputs, said, tools
from gymflow.analysis.wording import json_text, parts
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.trajectory import ModelCall, Step
from gymflow.contracts.verdict import VerdictRecord
from gymflow.legible import legible
from gymflow.store import RunReader

AT_ONCE = 256
LONGEST = 60_000
"""Characters of one text; what is cut off is said, and `gym show` prints the whole."""

Block = tuple[str, str, str]
"""Kind, who, and the text."""


def packed(
    reader: RunReader, plan_indices: list[int], verdict_set: str | None, marks: dict[str, list[Mark]]
) -> Iterator[tuple[str, str]]:
    """(rollout id, packed trajectory) of each rollout that is stored."""
    for start in range(0, len(plan_indices), AT_ONCE):
        chosen = plan_indices[start : start + AT_ONCE]
        verdicts = reader.verdicts_of(chosen)
        for record in reader.records(chosen):
            rollout = record.rollout
            given = [one for one in verdicts.get(rollout.plan_index, []) if one.verdict_set == verdict_set]
            story = _story(record, given[0] if given else None, marks.get(rollout.rollout_id, []))
            yield rollout.rollout_id, base64.b64encode(zlib.compress(orjson.dumps(story), 6)).decode()


def _story(record: RolloutRecord, verdict: VerdictRecord | None, marks: list[Mark]) -> dict[str, Any]:
    beside: dict[int | None, list[list[str]]] = {}
    for mark in marks:
        beside.setdefault(mark.turn(record), []).append(_marked(mark))
    trajectory = record.evidence.trajectory
    sections: list[dict[str, Any]] = []
    if trajectory.start is not None:
        sections.append({"title": "start", "blocks": _blocks(_step(trajectory.start, [])), "note": "", "marks": []})
    sections += [
        {
            "title": moment.title,
            "turn": moment.index,
            "blocks": _blocks(_moment(moment)),
            "note": " | ".join(_note(call) for call in moment.calls),
            "marks": beside.get(moment.index, []) if moment.index is not None else [],
        }
        for moment in moments(record)
    ]
    if end := _blocks(_end(record)):
        sections.append({"title": "end", "blocks": end, "note": "", "marks": []})
    return {"head": _blocks(_head(record, verdict)), "marks": beside.get(None, []), "sections": sections}


def _marked(mark: Mark) -> list[str]:
    name = f"{mark.name} (a model says)" if mark.kind == "reading" else mark.name
    return [mark.level, legible(name), legible(f"{mark.locator}: {mark.shown}"[:400])]


def _head(record: RolloutRecord, verdict: VerdictRecord | None) -> Iterator[Block]:
    rollout, detail = record.rollout, record.evidence.trajectory.stop_detail
    ended = (
        f"{rollout.stop_reason.value if rollout.stop_reason else rollout.status.value}{f': {detail}' if detail else ''}"
    )
    yield "plain", "ended", f"{ended}; {rollout.duration_s:.2f} s, seed {rollout.seed}, model {rollout.model}"
    if rollout.failure is not None:
        yield "error", rollout.failure.value, rollout.failure_message or ""
    for attempt in record.attempts:
        yield "error", f"an attempt failed: {attempt.failure.value}", attempt.message
    for gap in record.evidence.trajectory.gaps:
        yield "plain", f"not observed: {gap.code}", gap.detail
    if verdict is not None and verdict.verdict is not None:
        given = verdict.verdict
        passed = "passed" if verdict.passed else "not passed"
        yield "plain", f"verdict of {verdict.judged.verifier}", f"reward {given.reward:g}, {passed}"
        for name, value in (("answer", given.extracted_answer), ("reason", given.reason)):
            if value is not None:
                yield "plain", name, value
        if given.components:
            yield "plain", "components", ", ".join(f"{name} {value:g}" for name, value in given.components.items())
        for anchor in given.anchors:
            yield "plain", f"at {anchor.locator}", anchor.text or ""
    elif verdict is not None and verdict.failure is not None:
        yield "error", f"no verdict: {verdict.failure.value}", verdict.failure_message or ""


def _moment(moment: Moment) -> Iterator[Block]:
    for call in moment.calls:
        if call.parent is None and call.index > 0:
            yield "plain", "a history that continues no earlier call", ""
        if call.instructions:
            yield "given", "instructions", call.instructions
        for item in moment.unseen(call):
            for who, text in parts(item):
                yield "given", who, text
        role = "" if call.role == "policy" else f"{call.role}: "
        for who, text in said(call):
            if who != "call" or not tools(moment.turn):
                yield ("thought" if who == "reasoning" else "said"), f"{role}{who}", text
        if call.status == "error":
            kind = call.error_kind.value if call.error_kind else "error"
            yield "error", f"{kind} {call.http_status or ''}".rstrip(), call.error_message or ""
    for tool in tools(moment.turn):
        kind = "tool" if tool.status == "ok" else "error"
        yield kind, f"calls {tool.name}" + ("" if tool.status == "ok" else f" [{tool.status}]"), tool.arguments
        if tool.output is not None:
            yield "output", "gets", tool.output
    if moment.turn is not None and moment.turn.step is not None:
        yield from _step(moment.turn.step, outputs(moment.turn.tool_calls))


def _step(step: Step, shown: list[dict[str, Any]]) -> Iterator[Block]:
    ends = [*(["done"] if step.done else []), *(["truncated"] if step.truncated else [])]
    reward = [] if step.reward is None else [f"reward {step.reward:g}"]
    if reward or ends:
        yield "plain", "environment", ", ".join([*reward, *ends])
    for item in step.messages:
        if item not in shown:
            for who, text in parts(item):
                yield "given", who, text


def _end(record: RolloutRecord) -> Iterator[Block]:
    for use in record.evidence.trajectory.sandbox:
        code = "" if use.exit_code is None else f" {use.exit_code}"
        yield "tool", f"sandbox: {use.outcome}{code}, {use.duration_s:.2f} s", use.command
    if record.evidence.snapshot is not None:
        yield "output", "final state", json_text(record.evidence.snapshot)
    for name, digest in record.evidence.artifacts.items():
        yield "plain", "artifact", f"{name}  sha256:{digest}"


def _blocks(blocks: Iterable[Block]) -> list[list[str]]:
    return [[kind, legible(who), _whole(text)] for kind, who, text in blocks]


def _whole(text: str) -> str:
    shown = legible(text[:LONGEST])
    return (
        shown if len(text) <= LONGEST else f"{shown}\n… {len(text) - LONGEST:,} more characters; gym show prints them"
    )


def _note(call: ModelCall) -> str:
    usage = call.usage
    tokens = (
        "" if usage.completion_tokens is None else f"{usage.prompt_tokens or 0:,} + {usage.completion_tokens:,} tokens"
    )
    who = "" if call.role == "policy" else f"{call.role} "
    facts = (
        f"{who}call {call.index}",
        legible(call.reported_model or call.model),
        tokens,
        f"{call.duration_s:.2f} s",
        call.finish_reason,
    )
    return " · ".join(fact for fact in facts if fact)
