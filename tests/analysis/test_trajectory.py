"""The stored trajectory answers what is asked of it, for every harness; docs say for which it does, and are checked here."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema.validators import Draft202012Validator

from flows.evaluate import evaluate
from gymflow.analysis.trajectory import CRITERIA, coverage, seen_at, turn_stories
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.run import RunConfig
from gymflow.contracts.schema import rollout_schema
from gymflow.contracts.trajectory import Gap, Invocation, SandboxUse, Usage
from gymflow.registry import Registry
from gymflow.registry.preparing import prepared
from gymflow.sandboxes.local.platform import bubblewrap
from gymflow.store import Store

from .conftest import Planter, Said, Sample, answering, tool

DOCS = Path(__file__).parents[2] / "docs"
MATRIX = "trajectory-matrix.md"
MARKS = {"full": "full", "partial": "partial", "none": "none", "nothing to observe": "–"}
USAGE = {"prompt_tokens": 12, "completion_tokens": 5}
SUMS = [{"name": "calculate", "arguments": {"a": a, "op": "+", "b": 2}} for a in (1, 3)]

# Harness -> a run that exercises what it can do.
RUNS: dict[str, dict[str, Any]] = {
    "single_turn": {
        "environments": [{"name": "mcqa", "limit": 1}],
        "rules": [{"text": "The answer is (A).", "reasoning": "It has to be A.", "usage": USAGE}],
    },
    "simple": {
        "environments": [{"name": "arithmetic", "split": "tool", "limit": 1, "harness": {"name": "simple"}}],
        "rules": [{"turn": 0, "tool_calls": SUMS, "usage": USAGE}, {"text": "Answer: 3", "usage": USAGE}],
    },
}

SEARCHES = [
    {"name": "mcp__gym__search_mail", "arguments": {"sender": f"{name}@northfield.example"}}
    for name in ("amara", "nobody")
]
SHELL = {"codex": ("exec_command", "cmd"), "claude_code": ("Bash", "command"), "pi": ("bash", "command")}
SUBAGENT = {"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"}


WINDOW = 30_000


def foreign(harness: str) -> dict[str, Any]:
    """A run in which a foreign harness uses the environment's tools and its own, a subagent where it has any, and compacts its
    history when the model says that its window is nearly full."""
    name, argument = SHELL[harness]
    own = [
        {"name": name, "arguments": {argument: f"sleep 0.5; echo {'word ' * 3000}"}},
        {"name": name, "arguments": {argument: "exit 3"}},
    ]
    window = 100_000 if harness == "claude_code" else WINDOW  # the least that Claude Code takes
    rules: list[dict[str, Any]] = [
        {"turn": 0, "times": 1, "tool_calls": SEARCHES, "usage": USAGE},
        {"turn": 1, "times": 1, "tool_calls": own, "usage": {**USAGE, "prompt_tokens": window - 2_000}},
        {"text": "Done.", "reasoning": "That is all.", "usage": USAGE},
    ]
    if harness == "claude_code":
        rules[0]["tool_calls"] = [*SEARCHES, {"name": "Task", "arguments": SUBAGENT}]
        rules.insert(1, {"turn": 0, "times": 1, "text": "I have looked around.", "usage": USAGE})
    played_by = {"name": harness, "parameters": {"context_tokens": window}}
    return {"environments": [{"name": "workplace", "tasks": ["test-0000"], "harness": played_by}], "rules": rules}


async def play(harness: str, root: Path) -> RolloutRecord:
    run = RUNS.get(harness) or foreign(harness)
    model = {"provider": "scripted", "model": "stand-in", "parameters": {"rules": run["rules"]}, "max_retries": 0}
    config = RunConfig.model_validate({"environments": run["environments"], "models": {"policy": model}})
    await evaluate(config, harness, str(root), health=False)
    return Store(root).run(harness).record(0)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RolloutRecord]:
    """A rollout of each harness, as the store has it."""
    root = tmp_path_factory.mktemp("played") / "store"
    return {harness: asyncio.run(play(harness, root)) for harness in RUNS}


def checked(name: str, text: str) -> None:
    """A generated document is up to date; with UPDATE_DOCS=1 it is written instead."""
    path = DOCS / name
    if os.environ.get("UPDATE_DOCS") == "1":
        path.write_text(text)
    assert path.read_text() == text, f"docs/{name} is out of date; UPDATE_DOCS=1 pytest {Path(__file__).name} writes it"


def rows(text: str) -> list[list[str]]:
    """The cells of a Markdown table, its rule left out."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_matrix_in_the_docs_is_what_rollouts_show(played: dict[str, RolloutRecord]) -> None:
    found = {harness: coverage(record) for harness, record in played.items()}
    head, *cells = rows((DOCS / MATRIX).read_text())
    for harness, one in found.items():
        column = head.index(f"`{harness}`")
        assert [row[column] for row in cells] == [MARKS[one[criterion]] for criterion in CRITERIA], harness
        assert set(one.values()) <= {"full", "nothing to observe"}, harness
    assert found["simple"]["parallel"] == found["simple"]["tools"] == "full"


@pytest.mark.harness
def test_the_whole_matrix_is_what_rollouts_of_all_harnesses_show(
    played: dict[str, RolloutRecord], tmp_path: Path
) -> None:
    if isinstance(reason := bubblewrap(), str):
        pytest.skip(f"no isolation here: {reason}")
    list(prepared(Registry(), SHELL, print))
    found = {harness: coverage(record) for harness, record in played.items()}
    found |= {harness: coverage(asyncio.run(play(harness, tmp_path / "store"))) for harness in SHELL}
    lines = [
        "# What the stored trajectory shows, by harness",
        "",
        "Made by `tests/analysis/test_trajectory.py` from rollouts that it plays. *full*: all of it; *–*: there was nothing to",
        "observe, such as tool calls of an agent that calls no tools.",
        "",
        "| criterion | " + " | ".join(f"`{harness}`" for harness in found) + " |",
        "|---|" + "---|" * len(found),
    ]
    for criterion, meaning in CRITERIA.items():
        lines.append(f"| {meaning} | " + " | ".join(MARKS[one[criterion]] for one in found.values()) + " |")
    checked(MATRIX, "\n".join(lines) + "\n")
    for harness, one in found.items():
        assert set(one.values()) <= {"full", "nothing to observe"}, harness
    for harness in SHELL:
        assert set(found[harness].values()) == {"full"}, harness


def test_a_stored_rollout_fits_the_published_schema(played: dict[str, RolloutRecord]) -> None:
    schema = rollout_schema()
    checked("rollout.schema.json", json.dumps(schema, indent=1) + "\n")
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    stored = played["simple"].model_dump(mode="json")
    validator.validate(stored)
    stored["evidence"]["trajectory"]["turns"][0]["tool_calls"][0]["status"] = "fine"
    assert not validator.is_valid(stored)


def test_the_history_at_every_call_is_rebuilt_exactly(played: dict[str, RolloutRecord]) -> None:
    record = played["simple"].model_copy(deep=True)
    calls = record.model_calls
    first, second = seen_at(calls, 0), seen_at(calls, 1)
    assert first == calls[0].new_input
    assert second[: len(first)] == first
    assert [item.get("type") for item in second[len(first) :]] == ["function_call"] * 2 + ["function_call_output"] * 2
    assert [item["output"] for item in second[-2:]] == ["3", "5"]
    calls[1].parent = 7
    with pytest.raises(LookupError, match="call 7 is not recorded"):
        seen_at(calls, 1)


def test_turns_as_question_and_answer(played: dict[str, RolloutRecord]) -> None:
    [only] = turn_stories(played["single_turn"])
    assert only.answer == "The answer is (A)."
    assert only.reasoning == "It has to be A."
    assert "What is the name of the process" in only.question
    assert (only.resolved, only.steps, only.started_at is not None) == (True, 0, True)
    asking, answering_ = turn_stories(played["simple"])
    assert (asking.steps, asking.answer, answering_.steps, answering_.answer) == (2, "", 0, "Answer: 3")


def test_what_is_not_known_is_not_full(planter: Planter) -> None:
    def change(record: RolloutRecord) -> None:
        trajectory = record.evidence.trajectory
        trajectory.turns[0].tool_calls[0].ended_at = None
        trajectory.invocations.append(Invocation(index=1, kind="subagent"))
        trajectory.sandbox.append(SandboxUse(command="ls", outcome="completed", started_at=1.0, duration_s=0.1))
        trajectory.gaps.append(Gap(code="no_history"))
        record.model_calls[1].usage = Usage()

    turns = [Said(tools=[tool(), tool(name="other")]), Said("The answer is (A).")]
    planter.run("holes", [[Sample(turns, change=change)], [answering("B")]])
    assert coverage(planter.store.run("holes").record(0)) == {
        "calls": "full",
        "tokens": "partial",
        "turns": "full",
        "history": "partial",
        "tools": "partial",
        "parallel": "none",
        "invocations": "none",
        "sandbox": "none",
    }
    assert coverage(planter.store.run("holes").record(1))["tools"] == "nothing to observe"
