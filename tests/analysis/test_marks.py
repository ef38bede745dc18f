"""Findings and labels beside the turn that they speak of, and two repeats where they part."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from cli.abreast import show_pair
from cli.looking import show_rollout
from cli.runs import show
from gymflow.analysis.diagnose import diagnose
from gymflow.analysis.health import examine
from gymflow.analysis.marks import Mark, marks_of
from gymflow.analysis.parting import parting
from gymflow.contracts.trajectory import ModelCall
from gymflow.errors import InputError

from .conftest import Planter, Said, Sample, answering, tool


def looping(planter: Planter, **fields: Any) -> Sample:
    """Looks three times at the same thing, with an error at the second, and answers wrong."""
    looks = [Said(tools=[tool(output="no such thing", status="error" if at == 1 else "ok")]) for at in range(3)]
    return Sample([*looks, Said(f"The answer is ({planter.wrong(0)}).")], **fields)


def right(planter: Planter) -> Sample:
    return Sample([Said(tools=[tool(output="no such thing")]), Said(f"The answer is ({planter.gold(0)}).")])


@pytest.fixture
def examined(planter: Planter) -> Planter:
    planter.run("r", [[looping(planter), right(planter)], [answering(planter.gold(1))] * 2])
    asyncio.run(diagnose(planter.store, "r"))
    examine(planter.store, "r")
    return planter


def test_marks_stand_at_their_turns_in_the_printed_trajectory(
    examined: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = examined.store.run("r")
    marks = marks_of(reader, "first", ["r-0"])["r-0"]
    record = reader.record(0)
    turns = {mark.name: mark.turn(record) for mark in marks}
    assert turns["repeated_tool_call"] is not None
    assert (
        set(marks_of(reader, "first")) >= {"r-0"}
        and marks_of(reader, "first")["r-0"] == marks
        and marks_of(reader, "first", ["r-3"]) == {}
    )

    show_rollout(reader, 0, "first", None, json=False)
    sections = capsys.readouterr().out.split("── ")
    for mark in marks:
        [at] = [number for number, text in enumerate(sections) if f"▲ {mark.name}  {mark.locator}:" in text]
        expected = mark.turn(record)
        assert sections[at].startswith(f"turn {expected}" if expected is not None else "rollout r-0")


def test_json_has_the_marks_and_a_rollout_of_a_run_that_was_not_examined_has_none(
    examined: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    show_rollout(examined.store.run("r"), 0, "first", None, json=True)
    assert {mark["kind"] for mark in json.loads(capsys.readouterr().out)["marks"]} == {"finding", "label"}
    examined.run("bare", [[answering("A")]])
    assert marks_of(examined.store.run("bare"), "first") == {}


def test_labels_of_another_verdict_set_are_not_beside_its_verdicts(examined: Planter) -> None:
    reader = examined.store.run("r")
    assert {mark.kind for mark in marks_of(reader, "first", ["r-0"])["r-0"]} == {"finding", "label"}
    assert {mark.kind for mark in marks_of(reader, "another", ["r-0"])["r-0"]} == {"finding"}


def test_a_locator_leads_to_its_turn(examined: Planter) -> None:
    record = examined.store.run("r").record(0)
    record.model_calls.append(ModelCall(index=9, turn=0, role="judge", new_input=[], model="m", started_at=1.0))
    turns = {"turns/2/tool_calls/0/status": 2, "calls/1/output": 1, "calls/9/output": 0, "calls/7/output": None}
    turns |= {"rollout/failure": None, "verdict/passed": None}
    assert {one: Mark("finding", "info", "x", one, "y").turn(record) for one in turns} == turns


def test_two_repeats_stand_side_by_side_where_they_part(examined: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    reader = examined.store.run("r")
    show_pair(reader, (0, 1), "first", None, json=False)
    out = capsys.readouterr().out
    assert "they part at turn 1" in out and "turn 0 ──" not in out
    [looked] = [line for line in out.splitlines() if "tool look" in line]
    assert "assistant" in looked.split("]")[1] or "▲" in out
    show_pair(reader, (0, 1), "first", None, json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["parts_at"], found["rollouts"]) == (1, ["r-0", "r-1"])
    assert found["moves"][1] == ['look({"at": 1})', f"answers {examined.gold(0)}"]
    show_pair(reader, (0, 1), "first", range(0, 1), json=False)
    assert capsys.readouterr().out.count("turn 0 ──") == 2


def test_repeats_that_did_the_same_are_said_to(examined: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    show_pair(examined.store.run("r"), (2, 3), "first", None, json=False)
    assert "both did the same in every turn" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("one", "other", "turn"),
    [([], [], None), (["a"], ["a"], None), (["a"], ["a", "b"], 1), (["a", "c"], ["a", "b"], 1)],
)
def test_parting_is_the_first_difference_or_end(one: list[str], other: list[str], turn: int | None) -> None:
    assert parting(one, other) == parting(other, one) == turn


def test_compare_goes_with_a_task(examined: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    root = str(Path(examined.store.root))
    show("r", "q0", None, None, (0, 1), None, None, root, False)
    assert "part at turn 1" in capsys.readouterr().out
    with pytest.raises(InputError, match="--compare goes with a task"):
        show("r", "q0", 1, None, (0, 1), None, None, root, False)
    with pytest.raises(InputError, match="no repeat 7"):
        show("r", "q0", None, None, (0, 7), None, None, root, False)
