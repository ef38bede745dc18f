"""NeMo Gym rollout files: every published one becomes a run, rescoring agrees with its reward, and ours come back whole."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.verdict import VerdictRecord
from gymflow.errors import InputError
from gymflow.interop.exchange import export_run, import_file
from gymflow.registry import Registry
from gymflow.runtime.rejudging import Change
from gymflow.runtime.rescoring import rescore
from gymflow.sandboxes.local.platform import bubblewrap
from gymflow.store import RunWriter, Store, connect
from tests.support.runs import scripted

PEERS = Path(__file__).parents[1] / "cases" / "peer_rollouts"

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "mcqa": ("mcqa", {}),
    "bunsenbench_chemistry_mcq": ("mcqa", {}),
    "math_with_judge": ("math", {}),
    "polymath": ("math", {}),
    "string_match": ("exact", {}),
    "imo_gradingbench": ("exact", {"extraction": "last_line"}),
    "equivalence_rule": ("exact", {}),
    "hotpotqa_qa": ("exact", {"pattern": r'"answer":\s*"([^"]*)"', "match": "normalized"}),
    "xlam_fc": ("tool_calls", {}),
    "single_step_tool_use_with_argument_comparison": ("tool_calls", {}),
    "swe_pivot": ("tool_calls", {}),
    "terminal_multi_harness": ("tool_calls", {}),
    "code_gen": ("stdin_stdout", {}),
}
"""Family -> the verifier whose rewards are the published ones. GPQA and structured outputs, whose rows were not published, are
scored from their prompts in tests/verifiers/test_peer_rollouts.py."""

OTHERWISE = {
    "terminal_multi_harness-1": (
        1.0,
        0.0,
        "the expected batch is `ordered`: write_stdin, then exec_command; the answer has them the other way round",
    ),
}
"""Rollout -> published reward, ours, and why the published one is wrong."""


@pytest.fixture
def place(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def rows(store: Store, sql: str) -> list[tuple[Any, ...]]:
    with connect(store.root) as connection:
        return connection.execute(sql).fetchall()


async def test_every_published_file_becomes_a_run(place: Store) -> None:
    families = sorted(PEERS.glob("*.jsonl"))
    for file in families:
        report = await import_file(place, file, "nemo-gym", Registry(), run_id=file.stem)
        published = [json.loads(line)["rollout"] for line in file.read_text().splitlines()]
        assert (report.rollouts, report.completed, report.scored) == (len(published),) * 3
        assert report.gaps["imported"] == report.gaps["no_model_calls"] == len(published)
    assert len(families) == 45
    rewards = dict(rows(place, "select rollout_id, reward from outcomes"))
    for file in families:
        for index, line in enumerate(file.read_text().splitlines()):
            assert rewards[f"{file.stem}-{index}"] == json.loads(line)["rollout"]["reward"]


@pytest.mark.parametrize("family", FAMILIES)
async def test_rescoring_agrees_with_the_published_reward(family: str, place: Store) -> None:
    verifier, parameters = FAMILIES[family]
    if verifier == "stdin_stdout" and isinstance(bubblewrap(), str):
        pytest.skip(str(bubblewrap()))
    report = await import_file(
        place,
        PEERS / f"{family}.jsonl",
        "nemo-gym",
        Registry(),
        verifier=verifier,
        parameters=parameters,
        run_id=family,
    )
    assert report.misfits == 0
    done = await rescore(place, family, Change(), Registry())
    assert done.scored == report.rollouts and done.previous == report.verdict_set
    pairs = rows(
        place,
        f"""select rollout_id, o.reward, n.reward from outcomes o join outcomes n using (rollout_id)
            where o.verdict_set = '{done.previous}' and n.verdict_set = '{done.verdict_set}'""",
    )
    assert len(pairs) == 2
    for rollout, published, ours in pairs:
        expected = OTHERWISE[rollout][:2] if rollout in OTHERWISE else (published, published)
        assert (published, ours) == expected, rollout


async def test_without_a_verifier_of_ours_rewards_are_kept_and_rescoring_is_refused(place: Store) -> None:
    await import_file(place, PEERS / "arc_agi.jsonl", "nemo-gym", Registry(), run_id="r")
    with pytest.raises(InputError, match="'recorded' is recorded"):
        await rescore(place, "r", Change(), Registry())
    done = await rescore(place, "r", Change(verifier="exact"), Registry())
    assert done.scored == 2
    assert rows(place, "select distinct verdict_failure from outcomes where is_current") == [("verifier_error",)]


async def test_turns_and_tool_calls_are_rebuilt(place: Store) -> None:
    report = await import_file(place, PEERS / "example_multi_step.jsonl", "nemo-gym", Registry(), run_id="r")
    assert report.gaps["no_tool_timing"] == 2
    published = json.loads((PEERS / "example_multi_step.jsonl").read_text().splitlines()[0])["rollout"]
    output = published["response"]["output"]
    calls = [item for item in output if item["type"] == "function_call"]
    answers = [item["output"] for item in output if item["type"] == "function_call_output"]
    found = rows(place, "select name, arguments, output, status from tool_calls where rollout_id = 'r-0'")
    assert [(name, arguments) for name, arguments, _, _ in found] == [(c["name"], c["arguments"]) for c in calls]
    assert [one[2] for one in found] == answers and {one[3] for one in found} == {"ok"}
    usage = published["response"]["usage"]
    assert rows(place, "select prompt_tokens, completion_tokens from rollouts where rollout_id = 'r-0'") == [
        (usage["input_tokens"], usage["output_tokens"])
    ]


ROW: dict[str, Any] = {
    "responses_create_params": {"input": [{"role": "user", "content": "1 + 1?"}]},
    "response": {"model": "m", "output": [{"type": "message", "role": "assistant", "content": "2"}]},
    "reward": 1.0,
    "expected_answer": "2",
    "agent_ref": {"type": "responses_api_agents", "name": "solver"},
}


def file_of(folder: Path, *lines: Any, name: str = "rollouts.jsonl") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return file


async def test_indices_make_repeats_and_failures_that_were_cured_are_left_out(place: Store, tmp_path: Path) -> None:
    at = [{"_ng_task_index": task, "_ng_rollout_index": repeat} for task in (0, 1) for repeat in (0, 1)]
    file = file_of(tmp_path / "peer", ROW | at[0], ROW | at[1] | {"reward": 0.0}, ROW | at[2])
    failed = {**ROW, "_ng_failure_class": "agent_run_error", "_ng_failure_message": "boom"}
    del failed["response"], failed["reward"]
    judged = ROW | {"_ng_failure_class": "judge_failed", "_ng_failure_message": "no judge"} | at[3]
    file_of(tmp_path / "peer", failed | at[0], failed | at[3], judged, name="rollouts_failures.jsonl")
    report = await import_file(place, file, "nemo-gym", Registry(), run_id="r")
    assert (report.tasks, report.rollouts, report.completed, report.scored) == (2, 4, 4, 3)
    assert rows(place, "select task_id, repeat, outcome, reward from outcomes order by plan_index") == [
        ("0", 0, "scored", 1.0),
        ("0", 1, "scored", 0.0),
        ("1", 0, "scored", 1.0),
        ("1", 1, "unverified", None),
    ]
    assert rows(place, "select verdict_failure from outcomes where outcome = 'unverified'") == [("judge_error",)]


async def test_rows_that_were_asked_come_from_their_own_file(place: Store, tmp_path: Path) -> None:
    at = {"_ng_task_index": 0, "_ng_rollout_index": 0}
    bare = {name: value for name, value in (ROW | at).items() if name != "expected_answer"}
    file = file_of(tmp_path / "peer", bare | {"extracted_answer": "2"})
    asked = {"responses_create_params": ROW["responses_create_params"], "expected_answer": "2", **at}
    file_of(tmp_path / "peer", asked, name="rollouts_materialized_inputs.jsonl")
    report = await import_file(place, file, "nemo-gym", Registry(), verifier="exact", run_id="r")
    assert report.misfits == 0
    assert rows(place, "select task ->> 'expected_answer', task ->> 'extracted_answer' from tasks") == [("2", None)]
    assert rows(place, "select extracted_answer, details ->> 'extracted_answer' from verdicts") == [("2", "2")]


async def test_an_environment_of_ours_pairs_with_its_own_tasks(place: Store, played: Any, store: Path) -> None:
    ours = await played(scripted(environments=[{"name": "mcqa", "limit": 2}]))
    output = store.parent / "x" / "out.jsonl"
    export_run(ours, "r", "nemo-gym", output)
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    foreign = file_of(
        store.parent / "y", *({name: value for name, value in line.items() if name != "gymflow"} for line in lines)
    )
    report = await import_file(ours, foreign, "nemo-gym", Registry(), environment="mcqa", run_id="theirs")
    assert report.misfits == 0 and report.environment == "mcqa"
    assert rows(
        ours,
        "select count(*) from plan a join plan b using (task_key, repeat, task_id) where a.run_id = 'r' and b.run_id = 'theirs'",
    ) == [(2,)]
    done = await rescore(ours, "theirs", Change(), Registry())
    assert done.scored == 2
    assert len(rows(ours, "select distinct task_id, reward from outcomes")) == 2


async def test_token_ids_of_training_rows_are_chained(place: Store, tmp_path: Path) -> None:
    tokens = {"prompt_token_ids": [1, 2], "generation_token_ids": [3, 4], "generation_log_probs": [-0.1, -0.2]}
    later = {"prompt_token_ids": [1, 2, 3, 4, 5], "generation_token_ids": [6], "generation_log_probs": [-0.3]}
    output = [
        {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}", **tokens},
        {"type": "function_call_output", "call_id": "c", "output": "5"},
        {"type": "message", "role": "assistant", "content": "6", **later},
    ]
    file = file_of(tmp_path / "peer", ROW | {"response": {"model": "m", "output": output}})
    report = await import_file(place, file, "nemo-gym", Registry(), run_id="r")
    assert "no_token_ids" not in report.gaps
    assert rows(place, "select token_ids, loss_mask from tokens") == [([1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 0, 1])]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"rollouts.jsonl:1: not JSON"),
        ({"reward": 1.0}, r"rollouts.jsonl:1: response.output"),
        (ROW | {"reward": "high"}, r"rollouts.jsonl:1: reward"),
        (ROW | {"gymflow": {"version": 99}}, r"rollouts.jsonl:1: .*version 2"),
        ("", "is empty"),
    ],
)
async def test_what_cannot_be_read_is_named(line: Any, message: str, place: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        await import_file(place, file_of(tmp_path / "peer", line), "nemo-gym", Registry())
    assert place.runs() == []


async def test_a_run_with_snapshots_comes_back_whole(played: Any, round_trip: Any) -> None:
    config = scripted(environments=[{"name": "word_guess", "limit": 2}], rules=[{"text": "apple"}])
    store = await played(config)
    before, after = await round_trip(store, "nemo-gym")
    assert before == after and before["records"][0]["evidence"]["snapshot"] is not None


async def test_a_run_that_is_there_already_gets_another_id(played: Any, tmp_path: Path) -> None:
    store = await played(scripted())
    export_run(store, "r", "nemo-gym", tmp_path / "out.jsonl")
    report = await import_file(store, tmp_path / "out.jsonl", "nemo-gym", Registry())
    assert report.run_id.startswith("r-imported-")
    assert (
        rows(store, "select run_id = 'r', count(*), avg(reward) from outcomes group by all order by 1")[0][1:]
        == (rows(store, "select run_id = 'r', count(*), avg(reward) from outcomes group by all order by 1")[1][1:])
    )


async def test_nothing_is_written_over(played: Any, tmp_path: Path) -> None:
    store = await played(scripted())
    (tmp_path / "out.jsonl").write_text("precious")
    with pytest.raises(InputError, match="exists already"):
        export_run(store, "r", "nemo-gym", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text() == "precious"


async def test_an_import_that_was_cut_short_goes_on_where_it_ended(
    place: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [ROW | {"_ng_task_index": task, "expected_answer": str(task)} for task in range(600)]
    file = file_of(tmp_path / "peer", *lines)
    commit = RunWriter.commit

    async def torn(self: RunWriter, record: RolloutRecord, verdicts: Sequence[VerdictRecord] = ()) -> None:
        if record.rollout.plan_index >= 300:
            raise ConnectionAbortedError("the process ends here")
        await commit(self, record, verdicts)

    with monkeypatch.context() as cut, pytest.raises(ConnectionAbortedError):
        cut.setattr(RunWriter, "commit", torn)
        await import_file(place, file, "nemo-gym", Registry(), run_id="r")
    begun = len(place.run("r").completed())
    assert 0 < begun < 600
    report = await import_file(place, file, "nemo-gym", Registry(), run_id="r")
    assert (report.rollouts, report.completed, report.scored) == (600, 600, 600)
    assert report.notes == [f"{begun} rollouts were here already, from an import that was cut short"]
    assert rows(place, "select outcome, count(*), count(distinct rollout_id) from outcomes group by 1") == [
        ("scored", 600, 600)
    ]
    with pytest.raises(InputError, match="holds the whole file"):
        await import_file(place, file, "nemo-gym", Registry(), run_id="r")
    other = file_of(tmp_path / "other", *lines[:3])
    with pytest.raises(InputError, match="not from this file"):
        await import_file(place, other, "nemo-gym", Registry(), run_id="r")


@pytest.mark.parametrize("named", [{"_ng_rollout_id": "0-0"}, {"_ng_rollout_index": 0}])
async def test_rows_of_one_id_are_one_rollout(named: dict[str, Any], place: Store, tmp_path: Path) -> None:
    first = ROW | {"_ng_task_index": 0} | named
    other = first | {"reward": 0.0}
    agent = first | {"agent_ref": {"name": "another"}}
    file = file_of(tmp_path / "in", first, first, other, agent, first | {"_ng_task_index": 1})
    report = await import_file(place, file, "nemo-gym", Registry(), run_id="r")
    assert (report.tasks, report.rollouts, report.scored, report.repeated) == (2, 3, 3, 1)
    [conflict] = report.conflicts
    assert "rollouts.jsonl:3" in conflict and "rollouts.jsonl:1" in conflict and "differs" in conflict
    assert rows(place, "select agent, repeat, reward from outcomes order by plan_index") == [
        ("solver", 0, 1.0),
        ("another", 0, 1.0),
        ("solver", 0, 1.0),
    ]


async def test_equal_rows_without_an_id_are_repeats(place: Store, tmp_path: Path) -> None:
    report = await import_file(place, file_of(tmp_path / "in", ROW, ROW), "nemo-gym", Registry(), run_id="r")
    assert (report.tasks, report.rollouts, report.repeated, report.conflicts) == (1, 2, 0, [])
    assert rows(place, "select repeat from outcomes order by 1") == [(0,), (1,)]
