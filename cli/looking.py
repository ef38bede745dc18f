"""The three depths of `gym show`: a run, a task of it, one rollout."""

from dataclasses import asdict

from rich.console import Console

from cli import choosing
from cli.scorecard import mean_and_error, put_scorecard
from cli.tables import put_table
from cli.terminal import one_line, paged, plain, print_json
from cli.trajectory import put_rollout
from gymflow.analysis.marks import marks_of
from gymflow.analysis.wording import json_text, parts
from gymflow.contracts.plan import PlannedTask
from gymflow.contracts.report import RepeatLine, TaskLine
from gymflow.errors import InputError
from gymflow.metrics.scorecard import scorecard
from gymflow.metrics.summaries import repeat_lines, task_lines
from gymflow.store import RunReader, Store, rollout_id

_ENGINE_FIELDS = {"task_id", "responses_create_params", "agent_ref", "state", "sandbox", "tags", "cluster"}
CLIPPED = 200
"""Characters of a reason in a table; the whole of it stands with the rollout."""


def show_run(store: Store, reader: RunReader, verdict_set: str | None, *, json: bool) -> None:
    """Scorecard and tasks, the worst first."""
    card = scorecard(store, reader.run_id, verdict_set)
    tasks = task_lines(store, reader.run_id, verdict_set)
    sets = [one.name for one in reader.verdict_sets]
    if json:
        print_json(
            {
                "scorecard": card.model_dump(mode="json"),
                "verdict_sets": sets,
                "being_written": reader.being_written,
                "run": reader.document.model_dump(mode="json"),
                "tasks": [line.model_dump(mode="json") for line in tasks],
            }
        )
        return
    with paged() as console:
        put_scorecard(console, card)
        if len(sets) > 1:
            console.print(f"verdict sets, the current one last: {', '.join(sets)}", soft_wrap=True)
        if reader.being_written:
            console.print("being written now")
        console.print()
        _put_tasks(console, tasks)


def show_task(store: Store, reader: RunReader, verdict_set: str | None, given: str, *, json: bool) -> None:
    """A task and its repeats."""
    environment, task_id = choosing.task(task_lines(store, reader.run_id, verdict_set), given, reader.run_id)
    repeats = repeat_lines(store, reader.run_id, verdict_set, environment=environment, task_id=task_id)
    planned = next(one for one in reader.tasks() if (one.environment, one.task_id) == (environment, task_id))
    if json:
        print_json(
            {
                "run_id": reader.run_id,
                "verdict_set": verdict_set,
                "task": planned.model_dump(mode="json"),
                "repeats": [line.model_dump(mode="json") for line in repeats],
            }
        )
        return
    with paged() as console:
        _put_task(console, planned)
        _put_repeats(console, repeats)


def show_rollout(
    reader: RunReader, plan_index: int, verdict_set: str | None, turns: range | None, *, json: bool
) -> None:
    """One rollout, whole, or some of its turns."""
    if plan_index not in reader.completed():
        raise InputError(
            f"rollout {rollout_id(reader.run_id, plan_index)} was not sampled yet; `gym eval run --resume {reader.run_id}` "
            "samples what is missing"
        )
    record = reader.record(plan_index)
    verdicts = reader.verdicts(plan_index)
    if turns is not None and turns.start >= max(record.rollout.turns, 1):
        raise InputError(
            f"--turns: rollout {record.rollout.rollout_id} has {record.rollout.turns} turns, counted from 0"
        )
    name = record.rollout.rollout_id
    marks = marks_of(reader, verdict_set, [name]).get(name, [])
    if json:
        print_json(
            record.model_dump(mode="json")
            | {
                "verdict_set": verdict_set,
                "verdicts": [one.model_dump(mode="json") for one in verdicts],
                "marks": [asdict(mark) | {"turn": mark.turn(record)} for mark in marks],
            }
        )
        return
    with paged() as console:
        put_rollout(console, record, verdicts, verdict_set, turns, marks)


def _put_tasks(console: Console, tasks: list[TaskLine]) -> None:
    several = len({line.environment for line in tasks}) > 1
    agents = len({line.agent for line in tasks}) > 1
    columns = [
        "task",
        *(["environment"] if several else []),
        *(["agent"] if agents else []),
        "passed",
        "reward",
        "not scored",
    ]
    rows = [
        [
            line.task_id,
            *([line.environment] if several else []),
            *([line.agent] if agents else []),
            f"{line.passed}/{line.scored}",
            mean_and_error(line.reward, None),
            _not_scored(line),
        ]
        for line in tasks
    ]
    put_table(console, columns, rows, right=("passed", "reward"))


def _not_scored(line: TaskLine) -> str:
    counts = (("failed", line.failed), ("unverified", line.unverified), ("missing", line.missing))
    return ", ".join(f"{count} {kind}" for kind, count in counts if count)


def _put_task(console: Console, planned: PlannedTask) -> None:
    console.print(
        f"task {one_line(planned.task_id)}  ({planned.environment}, {planned.split})", style="bold", soft_wrap=True
    )
    if planned.tags:
        console.print(f"tags: {one_line(', '.join(planned.tags))}", soft_wrap=True)
    create = planned.task.get("responses_create_params") or {}
    for item in create.get("input") or ():
        for kind, text in parts(item):
            console.print(plain(kind), style="blue", soft_wrap=True)
            console.print("\n".join(f"  {line}" for line in plain(text).split("\n")), soft_wrap=True)
    for name, value in planned.task.items():
        if name not in _ENGINE_FIELDS:
            console.print(f"{name}: {one_line(value if isinstance(value, str) else json_text(value))}", soft_wrap=True)
    console.print()


def _put_repeats(console: Console, repeats: list[RepeatLine]) -> None:
    agents = len({line.agent for line in repeats}) > 1
    columns = [
        "repeat",
        *(["agent"] if agents else []),
        "outcome",
        "reward",
        "passed",
        "ended",
        "turns",
        "tokens",
        "time",
        "answer",
        "reason",
    ]
    rows = [
        [
            str(line.repeat),
            *([line.agent] if agents else []),
            line.outcome.value,
            "" if line.reward is None else mean_and_error(line.reward, None),
            "" if line.passed is None else "yes" if line.passed else "no",
            line.failure or (line.stop_reason.value if line.stop_reason else ""),
            "" if line.turns is None else str(line.turns),
            "" if line.completion_tokens is None else f"{line.completion_tokens:,}",
            "" if line.duration_s is None else f"{line.duration_s:.2f} s",
            _clip(line.extracted_answer),
            _clip(line.failure_message or line.reason),
        ]
        for line in repeats
    ]
    put_table(console, columns, rows, right=("repeat", "reward", "turns", "tokens", "time"))


def _clip(text: str | None) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= CLIPPED else line[: CLIPPED - 1] + "…"
