"""Health: every check finds what it is for, and nothing in a healthy run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymflow.analysis.health import checks, examine, last_report, load_thresholds
from gymflow.analysis.health.checks.repetition_loop import repeated_tail
from gymflow.analysis.listing import read_items
from gymflow.contracts.outcome import FailureKind, StopReason, VerdictFailure
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.trajectory import CallTokens, Gap, ModelCall, SandboxUse, Usage
from gymflow.contracts.verdict import VerdictRecord
from gymflow.errors import InputError
from gymflow.store import RunReader, Store, query
from gymflow.store.journal import Fault

from .conftest import Planter, Said, Sample, answering, tool

LOOP = "Let me think again. " * 40
THOUGHT = "I should look once more at the place that the question names, since all else follows from what stands there."


def changed(change: Callable[[RolloutRecord], Any]) -> Sample:
    return answering("A", change=lambda record: change(record) and None)


def of_call(**fields: Any) -> Sample:
    def change(record: RolloutRecord) -> None:
        for name, value in fields.items():
            setattr(record.model_calls[0], name, value)

    return answering("A", change=change)


def failed(call: ModelCall) -> None:
    call.status, call.http_status, call.error_kind = "error", 500, FailureKind.MODEL_ERROR


def of_usage(completion: int | None) -> Sample:
    def change(record: RolloutRecord) -> None:
        record.model_calls[0].usage.completion_tokens = completion
        record.rollout.usage.completion_tokens = completion

    return answering("A", change=change)


def no_turn(record: RolloutRecord) -> None:
    record.evidence.trajectory.turns.clear()
    record.model_calls.clear()
    record.rollout.turns = record.rollout.model_calls = 0
    record.rollout.usage.prompt_tokens = record.rollout.usage.completion_tokens = None


def broken_chain(record: RolloutRecord) -> None:
    for call in record.model_calls:
        call.tokens = CallTokens(
            chained=False,
            prompt_token_ids=[1, 2],
            completion_token_ids=[3],
            logprobs=[-0.1],
            break_at=1 if call.index else None,
        )


def unverified(verdict: VerdictRecord) -> VerdictRecord:
    return verdict.model_copy(
        update={
            "verdict": None,
            "passed": None,
            "failure": VerdictFailure.VERIFIER_TIMEOUT,
            "failure_message": "no verdict within 5 s",
        }
    )


def above(verdict: VerdictRecord) -> VerdictRecord:
    assert verdict.verdict is not None
    return verdict.model_copy(update={"verdict": verdict.verdict.model_copy(update={"reward": 2.0})})


PAGE = " ".join(f"Since {n} is no square, the {n}th case falls away." for n in range(100)) + "\n\n"
DONE = Said("The answer is (A).")
LONG = Sample(
    [Said("The answer is (A), since " + " ".join(f"point {n} holds" for n in range(30)) + ". The answer is (A).")]
)

PLANTED: dict[str, tuple[list[Sample], str, set[str]]] = {
    # check: repeats of one task, the locator of its first finding, further checks that rightly find something there
    "missing_rollout": ([Sample(missing=True)], "null", set()),
    "failed_rollout": ([Sample(failed=FailureKind.MODEL_UNREACHABLE)], "rollout/failure", set()),
    "same_failure": ([Sample(failed=FailureKind.MODEL_ERROR)] * 2, "task", {"failed_rollout", "always_unhealthy"}),
    "unverified": ([answering("A", verdict=unverified)], "verdict/failure", {"timed_out"}),
    "no_model_call": ([changed(no_turn)], "rollout/model_calls", set()),
    "failed_call": (
        [Sample([DONE, DONE], change=lambda record: failed(record.model_calls[0]))],
        "calls/0",
        set(),
    ),
    "ended_on_failed_call": (
        [Sample([DONE, DONE], change=lambda record: failed(record.model_calls[1]))],
        "calls/1",
        {"failed_call"},
    ),
    "hollow_turn": ([Sample([Said(""), DONE])], "turns/0", set()),
    "zero_completion_tokens": ([of_usage(0)], "calls/0", set()),
    "missing_usage": ([of_usage(None)], "calls/0", set()),
    "usage_mismatch": (
        [changed(lambda r: setattr(r.rollout, "usage", Usage(prompt_tokens=50, completion_tokens=99)))],
        "rollout/usage",
        set(),
    ),
    "capture_mismatch": (
        [changed(lambda r: setattr(r.evidence.trajectory.turns[0], "model_call", 7))],
        "calls/0",
        set(),
    ),
    "runaway_generation": ([Sample([Said("", finish="length"), DONE])], "calls/0", set()),
    "repetition_loop": ([Sample([Said(LOOP, finish="length")])], "calls/0", {"no_extracted_answer"}),
    "repeated_reasoning": (
        [Sample([Said(THOUGHT, tools=[tool(arguments=f"[{n}]")]) for n in range(3)] + [DONE])],
        "calls/0",
        set(),
    ),
    "repeated_tool_call": ([Sample([Said(tools=[tool()])] * 3 + [DONE])], "turns/0/tool_calls/0", set()),
    "malformed_tool_call": (
        [Sample([Said(tools=[tool(arguments="{", status="malformed")]), DONE])],
        "turns/0/tool_calls/0",
        set(),
    ),
    "tool_errors": (
        [Sample([Said(tools=[tool(status="error"), tool(arguments="{}", status="error")]), DONE])],
        "turns/0/tool_calls/0",
        set(),
    ),
    "truncated_history": (
        [Sample([DONE, DONE], change=lambda r: setattr(r.model_calls[1], "parent", None))],
        "calls/1",
        set(),
    ),
    "token_chain_break": ([Sample([DONE, DONE], change=broken_chain)], "calls/1", set()),
    "timed_out": ([answering("A", stop=StopReason.WALL_TIME)], "rollout/stop_reason", set()),
    "out_of_memory": (
        [
            changed(
                lambda r: r.evidence.trajectory.sandbox.append(
                    SandboxUse(command="python x.py", outcome="oom", started_at=100.0, duration_s=1.0)
                )
            )
        ],
        "sandbox/0",
        set(),
    ),
    "no_extracted_answer": ([Sample([Said("Hard to say.")])], "verdict/extracted_answer", set()),
    "identical_repeats": ([LONG] * 2, "rollout", {"always_unhealthy"}),
    "reward_out_of_range": ([answering("A", verdict=above)], "verdict/reward", set()),
    "other_model": ([of_call(reported_model="a-smaller-one")], "calls/0", set()),
    "clock_skew": ([of_call(started_at=50.0)], "calls/0", set()),
    "always_unhealthy": ([answering("A", stop=StopReason.WALL_TIME)] * 2, "task", {"timed_out"}),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """One run with all planted faults, a task each: check -> what was found in its task, with healthy tasks around."""
    planter = Planter(Store(tmp_path_factory.mktemp("health")))
    # Every task has the first letter as its gold answer, which the samples above give.
    planter.gold = lambda task: "A"  # type: ignore[method-assign]
    healthy = [[answering("A"), answering("B")]] * 2
    run_id = planter.run("planted", [repeats for repeats, _, _ in PLANTED.values()] + healthy)
    examine(planter.store, run_id)
    rows = query(planter.store.root, "select f.*, coalesce(f.task_key, 'none') as task from findings f").objects()
    by_task: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_task.setdefault(row["task"], []).append(row)
    return {name: by_task.get(f"task{at}", []) for at, name in enumerate([*PLANTED, "healthy0", "healthy1"])} | {
        "elsewhere": by_task.get("none", [])
    }


@pytest.mark.parametrize("check", PLANTED)
def test_a_planted_fault_is_found_and_nothing_else(check: str, found: dict[str, list[dict[str, Any]]]) -> None:
    _, locator, further = PLANTED[check]
    assert {row["check"] for row in found[check]} == {check} | further
    first = sorted((row for row in found[check] if row["check"] == check), key=lambda row: row["locator"] or "")[0]
    assert str(first["locator"] or "null").removesuffix(f"/q{list(PLANTED).index(check)}") == locator
    assert first["message"]


def test_healthy_tasks_have_no_finding(found: dict[str, list[dict[str, Any]]]) -> None:
    assert found["healthy0"] == found["healthy1"] == found["elsewhere"] == []


def used(outcome: str, **fields: Any) -> Sample:
    """A rollout with one command in its sandbox."""
    use = SandboxUse(**{"command": "pytest", "outcome": outcome, "started_at": 101.0, "duration_s": 1.0} | fields)
    return changed(lambda record: record.evidence.trajectory.sandbox.append(use))


def looking(*places: str, **fields: Any) -> Sample:
    """A rollout that looks at these places, one a turn; what it sees is the place."""
    return Sample([*(Said(tools=[tool(arguments=at, output=at, **fields)]) for at in places), DONE])


def reasoning(*thoughts: str) -> Sample:
    """A rollout that thinks apart from what it says, and looks at another place each turn."""

    def change(record: RolloutRecord) -> None:
        for call, thought in zip(record.model_calls, thoughts, strict=False):
            call.output.insert(0, {"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]})

    sample = looking(*map(str, range(len(thoughts))))
    sample.change = change
    return sample


def judged_in_the_record(record: RolloutRecord) -> None:
    calls = record.model_calls
    calls.append(calls[0].model_copy(update={"index": len(calls), "role": "judge", "turn": None, "parent": None}))
    record.rollout.model_calls += 1


def asked_by_a_user(record: RolloutRecord) -> None:
    judged_in_the_record(record)
    record.model_calls[-1].role = "user"
    record.rollout.usage = Usage(prompt_tokens=100, completion_tokens=40)


def judged_and_counted(record: RolloutRecord) -> None:
    judged_in_the_record(record)
    record.rollout.usage = Usage(prompt_tokens=100, completion_tokens=40)


def asked_and_miscounted(record: RolloutRecord) -> None:
    asked_by_a_user(record)
    record.rollout.usage.prompt_tokens = 99


FOUND_AND_NOT: dict[str, tuple[str, Sample, str, str, Sample]] = {
    # what: check, a rollout in which it finds something, where, in which words, and a rollout much like it that is healthy
    "a command that timed out": (
        "timed_out",
        used("timeout", duration_s=7.0),
        "sandbox/0",
        "timed out after 7.0 s: pytest",
        used("exited"),
    ),
    "a tool after the rollout": (
        "clock_skew",
        Sample([Said(tools=[tool(started_at=118.0, ended_at=119.0)]), DONE]),
        "turns/0/tool_calls/0",
        "ended 10.0 s after its rollout",
        Sample([Said(tools=[tool(started_at=108.0, ended_at=110.5)]), DONE]),
    ),
    "a tool before the rollout": (
        "clock_skew",
        Sample([Said(tools=[tool(started_at=90.0, ended_at=90.5)]), DONE]),
        "turns/0/tool_calls/0",
        "started 9.0 s before its rollout",
        Sample([Said(tools=[tool(started_at=98.0, ended_at=98.5)]), DONE]),
    ),
    "a tool that ended first": (
        "clock_skew",
        Sample([Said(tools=[tool(started_at=103.0, ended_at=102.0)]), DONE]),
        "turns/0/tool_calls/0",
        "ended 1.0 s before it started",
        Sample([Said(tools=[tool(started_at=103.0, ended_at=103.0)]), DONE]),
    ),
    "a command after the rollout": (
        "clock_skew",
        used("exited", started_at=120.0),
        "sandbox/0",
        "ended 12.0 s after its rollout",
        used("exited", started_at=105.0, duration_s=4.0),
    ),
    "a call that ended too late": (
        "clock_skew",
        of_call(duration_s=15.0),
        "calls/0",
        "ended 6.0 s after its rollout",
        of_call(duration_s=9.5),
    ),
    "the same thought in each turn": (
        "repeated_reasoning",
        reasoning(THOUGHT, THOUGHT, THOUGHT),
        "calls/0",
        f"the same {len(THOUGHT)} characters of reasoning in 3 calls in a row",
        reasoning(THOUGHT, THOUGHT + " Again.", THOUGHT),
    ),
    "short remarks are no loop": (
        "repeated_reasoning",
        reasoning(*[THOUGHT] * 5),
        "calls/0",
        f"the same {len(THOUGHT)} characters of reasoning in 5 calls in a row",
        reasoning(*["Next place."] * 5),
    ),
    "a call made between others": (
        "repeated_tool_call",
        looking("1", "2", "1", "3", "1", "4"),
        "turns/0/tool_calls/0",
        "look(1) 3 times, others between, with the same answer",
        looking("1", "2", "1", "3", "4", "5", "6", "1"),
    ),
    "going round": (
        "repeated_tool_call",
        looking(*"123123123"),
        "turns/0/tool_calls/0",
        "look(1) 3 times, others between, with the same answer",
        looking(*"123123456"),
    ),
    "calls that were not executed": (
        "repeated_tool_call",
        looking("1", "1", "1"),
        "turns/0/tool_calls/0",
        "look(1) 3 times in a row, with the same answer",
        looking("1", "1", "1", status="not_executed"),
    ),
    "the same call with another answer": (
        "repeated_tool_call",
        Sample([Said(tools=[tool(output="busy")])] * 3 + [DONE]),
        "turns/0/tool_calls/0",
        'look({"at": 1}) 3 times in a row, with the same answer',
        Sample([*(Said(tools=[tool(output=f"{n} of 3 done")]) for n in range(4)), DONE]),
    ),
    "a page said over and over": (
        "repetition_loop",
        Sample([Said("The answer is (A). " + PAGE * 5, finish="length")]),
        "calls/0",
        f"ends in {chr(10) * 2 + PAGE[:58]!r} 4 times over",
        Sample([Said(PAGE + "The answer is (A).")]),
    ),
    "what a judge used": (
        "usage_mismatch",
        changed(judged_and_counted),
        "rollout/usage",
        "the rollout says 100 + 40 tokens, its calls 50 + 20",
        changed(judged_in_the_record),
    ),
    "what a simulated user used": (
        "usage_mismatch",
        changed(asked_and_miscounted),
        "rollout/usage",
        "the rollout says 99 + 40 tokens, its calls 100 + 40",
        changed(asked_by_a_user),
    ),
}


def test_a_fault_is_found_where_it_is_and_not_in_what_looks_like_it(planter: Planter) -> None:
    planter.gold = lambda task: "A"  # type: ignore[method-assign]
    cases = list(FOUND_AND_NOT.items())
    run_id = planter.run("pairs", [[one] for _, (_, faulty, _, _, healthy) in cases for one in (faulty, healthy)])
    examine(planter.store, run_id)
    by_id: dict[str, list[tuple[str, str, str]]] = {}
    for row in query(planter.store.root, "from findings").objects():
        by_id.setdefault(row["rollout_id"], []).append((row["check"], row["locator"], row["message"]))
    for at, (what, (check, _, locator, message, _)) in enumerate(cases):
        assert {found[0] for found in by_id[f"pairs-{2 * at}"]} == {check}, what
        _, where, words = min(by_id[f"pairs-{2 * at}"])
        assert where == locator and words.startswith(message), (what, where, words)
        assert f"pairs-{2 * at + 1}" not in by_id, (what, by_id.get(f"pairs-{2 * at + 1}"))


def test_every_check_is_tested() -> None:
    # Two records of one rollout, and a damaged journal, cannot be written through the store; they have tests of their own.
    assert {check.name for check in checks()} == {*PLANTED, "duplicate_record", "damaged_record"}


def test_a_healthy_run_is_observed_and_fine(planter: Planter) -> None:
    report = examine(planter.store, planter.run("fine", [[answering("A"), answering("B")]] * 3))
    assert (report.rollouts, report.healthy, report.unhealthy, report.unobserved, report.missing) == (6, 6, 0, 0, 0)
    assert report.unobserved_share == 0.0
    assert not [check for check in report.checks if check.findings]


def test_what_a_gap_hides_is_unobserved_not_healthy(planter: Planter) -> None:
    def opaque(record: RolloutRecord) -> None:
        no_turn(record)
        record.evidence.trajectory.gaps = [Gap(code="no_model_calls"), Gap(code="no_turns")]

    report = examine(planter.store, planter.run("opaque", [[answering("A")], [answering("B", change=opaque)]]))
    assert (report.healthy, report.unhealthy, report.unobserved) == (1, 0, 1)
    assert 0 < report.unobserved_share < 1
    of = {check.check: check for check in report.checks}
    assert (of["no_model_call"].evaluated, of["no_model_call"].unobserved) == (1, 1)
    assert of["repetition_loop"].unobserved == 1
    assert of["token_chain_break"].not_applicable == 2


def test_two_records_of_one_rollout_are_a_conflict(planter: Planter) -> None:
    run_id = planter.run("double", [[answering("A")], [answering("B")]])
    [path] = (planter.store.layout.run(run_id).folder / "parts" / "rollouts").glob("*.parquet")
    table = pq.read_table(path)
    again = table.slice(0, 1).set_column(
        table.schema.get_field_index("evidence_digest"), "evidence_digest", [["other"]]
    )
    pq.write_table(pa.concat_tables([table, again]), path)
    report = examine(planter.store, run_id)
    [conflict] = [check for check in report.checks if check.check == "duplicate_record"]
    assert conflict.findings == 1
    assert conflict.examples[0].message == "2 records of this rollout count, and their evidence differs"


def test_a_damaged_journal_is_reported(planter: Planter, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = planter.run("damaged", [[answering("A")]])
    monkeypatch.setattr(RunReader, "faults", lambda self: [Fault("000000.jsonl", 120, 40, "checksum")])
    report = examine(planter.store, run_id)
    [damage] = [check for check in report.checks if check.findings]
    assert (damage.check, damage.examples[0].locator) == ("damaged_record", "journal/000000.jsonl")


def test_thresholds_decide_what_is_found(planter: Planter, tmp_path: Path) -> None:
    run_id = planter.run("loops", [[Sample([Said(tools=[tool()])] * 3 + [DONE])]])
    file = tmp_path / "thresholds.yaml"
    file.write_text("same_call_times: 5\n")
    assert not any(check.findings for check in examine(planter.store, run_id, load_thresholds(file)).checks)
    file.write_text("same_cal_times: 5\n")
    with pytest.raises(InputError, match="same_cal_times"):
        load_thresholds(file)
    for value in (".inf", ".nan"):
        file.write_text(f"clock_skew_s: {value}\n")
        with pytest.raises(InputError, match="clock_skew_s"):
            load_thresholds(file)


def test_a_snapshot_of_a_model_is_that_model_and_its_sibling_is_not(planter: Planter) -> None:
    same = [
        ("gpt-4o", "gpt-4o-2024-08-06"), ("gpt-4", "gpt-4-0613"), ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
        ("openai/gpt-4o", "gpt-4o-2024-08-06"), ("/models/Qwen3-8B", "qwen3-8b"), ("gpt-4o", "openai/gpt-4o"),
        ("gemini-1.5-pro", "gemini-1.5-pro-002"), ("m", "m@20250101-v2:0"), ("m:latest", "m:latest"),
    ]  # fmt: skip
    other = [
        ("gpt-4", "gpt-4o-mini"), ("gpt-5", "gpt-5-nano-2025-08-07"), ("gpt-4", "gpt-4.1"), ("gpt-4o", "gpt-4o-mini"),
        ("llama-3", "llama-3-70b"), ("gpt-4", "another/gpt-4o"), ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13"),
    ]  # fmt: skip
    for run_id, pairs in (("same", same), ("other", other)):
        planter.run(run_id, [[of_call(model=asked, reported_model=said)] for asked, said in pairs])
        [check] = [one for one in examine(planter.store, run_id).checks if one.check == "other_model"]
        assert check.affected == (len(other) if run_id == "other" else 0), [one.message for one in check.examples]
    planter.run("unnamed", [[of_call(reported_model="")]])
    [check] = [one for one in examine(planter.store, "unnamed").checks if one.check == "other_model"]
    assert (check.affected, check.unobserved) == (0, 1)


@pytest.mark.parametrize("damage", [b"", b"{}\n", b'{"rollouts": "', b"\xff\n"])
def test_a_report_that_cannot_be_read_is_said_to(planter: Planter, damage: bytes) -> None:
    reader = planter.store.run(planter.run("r", [[answering("A")]]))
    (reader.layout.reports).mkdir(exist_ok=True)
    path = reader.layout.reports / "health.json"
    path.write_bytes(damage)
    with pytest.raises(InputError, match=r"health\.json: a report that cannot be read"):
        last_report(reader)
    examine(planter.store, "r")
    assert last_report(reader) is not None
    path.write_bytes(path.read_bytes().partition(b"\n")[0] + b'\n{"rollout_id": "r-0", \n')
    with pytest.raises(InputError, match="line 2"):
        list(read_items(reader, "health.json", "findings"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PAGE * 5, True),
        (PAGE * 2, False),
        ("so it goes, " * 50 + "so it", True),
        ("0123456789" * 30, True),
        (" ".join(f"step {n} of the proof" for n in range(60)), False),
        ("word " * 20, False),
        (" " * 500, False),
        ("", False),
    ],
)
def test_a_loop_at_the_end_of_a_text(text: str, expected: bool) -> None:
    found = repeated_tail(text, 4, 200)
    assert (found is not None) is expected
    if found:
        assert found[1] >= 4 and len(found[0]) * found[1] <= len(text)
        assert found[0] * 2 in text


@given(st.text("ab ", max_size=40), st.text("ab ", min_size=1, max_size=20), st.integers(1, 12), st.integers(0, 20))
def test_a_loop_is_found_where_looking_at_every_period_finds_one(before: str, unit: str, times: int, cut: int) -> None:
    text = (before + unit * times + unit[:cut]).rstrip()

    def periodic(period: int) -> bool:
        end = text[-max(40, 4 * period) :]
        return len(end) == max(40, 4 * period) and end[period:] == end[:-period]

    smallest = next((period for period in range(1, len(text) // 4 + 1) if periodic(period)), None)
    found = repeated_tail(text, 4, 40)
    assert (len(found[0]) if found else None) == smallest
