"""A verifier is proven by answers with known rewards before a run."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gymflow.validation import ValidationReport
from tests.support.environments import FIXTURES, VERIFIER, write_environment

Validated = Callable[..., Awaitable[ValidationReport]]


def messages(report: ValidationReport) -> str:
    return "\n".join(map(str, report.shown_faults))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("said == wanted", "bool(said)"), r"fixtures.jsonl:2: none on a: reward 1, expected 0"),
        (("said == wanted", "False"), "fixtures.jsonl:1: full on a: reward 0, expected 1"),
        (("said == wanted", "said in ('yes', 'no') and len(said) == len(FIRST)"), "NameError"),
        (("float(said == wanted)", "float('nan')"), "the reward is nan"),
        (
            ("float(said == wanted)", "2 * float(said == wanted)"),
            "the reward 2 lies outside the manifest's reward_range",
        ),
        (("Verdict(reward=float(said == wanted))", "0.5"), "the verifier returned float, not a Verdict"),
    ],
)
async def test_a_verifier_that_misses_a_known_reward_stops_the_run(
    tmp_path: Path, validated: Validated, change: tuple[str, str], message: str
) -> None:
    report = await validated(write_environment(tmp_path / "env", code=VERIFIER.replace(*change)))
    assert message in messages(report)
    assert not report.ok


async def test_a_verifier_that_passes_with_the_gold_swapped_stops_the_run(tmp_path: Path, validated: Validated) -> None:
    memorised = VERIFIER.replace("said == wanted", "said in ('yes', 'no') and not (said == 'no' and wanted == 'yes')")
    report = await validated(write_environment(tmp_path / "env", code=memorised))
    assert "fixtures.jsonl:1: full on a still passes with the gold swapped (1)" in messages(report)
    assert [fixture.swapped for fixture in report.fixtures if not fixture.passed] == [True]


async def test_every_kind_of_fixture_is_required(tmp_path: Path, validated: Validated) -> None:
    report = await validated(write_environment(tmp_path / "env", fixtures=FIXTURES[:3]))
    assert "no fixture of the kind format_variant, malformed, empty" in messages(report)


@pytest.mark.parametrize(
    ("fixture", "message"),
    [
        ({"task_id": "aa"}, "fixtures.jsonl:7: task_id: split 'test' has no task 'aa'"),
        ({"split": "tets"}, "fixtures.jsonl:7: split: there is no split 'tets'; did you mean test?"),
        ({"kind": "ful"}, "fixtures.jsonl:7: kind: "),
        ({"rewrad": 1}, "fixtures.jsonl:7: rewrad: unknown key; did you mean reward?"),
        ({"swapped": {"answer": 3}}, "with the gold swapped: the verifier failed: ValidationError"),
        ({"actions": [{"nme": "x"}]}, "action 0: write {name, arguments} or {message}"),
    ],
)
async def test_a_fault_in_a_fixture_names_its_line(
    tmp_path: Path, validated: Validated, fixture: dict[str, Any], message: str
) -> None:
    report = await validated(write_environment(tmp_path / "env", fixtures=[*FIXTURES, {**FIXTURES[0], **fixture}]))
    assert message in messages(report)


async def test_without_a_swapped_gold_a_warning_is_given(tmp_path: Path, validated: Validated) -> None:
    fixtures = [{**fixture, "swapped": None} for fixture in FIXTURES]
    report = await validated(write_environment(tmp_path / "env", fixtures=fixtures))
    assert report.ok and "nothing shows that the gold answer matters" in report.warnings[0]


async def test_a_prompt_that_shows_the_gold_answer_is_pointed_out(tmp_path: Path, validated: Validated) -> None:
    shows = write_environment(tmp_path / "env", prompt={"user": "{question} Hint: {answer}"})
    (warning,) = (await validated(shows)).warnings
    assert warning == "prompt shows the model {answer}, which the fixtures swap as the gold answer"


SESSION = """
from gymflow.environments import Session, Snapshot, ToolResult, function_tool


class Lamp(Session):
    async def start(self):
        self.on = False
        return await super().start()

    async def tools(self):
        return [function_tool("press", "Press the switch.", {})]

    async def call(self, tool, arguments):
        self.on = not self.on
        return ToolResult("on" if self.on else "off")

    async def snapshot(self):
        return Snapshot({"on": self.on})
"""


async def test_actions_are_played_into_a_fresh_session(tmp_path: Path, validated: Validated) -> None:
    press = {"name": "press", "arguments": {}}
    fixtures = [
        {
            "kind": "full",
            "task_id": "a",
            "actions": [press],
            "reward": 1.0,
            "swapped": {"expected_state": {"on": False}},
        },
        {"kind": "none", "task_id": "a", "actions": [press, press], "reward": 0.0},
        {"kind": "near_miss", "task_id": "a", "text": "It is on.", "reward": 0.0},
        {"kind": "format_variant", "task_id": "a", "actions": [press, {"message": "Done"}], "reward": 1.0},
        {"kind": "malformed", "task_id": "a", "actions": [{"name": "press", "arguments": "{"}], "reward": 0.0},
        {"kind": "empty", "task_id": "a", "text": "", "reward": 0.0},
    ]
    folder = write_environment(
        tmp_path / "env",
        rows=[{"task_id": "a", "question": "Light, please.", "expected_state": {"on": True}}],
        fixtures=fixtures,
        files={"session.py": SESSION},
        session="session:Lamp",
        offers=["messages", "tools"],
        harness={"name": "simple"},
        verifier={"name": "state"},
    )
    report = await validated(folder)
    assert report.ok, messages(report)
    assert len(report.fixtures) == 7


async def test_output_items_are_read_as_the_last_response(tmp_path: Path, validated: Validated) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "go", "arguments": "{}"}
    count = "len(evidence.final_tool_calls)"
    code = VERIFIER.replace("float(said == wanted)", f"float(said == wanted or {count} == 2)")
    fixtures = [*FIXTURES, {"kind": "full", "task_id": "a", "output": [call, call], "reward": 1.0}]
    report = await validated(write_environment(tmp_path / "env", code=code, fixtures=fixtures))
    assert report.ok, messages(report)


async def test_a_verifier_that_cannot_start_is_a_fault(tmp_path: Path, validated: Validated) -> None:
    opening = '    async def open(self) -> None:\n        raise OSError("no sandbox here")\n\n    async def verify'
    report = await validated(
        write_environment(tmp_path / "env", code=VERIFIER.replace("    async def verify", opening))
    )
    assert "verifier ./verifier.py cannot start: OSError: no sandbox here" in messages(report)
