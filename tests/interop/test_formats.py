"""ATIF, Inspect logs and trajectory records: foreign ones become runs with their gaps, ours come back whole."""

import asyncio
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gymflow.errors import InputError
from gymflow.interop import FORMATS
from gymflow.interop.exchange import export_run, import_file
from gymflow.registry import Registry
from gymflow.runtime.rejudging import Change
from gymflow.runtime.rescoring import rescore
from gymflow.store import Store, connect
from tests.support.runs import scripted

DATA = Path(__file__).parent / "data"
OUTPUTS = {"nemo-gym": "out.jsonl", "ng-trajectory": "out.jsonl", "atif": "out", "inspect": "out.eval"}
CALLS = [
    {
        "turn": 0,
        "text": "Let me see.",
        "reasoning": "Add.",
        "tool_calls": [{"name": "add", "arguments": {"a": 4, "b": 2}}],
    },
    {"turn": 1, "tool_calls": [{"name": "add", "arguments": "not json"}, {"name": "nothing", "arguments": {}}]},
    {"text": "Answer: 6"},
]


@pytest.fixture
def place(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def rows(store: Store, sql: str) -> list[tuple[Any, ...]]:
    with connect(store.root) as connection:
        return connection.execute(sql).fetchall()


@pytest.fixture(scope="session")
def agents_run(play: Any) -> Store:
    """Three tasks, two repeats, three turns each: reasoning, a good call, a malformed and an unknown one."""
    return play("agent", scripted(environments=[{"name": "arithmetic", "limit": 3}], rules=CALLS, repeats=2))


@pytest.fixture(scope="session")
def failing_run(play: Any) -> Store:
    """Of four rollouts infrastructure failed one; scored by two verifiers."""
    rules = [
        {"contains": "?", "error": {"status": 500, "message": "down", "retryable": False}, "times": 1},
        {"text": "The answer is (A)."},
    ]
    store: Store = play("failing", scripted(rules=rules, limits={"max_attempts": 1, "concurrency": 1}))
    asyncio.run(rescore(store, "r", Change({"mode": "lenient"}), Registry()))
    return store


@pytest.mark.parametrize("format", FORMATS)
async def test_an_agents_run_comes_back_whole(format: str, agents_run: Store, round_trip: Any) -> None:
    before, after = await round_trip(agents_run, format, OUTPUTS[format])
    assert before == after and len(before["records"]) == 6


@pytest.mark.parametrize("format", FORMATS)
async def test_failed_rollouts_and_earlier_verdict_sets_come_back_too(
    format: str, failing_run: Store, round_trip: Any
) -> None:
    before, after = await round_trip(failing_run, format, OUTPUTS[format])
    assert before == after and len(before["sets"]) == 2
    assert {one["rollout"]["status"] for one in before["records"]} == {"completed", "failed"}


@pytest.fixture
def exported(agents_run: Store, tmp_path: Path) -> Path:
    """Six lines of a run of ours."""
    export_run(agents_run, "r", "nemo-gym", tmp_path / "own.jsonl")
    return tmp_path / "own.jsonl"


async def test_rollouts_that_a_file_of_ours_lost_are_missing(exported: Path, place: Store) -> None:
    lines = exported.read_text().splitlines(keepends=True)
    exported.write_text("".join(lines[:3]))
    report = await import_file(place, exported, "nemo-gym", Registry())
    assert (report.tasks, report.rollouts, report.completed) == (3, 3, 3)
    assert report.notes[0] == "3 of 6 planned rollouts are not in the file and count as missing"
    outcomes = "select outcome, count(*) from outcomes group by 1 order by 1"
    assert rows(place, outcomes) == [("missing", 3), ("scored", 3)]
    exported.write_text("".join(lines))
    await import_file(place, exported, "nemo-gym", Registry(), run_id="r")
    assert rows(place, outcomes) == [("scored", 6)]


async def test_a_line_that_stands_twice_counts_once(exported: Path, place: Store) -> None:
    text = exported.read_text()
    exported.write_text(text + text)
    report = await import_file(place, exported, "nemo-gym", Registry())
    assert (report.rollouts, report.completed, report.scored) == (6, 6, 6)
    assert rows(place, "select count(*), count(distinct rollout_id) from rollouts") == [(6, 6)]


async def test_a_rollout_that_stands_twice_and_differs_is_refused_with_its_line(exported: Path, place: Store) -> None:
    other = json.loads(exported.read_text().splitlines()[1])
    other["gymflow"]["record"]["rollout"]["duration_s"] += 1
    with exported.open("a") as file:
        file.write(json.dumps(other) + "\n")
    with pytest.raises(InputError, match=r"own.jsonl:7: rollout 1 of the plan stands at .*own.jsonl:2 already"):
        await import_file(place, exported, "nemo-gym", Registry())
    assert place.runs() == []


@pytest.mark.parametrize("given", [{"verifier": "exact"}, {"parameters": {"mode": "lenient"}}, {"name": "mine"}])
async def test_what_would_change_a_run_of_ours_is_refused(exported: Path, place: Store, given: Any) -> None:
    with pytest.raises(InputError, match="comes back as it was; leave out --"):
        await import_file(place, exported, "nemo-gym", Registry(), **given)
    with pytest.raises(InputError, match="exported as nemo-gym"):
        await import_file(place, exported, "ng-trajectory", Registry())
    assert place.runs() == []


@pytest.mark.parametrize("format", ["atif", "inspect", "ng-trajectory"])
async def test_what_a_format_shows_by_itself_is_read_without_our_own_part(
    format: str, agents_run: Store, tmp_path: Path
) -> None:
    """Another tool's reader has no use for what we keep beside a format's fields; without it a run is still there."""
    ours = agents_run
    output = tmp_path / ("out" if format == "atif" else "out.json" if format == "inspect" else "out.jsonl")
    export_run(ours, "r", format, output)
    for file in output.glob("0*.json") if output.is_dir() else [output]:
        file.write_text(
            "".join(json.dumps(_foreign(json.loads(line))) + "\n" for line in file.read_text().splitlines())
        )
    other = Store(tmp_path / "other")
    report = await import_file(other, output, format, Registry(), run_id="r")
    assert (report.tasks, report.rollouts, report.completed, report.scored) == (3, 6, 6, 6)
    for table, columns in (
        ("outcomes", "task_id, repeat, reward"),
        ("tool_calls", "name, output"),
        ("model_calls", "role, output ->> '$[0].type', finish_reason is not null or true"),
        ("rollouts", "turns, model_calls, tool_calls"),
    ):
        sql = f"select {columns} from {table} order by all"
        assert rows(other, sql) == rows(ours, sql), table


def _foreign(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _foreign(inner) for name, inner in value.items() if name != "gymflow"}
    return [_foreign(inner) for inner in value] if isinstance(value, list) else value


# ATIF


def atif(**fields: Any) -> dict[str, Any]:
    steps = [
        {"step_id": 1, "source": "system", "message": "Be brief."},
        {"step_id": 2, "source": "user", "message": "List the files.", "timestamp": "2026-01-01T00:00:00Z"},
        {
            "step_id": 3,
            "source": "agent",
            "message": "",
            "reasoning_content": "ls",
            "timestamp": "2026-01-01T00:00:01Z",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"cmd": "ls"}}],
            "observation": {"results": [{"source_call_id": "c1", "content": [{"type": "text", "text": "a.txt"}]}]},
            "metrics": {"prompt_tokens": 10, "completion_tokens": 4, "cost_usd": 0.5},
        },
        {"step_id": 4, "source": "agent", "message": "There is a.txt.", "timestamp": "2026-01-01T00:00:03Z"},
    ]
    agent = {"name": "terminus", "version": "2", "model_name": "m"}
    return {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": steps} | fields


async def test_a_job_of_harbor_becomes_a_run(place: Store, tmp_path: Path) -> None:
    for name, reward in (("one__a", "1"), ("two__b", "0.25")):
        trial = tmp_path / "job" / name
        (trial / "agent").mkdir(parents=True)
        (trial / "verifier").mkdir()
        (trial / "agent" / "trajectory.json").write_text(json.dumps(atif()))
        (trial / "verifier" / "reward.txt").write_text(reward)
        (trial / "result.json").write_text(json.dumps({"task_name": name.partition("_")[0]}))
    report = await import_file(place, tmp_path / "job", "atif", Registry(), run_id="r")
    assert (report.tasks, report.rollouts, report.scored) == (2, 2, 2)
    assert report.gaps == {
        "imported": 2,
        "no_model_calls": 2,
        "no_snapshot": 2,
        "no_tool_timing": 2,
        "no_token_ids": 2,
        "no_usage": 2,
    }
    assert rows(place, "select task_id, agent, reward from outcomes order by 1") == [
        ("one", "terminus", 1.0),
        ("two", "terminus", 0.25),
    ]
    assert rows(place, "select distinct name, arguments, output, status from tool_calls") == [
        ("bash", '{"cmd": "ls"}', "a.txt", "ok")
    ]
    assert rows(place, "select distinct duration_s, turns from rollouts") == [(3.0, 2)]
    assert rows(place, "select cost_usd, prompt_tokens from model_calls where call = 0 limit 1") == [(0.5, 10)]


async def test_an_output_of_a_call_that_is_not_shown_is_kept_and_counted(place: Store, tmp_path: Path) -> None:
    document = atif()
    document["steps"][2]["observation"]["results"] += [{"source_call_id": "lost", "content": "from nowhere"}]
    document["steps"][3]["observation"] = {"results": [{"source_call_id": "late", "content": "nobody asked"}]}
    file = tmp_path / "one.json"
    file.write_text(json.dumps(document))
    seen = "select step_messages ->> '$[0].call_id', step_messages ->> '$[0].output' from turns order by turn"
    told = [("lost", "from nowhere"), ("late", "nobody asked")]
    report = await import_file(place, file, "atif", Registry(), run_id="r")
    assert report.gaps["no_tool_call"] == 1 and rows(place, seen) == told
    assert rows(place, "select output, status from tool_calls") == [("a.txt", "ok")]

    export_run(place, "r", "atif", tmp_path / "ours")
    [exported] = [path for path in (tmp_path / "ours").iterdir() if path.name != "manifest.json"]
    for name, extra in (("whole", True), ("bare", False)):
        written = json.loads(exported.read_text())
        if not extra:
            del written["extra"]["gymflow"]
        again = tmp_path / f"{name}.json"
        again.write_text(json.dumps(written))
        other = Store(tmp_path / name)
        await import_file(other, again, "atif", Registry(), run_id="r")
        assert rows(other, seen) == told
        gaps = "select list_contains(json_extract_string(trajectory, '$.gaps[*].code'), 'no_tool_call') from evidence"
        assert rows(other, gaps) == [(True,)]


async def test_what_other_steps_observe_is_kept(place: Store, tmp_path: Path) -> None:
    document = atif()
    document["steps"][1]["observation"] = {"results": [{"content": "A file system was mounted."}]}
    document["steps"].insert(
        3,
        {
            "step_id": 9,
            "source": "system",
            "message": "Go on.",
            "observation": {"results": [{"content": "It is late."}]},
        },
    )
    file = tmp_path / "one.json"
    file.write_text(json.dumps(document))
    await import_file(place, file, "atif", Registry(), run_id="r")
    inputs = [json.loads(one) for (one,) in rows(place, "select new_input from model_calls order by call")]
    assert [item["content"] for item in inputs[0]] == ["Be brief.", "List the files.", "A file system was mounted."]
    assert [item.get("content") for item in inputs[1]] == [None, "Go on.", "It is late."]


async def test_a_single_document_without_a_reward_has_no_verdicts(place: Store, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps(atif()))
    report = await import_file(place, file, "atif", Registry(), verifier="exact", run_id="r")
    assert (report.verdict_set, report.scored, report.misfits) == (None, 0, 1)
    assert "expected_answer" in report.notes[0]
    await rescore(place, "r", Change(), Registry())
    assert rows(place, "select outcome, verdict_failure from outcomes") == [("unverified", "verifier_error")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "schema_version"),
        ('{"schema_version": "ATIF-v1.7"}', "steps"),
        ("[1]", "a JSON object"),
        ("{", "not JSON"),
        (json.dumps(atif(extra={"reward": "much"})), "extra.reward"),
    ],
)
async def test_a_document_that_is_no_trajectory_is_refused_by_field(
    content: str, message: str, place: Store, tmp_path: Path
) -> None:
    file = tmp_path / "t.json"
    file.write_text(content)
    with pytest.raises(InputError, match=message):
        await import_file(place, file, "atif", Registry())


async def test_a_manifest_cannot_point_out_of_its_folder(place: Store, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret.json").write_text(json.dumps(atif()))
    (folder / "manifest.json").write_text(json.dumps({"trajectories": [{"file": "../secret.json"}]}))
    with pytest.raises(InputError, match="outside"):
        await import_file(place, folder, "atif", Registry())


# Inspect


async def test_a_real_log_becomes_a_run(place: Store) -> None:
    """Written by inspect_ai 0.3.285: two samples, two epochs, a tool, one answer with reasoning; entries are Zstandard."""
    report = await import_file(place, DATA / "sums.eval", "inspect", Registry(), verifier="exact", run_id="r")
    assert (report.tasks, report.rollouts, report.completed, report.scored, report.misfits) == (2, 4, 4, 4, 0)
    assert report.gaps == {"imported": 4, "no_snapshot": 4, "no_token_ids": 4}
    assert rows(
        place,
        "select task_id, repeat, reward, extracted_answer from outcomes order by 1, 2",
    ) == [
        ("2", 0, 0.0, "the answer is 5"),
        ("2", 1, 1.0, "4"),
        ("one", 0, 1.0, "the answer is 3"),
        ("one", 1, 1.0, "3"),
    ]
    found = rows(place, "select name, arguments, output, duration_s > 0 from tool_calls order by 2")
    assert found == [("add", '{"x":1,"y":2}', "3", True), ("add", '{"x":2,"y":2}', "4", True)]
    assert rows(
        place, "select call, parent, json_array_length(new_input) from model_calls where rollout_id = 'r-1' order by 1"
    ) == [
        (0, None, 1),
        (1, 0, 1),
    ]
    assert rows(place, "select count(*) from model_calls where output ->> '$[0].type' = 'reasoning'") == [(1,)]
    done = await rescore(place, "r", Change({"match": "contains"}), Registry())
    assert done.scored == 4
    assert rows(place, "select avg(reward) from outcomes where is_current") == [(0.75,)]


async def test_a_log_without_events_is_rebuilt_from_its_messages(place: Store, tmp_path: Path) -> None:
    header = {"version": 2, "status": "success", "eval": {"task": "sums", "model": "m"}, "results": None}
    call = {"id": "c", "function": "add", "arguments": {"x": 1}, "type": "function"}
    sample = {
        "id": 1,
        "epoch": 1,
        "input": [{"role": "user", "content": "attachment://abc"}],
        "target": ["3"],
        "choices": ["2", "3"],
        "messages": [
            {"role": "user", "content": "attachment://abc"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "3", "tool_call_id": "c"},
            {"role": "assistant", "content": [{"type": "text", "text": "3"}]},
        ],
        "attachments": {"abc": "1+2?"},
        "scores": {"parts": {"value": {"a": 1, "b": "I"}}, "nan": {"value": float("nan")}},
        "limit": {"type": "token", "limit": 10},
    }
    broken = sample | {"id": 2, "error": {"message": "boom"}, "scores": None}
    file = tmp_path / "log.json"
    file.write_text(json.dumps(header | {"samples": [sample, broken]}).replace("NaN", "null"))
    report = await import_file(place, file, "inspect", Registry(), run_id="r")
    assert (report.rollouts, report.completed, report.failed, report.scored) == (2, 1, 1, 1)
    assert report.gaps["no_model_calls"] == report.gaps["no_usage"] == 2
    assert rows(place, "select reward, components ->> 'parts.a' from verdicts") == [(0.5, "1.0")]
    assert rows(place, "select status, stop_reason, failure_message from rollouts order by 1") == [
        ("completed", "token_budget", None),
        ("failed", None, "boom"),
    ]
    assert rows(place, "select new_input ->> '$[0].content' from model_calls where call = 0 limit 1") == [("1+2?",)]
    assert rows(place, "select task -> 'options' from tasks limit 1") == [('[{"A":"2"},{"B":"3"}]',)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.eval", b"PK\x03\x04 broken", "neither an .eval archive nor JSON"),
        ("a.json", b"{}", "version"),
        ("a.json", b'{"version": 1, "eval": {}}', "version"),
    ],
)
async def test_what_is_no_log_is_refused(name: str, content: bytes, message: str, place: Store, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        await import_file(place, tmp_path / name, "inspect", Registry())


async def test_an_archive_with_a_damaged_entry_is_refused(place: Store, tmp_path: Path) -> None:
    content = bytearray((DATA / "sums.eval").read_bytes())
    with zipfile.ZipFile(DATA / "sums.eval") as archive:
        info = archive.getinfo("samples/one_epoch_1.json")
    name, extra = struct.unpack("<HH", content[info.header_offset + 26 : info.header_offset + 30])
    start = info.header_offset + 30 + name + extra
    content[start : start + 8] = b"\0" * 8
    (tmp_path / "broken.eval").write_bytes(bytes(content))
    with pytest.raises((InputError, pa.ArrowInvalid), match="one_epoch_1"):
        await import_file(place, tmp_path / "broken.eval", "inspect", Registry())


async def test_a_log_holds_one_task_and_model(played: Any, tmp_path: Path) -> None:
    rules = [{"text": "The answer is (A)."}]
    store = await played(
        scripted(environments=[{"name": "mcqa", "limit": 1}, {"name": "arithmetic", "limit": 1}], rules=rules)
    )
    with pytest.raises(InputError, match="one task and model"):
        export_run(store, "r", "inspect", tmp_path / "out.eval")
    assert list(tmp_path.glob("*out*")) == []


# Trajectory records


async def test_a_bare_record_has_its_calls_and_its_gaps(place: Store, tmp_path: Path) -> None:
    def call(number: int, request: Any, answer: Any, dialect: str, **about: Any) -> dict[str, Any]:
        return {
            "model_call_id": str(number),
            "started_at": f"2026-01-01T00:00:0{number}+00:00",
            "duration_ms": 500,
            "request": request,
            "response": answer,
            "response_metadata": {"dialect": dialect, "model": "m", "status_code": 200, **about},
            "token_stats": {"prompt": 5, "completion": 2},
        }

    asked = [{"role": "user", "content": "1+2?"}]
    tool = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    said = {"role": "assistant", "content": None, "tool_calls": [tool]}
    first = call(0, {"messages": asked}, {"choices": [{"message": said, "finish_reason": "tool_calls"}]}, "chat")
    result = {"role": "tool", "tool_call_id": "c", "content": "3"}
    final = {"choices": [{"message": {"role": "assistant", "content": "3"}, "finish_reason": "stop"}]}
    second = call(1, {"messages": [*asked, said, result]}, final, "chat")
    odd = call(2, {}, {}, "smoke signals")
    record = {
        "schema_version": "1.0",
        "task_id": "t",
        "rollout_id": "t-0",
        "invocations": [],
        "turns": [],
        "model_calls": [first, second, odd],
        "tool_calls": [
            {
                "tool_call_id": "c",
                "started_at": "2026-01-01T00:00:00.5+00:00",
                "completed_at": "2026-01-01T00:00:00.75+00:00",
            }
        ],
        "gaps": [{"code": "conversation_unavailable"}],
    }
    file = tmp_path / "records.jsonl"
    file.write_text(json.dumps(record) + "\n")
    report = await import_file(place, file, "ng-trajectory", Registry(), run_id="r")
    assert report.gaps == {
        "imported": 1,
        "no_history": 1,
        "no_model_calls": 1,
        "no_snapshot": 1,
        "no_token_ids": 1,
    }
    assert rows(place, "select call, parent, finish_reason, prompt_tokens from model_calls order by 1") == [
        (0, None, "tool_calls", 5),
        (1, 0, "stop", 5),
    ]
    assert rows(place, "select output, duration_s from tool_calls") == [("3", 0.25)]
    with pytest.raises(InputError, match="trajectory record"):
        file.write_text('{"response": {}}\n')
        await import_file(place, file, "ng-trajectory", Registry())
