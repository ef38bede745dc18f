"""One rollout for a reader: what happened, turn by turn, with what health and diagnosis say beside the turn that they speak of."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import set_cell_size
from rich.console import Console
from rich.text import Text

from cli.terminal import one_line, plain
from gymflow.analysis.marks import Mark
from gymflow.analysis.moments import Moment, moments, outputs, said, tools
from gymflow.analysis.wording import Item, json_text, parts
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.trajectory import ModelCall, Step, ToolCall, Trajectory
from gymflow.contracts.verdict import VerdictRecord

INDEXED = 6
"""Turns from which an index stands before them."""
CLIPPED = 60
SHOWN = 160
"""Characters of what a finding or label cites."""
INDENT = "  "


def put_rollout(
    console: Console,
    record: RolloutRecord,
    verdicts: list[VerdictRecord],
    verdict_set: str | None,
    turns: range | None,
    marks: Sequence[Mark] = (),
) -> None:
    """The rollout on a console: how it ended, its verdict, an index where it is long, and the turns (those in `turns`)."""
    beside: dict[int | None, list[Mark]] = {}
    for mark in marks:
        beside.setdefault(mark.turn(record), []).append(mark)
    _put_head(console, record)
    for verdict in verdicts:
        if verdict.verdict_set == verdict_set:
            _put_verdict(console, verdict)
    others = [verdict for verdict in verdicts if verdict.verdict_set != verdict_set]
    if others:
        _put(console, f"other sets: {', '.join(f'{one.verdict_set} {_reward(one)}' for one in others)}", style="dim")
    put_marks(console, beside.pop(None, []))
    told = list(moments(record))
    chosen = [moment for moment in told if turns is None or (moment.index is not None and moment.index in turns)]
    if len(told) >= INDEXED and turns is None:
        _put_index(console, told, beside)
    start = record.evidence.trajectory.start
    if start is not None and (turns is None or 0 in turns):
        _put_step(console, "start", start, [])
    for moment in chosen:
        put_moment(console, moment)
        put_marks(console, beside.get(moment.index, []))
    if turns is None:
        _put_end(console, record)


def put_marks(console: Console, marks: Sequence[Mark]) -> None:
    """Findings and labels, one a line."""
    for mark in marks:
        style = {"error": "bold red", "warning": "bold yellow", "info": "dim"}[mark.level]
        by = {"finding": "", "label": "", "reading": " (a model says)"}[mark.kind]
        _put(console, f"▲ {mark.name}{by}  {mark.locator}: {one_line(mark.shown)[:SHOWN]}", style=style)


def _put_head(console: Console, record: RolloutRecord) -> None:
    rollout = record.rollout
    _put(console, f"rollout {rollout.rollout_id}", style="bold")
    sampled = "" if rollout.sampled_in == rollout.run_id else f"  sampled in run {rollout.sampled_in}"
    _put(
        console,
        f"task {rollout.task_id} ({rollout.environment}, {rollout.split})  repeat {rollout.repeat}  agent {rollout.agent}"
        f"  model {rollout.model}{sampled}",
    )
    trajectory = record.evidence.trajectory
    ended = rollout.status.value
    if rollout.stop_reason is not None:
        ended += f": {rollout.stop_reason.value}" + (f" ({trajectory.stop_detail})" if trajectory.stop_detail else "")
    cost = "" if rollout.cost_usd is None else f", ${rollout.cost_usd:.4f}"
    _put(
        console,
        f"{ended}  {_count(rollout.turns, 'turn')}, {_count(rollout.model_calls, 'model call')}, "
        f"{_count(rollout.tool_calls, 'tool call')}, {_tokens(rollout.usage)}{cost}, {rollout.duration_s:.2f} s"
        + ("" if rollout.seed is None else f"  seed {rollout.seed}"),
    )
    if rollout.failure is not None:
        _put(console, f"failed: {rollout.failure.value}: {rollout.failure_message or ''}", style="red")
    for number, attempt in enumerate(record.attempts):
        _put(
            console,
            f"attempt {number} failed after {attempt.duration_s:.2f} s: {attempt.failure.value}: {attempt.message}",
            style="red",
        )
    for gap in trajectory.gaps:
        _put(console, f"not observed: {gap.code}{f': {gap.detail}' if gap.detail else ''}", style="yellow")
    parameters = {name: value for name, value in _parameters(record.model_calls).items() if name != "seed"}
    if parameters:
        _put(console, f"sampling {json_text(parameters)}", style="dim")


def _put_verdict(console: Console, verdict: VerdictRecord) -> None:
    judged = verdict.judged
    by = f"by {judged.verifier} {judged.version} in {verdict.verdict_set}"
    if verdict.verdict is None:
        kind = verdict.failure.value if verdict.failure else "none"
        _put(console, f"verdict {by}: {kind}: {verdict.failure_message or ''}", style="yellow")
        return
    said = verdict.verdict
    passed = "passed" if verdict.passed else "not passed"
    masked = ", left out of training" if said.masked else ""
    _put(console, f"verdict {by}: reward {said.reward:g}, {passed}{masked}", style="green" if verdict.passed else "red")
    for name, value in (("answer", said.extracted_answer), ("reason", said.reason)):
        if value is not None:
            _put(console, f"{name}: {value}", INDENT)
    if said.components:
        parts = ", ".join(f"{name} {value:g}" for name, value in said.components.items())
        _put(console, f"components: {parts}", INDENT)
    for anchor in said.anchors:
        _put(console, f"at {anchor.locator}{f': {anchor.text}' if anchor.text else ''}", INDENT)
    if said.details:
        _put(console, f"details: {json_text(said.details)}", INDENT)


def _put_index(console: Console, told: list[Moment], beside: Mapping[int | None, Sequence[Mark]]) -> None:
    _put(console, "")
    for moment in told:
        turn = moment.turn
        called = ", ".join(
            one_line(f"{one.name}{'' if one.status == 'ok' else f' ({one.status})'} {one.arguments}")
            for one in tools(turn)
        )
        words = next((text for call in reversed(moment.calls) for kind, text in said(call) if kind == "assistant"), "")
        reward = "" if turn is None or turn.step is None or turn.step.reward is None else f"{turn.step.reward:+g}"
        number = "-" if moment.index is None else str(moment.index)
        marked = ", ".join(dict.fromkeys(mark.name for mark in beside.get(moment.index, ())))
        what = set_cell_size(called or one_line(words), CLIPPED)
        _put(console, f"{number:>5}  {what}  {reward:>6}  {f'▲ {marked}' if marked else ''}".rstrip(), style="dim")
    _put(console, "one of them: --turns 12, several: --turns 10-20", INDENT, style="dim")


def put_moment(console: Console, moment: Moment) -> None:
    """A turn, whole."""
    _put(console, "")
    _put(console, f"── {moment.title} {'─' * max(0, 60 - len(moment.title))}", style="bold cyan")
    for call in moment.calls:
        _put_call(console, call, moment)
    for tool in tools(moment.turn):
        _put_tool(console, tool)
    if moment.turn is not None and moment.turn.step is not None:
        _put_step(console, "environment", moment.turn.step, outputs(moment.turn.tool_calls))


def _put_call(console: Console, call: ModelCall, moment: Moment) -> None:
    if call.parent is None and call.index > 0:
        _put(console, "a history that continues no earlier call", style="yellow")
    if call.instructions:
        _put_text(console, "instructions", call.instructions, style="blue")
    for kind, text in (part for item in moment.unseen(call) for part in parts(item)):
        _put_text(console, kind, text, style="blue")
    who = "" if call.role == "policy" else f"{call.role}: "
    for kind, text in said(call):
        if moment.turn is None or kind != "call" or not moment.turn.tool_calls:
            _put_text(console, f"{who}{kind}", text, style="magenta" if kind == "reasoning" else "green")
    if call.status == "error":
        kind = call.error_kind.value if call.error_kind else "error"
        status = f" {call.http_status}" if call.http_status else ""
        _put(console, f"{kind}{status}: {call.error_message or ''}", style="red")
    notes = [
        f"{who}call {call.index}",
        call.reported_model or call.model,
        _tokens(call.usage),
        f"{call.duration_s:.2f} s",
    ]
    if call.queue_s >= 0.01:
        notes.append(f"queued {call.queue_s:.2f} s")
    if call.attempts > 1:
        notes.append(f"{call.attempts} attempts")
    if call.finish_reason:
        notes.append(call.finish_reason)
    _put(console, " · ".join(note for note in notes if note), style="dim")


def _put_tool(console: Console, tool: ToolCall) -> None:
    took = ""
    if tool.started_at is not None and tool.ended_at is not None:
        took = f", {tool.ended_at - tool.started_at:.3f} s"
    style = "yellow" if tool.status == "ok" else "red"
    _put(console, f"tool {tool.name} {tool.arguments}  [{tool.status}{took}]", style=style)
    if tool.output is not None:
        for line in plain(tool.output).split("\n"):
            _put(console, line, INDENT + "→ ")


def _put_step(console: Console, name: str, step: Step, shown: list[Item]) -> None:
    said = [
        *([f"reward {step.reward:g}"] if step.reward is not None else []),
        *(["done"] if step.done else []),
        *(["truncated"] if step.truncated else []),
    ]
    _put(console, f"{name}{': ' if said else ''}{', '.join(said)}", style="yellow")
    for kind, text in (part for item in step.messages if item not in shown for part in parts(item)):
        _put_text(console, kind, text, INDENT, style="blue")


def _put_end(console: Console, record: RolloutRecord) -> None:
    trajectory: Trajectory = record.evidence.trajectory
    if trajectory.sandbox:
        _put(console, "")
        _put(console, "sandbox", style="bold")
    for use in trajectory.sandbox:
        code = "" if use.exit_code is None else f" {use.exit_code}"
        _put(console, f"$ {use.command}  [{use.outcome}{code}, {use.duration_s:.3f} s]", INDENT)
    evidence = record.evidence
    if evidence.snapshot is not None or evidence.artifacts:
        _put(console, "")
    if evidence.snapshot is not None:
        _put_text(console, "final state", json.dumps(evidence.snapshot, ensure_ascii=False, indent=1))
    for name, digest in evidence.artifacts.items():
        _put(console, f"artifact {name}  sha256:{digest}")


def _parameters(calls: list[ModelCall]) -> dict[str, Any]:
    return calls[0].parameters if calls else {}


def _reward(verdict: VerdictRecord) -> str:
    return "none" if verdict.verdict is None else f"{verdict.verdict.reward:g}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _tokens(usage: Any) -> str:
    if usage.prompt_tokens is None and usage.completion_tokens is None:
        return "tokens not reported"
    further = [
        f"{value:,} {name}"
        for name, value in (("reasoning", usage.reasoning_tokens), ("cached", usage.cached_tokens))
        if value
    ]
    counted = f"{usage.prompt_tokens or 0:,} + {usage.completion_tokens or 0:,} tokens"
    return f"{counted} ({', '.join(further)})" if further else counted


def _put_text(console: Console, who: str, text: str, indent: str = "", *, style: str = "") -> None:
    _put(console, who, indent, style=style)
    for line in plain(text).split("\n"):
        _put(console, line, indent + INDENT)


def _put(console: Console, text: str, indent: str = "", *, style: str = "") -> None:
    # Lines are not wrapped: the terminal or the pager does it, and what is copied from there stays whole.
    console.print(Text(indent + plain(text) if text else "", style=style), soft_wrap=True)
