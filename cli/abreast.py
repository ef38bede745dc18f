"""Two repeats of a task side by side, at the turn where they part."""

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.terminal import one_line, paged, print_json
from cli.trajectory import put_marks, put_moment
from gymflow.analysis.marks import Mark, marks_of
from gymflow.analysis.moments import Moment, moments
from gymflow.analysis.parting import moves, parting
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.verdict import VerdictRecord
from gymflow.errors import InputError
from gymflow.store import RunReader, rollout_id

GAP = 4


@dataclass(frozen=True, slots=True)
class _Side:
    record: RolloutRecord
    verdict: VerdictRecord | None
    marks: list[Mark]

    @property
    def answer(self) -> str | None:
        return self.verdict.verdict.extracted_answer if self.verdict and self.verdict.verdict else None

    @property
    def result(self) -> str:
        if self.verdict is None or self.verdict.verdict is None:
            return self.record.rollout.failure.value if self.record.rollout.failure else "no reward"
        return f"reward {self.verdict.verdict.reward:g}, {'passed' if self.verdict.passed else 'not passed'}"


def show_pair(
    reader: RunReader, plan_indices: tuple[int, int], verdict_set: str | None, turns: range | None, *, json: bool
) -> None:
    """What both did is named, and the turn at which they part is shown in two columns (`turns`: those instead)."""
    one, other = (_side(reader, index, verdict_set) for index in plan_indices)
    did = [moves(side.record, side.answer) for side in (one, other)]
    parts_at = parting(*did)
    if json:
        ids = [side.record.rollout.rollout_id for side in (one, other)]
        print_json({"rollouts": ids, "results": [one.result, other.result], "parts_at": parts_at, "moves": did})
        return
    with paged() as console:
        _put_beside(console, *(_head(side) for side in (one, other)))
        if parts_at is None:
            console.print("\nboth did the same in every turn", style="italic")
        else:
            same = {0: "", 1: "the same in turn 0; "}.get(parts_at, f"the same in turns 0-{parts_at - 1}; ")
            console.print(f"\n{same}they part at turn {parts_at}", style="italic")
        shown = turns if turns is not None else range(parts_at or 0, (parts_at or 0) + 1)
        columns = [_told(side, console) for side in (one, other)]
        for turn in shown:
            if any(turn in column for column in columns):
                _put_beside(console, *(column.get(turn, Text(f"no turn {turn}", "dim")) for column in columns))


def _side(reader: RunReader, plan_index: int, verdict_set: str | None) -> _Side:
    name = rollout_id(reader.run_id, plan_index)
    if plan_index not in reader.completed():
        raise InputError(f"rollout {name} was not sampled yet, so there is nothing to compare")
    verdicts = [one for one in reader.verdicts(plan_index) if one.verdict_set == verdict_set]
    return _Side(
        reader.record(plan_index),
        verdicts[0] if verdicts else None,
        marks_of(reader, verdict_set, [name]).get(name, []),
    )


def _head(side: _Side) -> Text:
    rollout = side.record.rollout
    text = Text(f"rollout {rollout.rollout_id}  repeat {rollout.repeat}\n", style="bold")
    passed = side.verdict is not None and side.verdict.passed
    text.append(f"{side.result}\n", style="not bold green" if passed else "not bold red")
    if side.answer is not None:
        text.append(f"answer: {one_line(side.answer)}", style="not bold")
    return text


def _told(side: _Side, console: Console) -> dict[int, Text]:
    """By turn, what `gym show` prints of it, for a column."""
    scratch = Console(
        width=100_000, color_system="standard" if console.color_system else None, force_terminal=console.is_terminal,
        highlight=False, markup=False, emoji=False,
    )  # fmt: skip

    def printed(moment: Moment) -> Text:
        with scratch.capture() as capture:
            put_moment(scratch, moment)
            put_marks(scratch, [mark for mark in side.marks if mark.turn(side.record) == moment.index])
        return Text.from_ansi(capture.get())

    return {moment.index: printed(moment) for moment in moments(side.record) if moment.index is not None}


def _put_beside(console: Console, left: Text, right: Text) -> None:
    table = Table.grid(expand=True, padding=(0, GAP, 0, 0))
    table.add_column(ratio=1, overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    table.add_row(left, right)
    console.print(table)
