"""What validation finds before a model is started."""

import ast
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gymflow.contracts.agent import ComponentRef
from gymflow.contracts.run import EnvironmentSelection, RunConfig
from gymflow.errors import InputError
from gymflow.registry import Registry
from gymflow.validation import ValidationReport, licence_fault, validate_run
from tests.support.cases import fault
from tests.support.environments import ROWS, write_environment

Validated = Callable[..., Awaitable[ValidationReport]]


def messages(report: ValidationReport) -> str:
    return "\n".join(map(str, report.shown_faults))


async def test_a_good_environment_has_no_faults(tmp_path: Path, validated: Validated) -> None:
    report = await validated(write_environment(tmp_path / "env"))
    assert report.ok and messages(report) == "" and report.warnings == []
    [split] = report.splits
    assert (split.rows, split.fault_count, len(split.digest), split.cached) == (2, 0, 64, False)
    assert [fixture.reward for fixture in report.fixtures] == [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    report.require()


async def test_a_harness_that_leaves_unused_what_is_offered_is_pointed_out(
    tmp_path: Path, validated: Validated
) -> None:
    folder = write_environment(tmp_path / "env", offers=["messages", "conversation"], harness={"name": "single_turn"})
    report = await validated(folder, harnesses=[ComponentRef(name="simple")])
    assert report.ok
    assert report.warnings[1:] == ["harness single_turn leaves unused what the environment offers: conversation"]


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"licence": "Apache2"}, "licence: 'Apache2' is no licence identifier; did you mean Apache-2.0?"),
        ({"external_licence": "Free"}, "external_licence: 'Free' is no licence identifier"),
        ({"reward_range": [1, 0]}, "reward_range: must rise, not 1 to 0"),
        ({"pass_threshold": 2.0}, "pass_threshold: 2 is not within the range 0 to 1"),
        ({"harness": {"name": "simpel"}}, "no harness 'simpel'; did you mean simple?"),
        ({"harness": {"name": "simple", "parameters": {"max_turn": 1}}}, "max_turn"),
        ({"verifier": {"name": "mcqq"}}, "no verifier 'mcqq'; did you mean mcqa?"),
        ({"verifier": {"name": "./verifier.py", "parameters": {"strct": 1}}}, "strct"),
        ({"verifier": {"name": "./missing.py"}}, "verifier.name: there is no file"),
        ({"session": "session:Host"}, "session: there is no module 'session'"),
        ({"distributions": ["no-such-distribution"]}, "distributions: no-such-distribution is not installed"),
        ({"prompt": {"user": "{question"}}, "prompt.user: '{question' is no placeholder"),
        ({"benchmarks": {"b": {"split": "dev"}}}, "benchmarks.b.split: there is no split 'dev'"),
        ({"benchmarks": {"b": {"verifier": {"name": "jugde"}}}}, "no verifier 'jugde'; did you mean judge?"),
        ({"benchmarks": {"b": {"headline": "pass@8", "repeats": 4}}}, "pass@8 needs at least 8 repeats"),
        ({"offers": ["messages", "shell"]}, "offers: a shell needs a `sandbox`"),
    ],
)
async def test_a_fault_in_the_manifest_names_the_field(
    tmp_path: Path, validated: Validated, manifest: dict[str, Any], message: str
) -> None:
    report = await validated(write_environment(tmp_path / "env", **manifest))
    assert message in messages(report) and not report.ok
    with pytest.raises(InputError, match="env cannot be run"):
        report.require()


def test_a_wrong_key_of_the_sandbox_is_found_when_the_manifest_is_read(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "env", sandbox={"provider": "local", "netwrok": "none"})
    with pytest.raises(InputError, match=r"yaml:\d+: sandbox\.netwrok: unknown key; did you mean network\?"):
        Registry().environment(folder)


async def test_missing_fixtures_are_a_fault_that_says_what_to_write(tmp_path: Path, validated: Validated) -> None:
    folder = write_environment(tmp_path / "env")
    (folder / "fixtures.jsonl").unlink()
    assert "there are no fixtures" in messages(await validated(folder))
    assert "full, none, near_miss, format_variant, malformed, empty" in messages(await validated(folder))


async def test_all_bad_rows_are_counted_and_the_first_ones_shown(tmp_path: Path, validated: Validated) -> None:
    rows = [*ROWS, *({"task_id": f"x{n}", "question": "?", "answer": n} for n in range(30))]
    report = await validated(write_environment(tmp_path / "env", rows=rows))
    assert (report.splits[0].rows, report.fault_count, len(report.shown_faults)) == (32, 30, 10)
    first = report.shown_faults[0]
    assert (first.line, first.field) == (3, "answer")
    assert str(first).endswith("test.jsonl:3: answer: input should be a valid string, not 0")
    with pytest.raises(InputError, match="30 faults in all"):
        report.require()
    report.require(skip_bad_rows=True)


async def test_ds_late_validation(tmp_path: Path, validated: Validated) -> None:
    row = {**fault("ds-late-validation")["row"], "question": "?", "answer": "x"}
    report = await validated(write_environment(tmp_path / "env", rows=[*ROWS[1:], row], fixtures=None))
    assert "test.jsonl:2: license: 'Unknown-1.0' is no licence identifier" in messages(report)
    assert "allowed: SPDX identifiers such as Apache-2.0" in messages(report)


async def test_ds_duplicate_id(tmp_path: Path, validated: Validated) -> None:
    rows = [{**row, "question": row["prompt"]} for row in fault("ds-duplicate-id")["rows"]]
    report = await validated(write_environment(tmp_path / "env", rows=rows))
    assert "test.jsonl:2: id: the id 'dup' is taken by line 1" in messages(report)


async def test_an_empty_split_is_a_fault(tmp_path: Path, validated: Validated) -> None:
    report = await validated(write_environment(tmp_path / "env", rows=""))
    assert "the split has no rows" in messages(report)


async def test_tasks_that_occur_twice_are_warned_of(tmp_path: Path, validated: Validated) -> None:
    rows = [
        *ROWS,
        {"task_id": "c", "question": "Is water wet?", "answer": "yes"},
        {"task_id": "d", "question": "Is water wet?", "answer": "no"},
        {"task_id": "e", "question": "Yesterday Anna bought 3 pens.", "answer": "x"},
        {"task_id": "f", "question": "Yesterday Boris bought 12.5 pens.", "answer": "y"},
        {"task_id": "g", "question": "Today Boris bought 12.5 pens.", "answer": "y"},
    ]
    report = await validated(write_environment(tmp_path / "env", rows=rows))
    assert report.ok
    assert report.all_warnings == [
        "test: 1 tasks are the same as an earlier task (lines 3 like 1)",
        "test: 1 tasks ask the same as an earlier task but expect something else (lines 4 like 1)",
        "test: 1 tasks differ from an earlier task only in numbers and names (lines 6 like 5)",
    ]


async def test_an_unchanged_file_is_not_read_again(tmp_path: Path, validated: Validated) -> None:
    folder = write_environment(tmp_path / "env")
    data = folder / "test.jsonl"
    aged(data, 10)
    first = await validated(folder)
    again = await validated(folder)
    assert (first.splits[0].cached, again.splits[0].cached) == (False, True)
    assert again.splits[0].digest == first.splits[0].digest
    data.write_text(data.read_text().replace("yes", "yea"))
    aged(data, 5)
    changed = await validated(folder)
    assert not changed.splits[0].cached and changed.splits[0].digest != first.splits[0].digest


async def test_another_verifier_or_prompt_reads_the_rows_anew(tmp_path: Path, validated: Validated) -> None:
    folder = write_environment(tmp_path / "env")
    aged(folder / "test.jsonl", 10)
    await validated(folder)
    write_environment(folder, rows=b"", prompt={"user": "Q: {question}"})
    write_environment(folder, prompt={"user": "Q: {question}"})
    aged(folder / "test.jsonl", 10)
    assert not (await validated(folder)).splits[0].cached


async def test_a_file_that_was_just_written_is_not_trusted_to_stay(tmp_path: Path, validated: Validated) -> None:
    folder = write_environment(tmp_path / "env")
    await validated(folder)
    assert not (await validated(folder)).splits[0].cached


async def test_a_generator_must_yield_the_same_rows_again(tmp_path: Path, validated: Validated) -> None:
    code = "import itertools\nn = itertools.count()\ndef generate():\n    yield {'task_id': 'a', 'question': f'{next(n)}', 'answer': 'x'}\n"
    folder = write_environment(
        tmp_path / "env", files={"tasks.py": code}, datasets={"test": {"generator": "tasks:generate"}}
    )
    assert "tasks:generate:1: the generator makes another row the second time" in messages(await validated(folder))


async def test_a_harness_that_needs_what_is_not_offered_is_refused_with_the_reason(
    tmp_path: Path, validated: Validated
) -> None:
    (tmp_path / "harnesses").mkdir()
    (tmp_path / "harnesses" / "digger.py").write_text(
        '"""Digs."""\nfrom gymflow.harnesses import Harness\n\n\nclass Digger(Harness):\n    needs = frozenset({"shell"})\n'
    )
    report = await validated(
        write_environment(tmp_path / "env"), search_dirs=[tmp_path], harnesses=[ComponentRef(name="digger")]
    )
    assert "harness digger cannot play env: it needs shell, and the environment offers only messages" in messages(
        report
    )


async def test_what_the_run_changes_is_validated(tmp_path: Path, validated: Validated) -> None:
    folder = write_environment(tmp_path / "env")
    report = await validated(folder, selection=EnvironmentSelection(name="env", verifier={"strict": "maybe"}))
    assert "strict" in messages(report)
    report = await validated(folder, selection=EnvironmentSelection(name="env", benchmark="none"))
    assert "env has no benchmark 'none'" in messages(report)


async def test_a_verifier_that_does_not_import_does_not_hide_the_other_faults(
    tmp_path: Path, validated: Validated
) -> None:
    folder = write_environment(tmp_path / "env", code="import no_such_library\n", rows='{"task_id": \n', licence="x")
    found = messages(await validated(folder))
    assert "no_such_library" in found and "test.jsonl:1: not JSON" in found and "licence" in found


async def test_cf_impossible_k_is_refused_before_anything_runs(tmp_path: Path) -> None:
    case = fault("cf-impossible-k")
    folder = write_environment(tmp_path / "env")
    config = RunConfig.model_validate({"environments": [{"name": str(folder)}], **case})
    with pytest.raises(InputError, match="pass@8 needs at least 8 repeats"):
        await validate_run(config, Registry())


async def test_a_run_is_validated_environment_by_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    good, bad = write_environment(tmp_path / "good"), write_environment(tmp_path / "bad", rows="{\n")
    config = RunConfig.model_validate({"environments": [{"name": str(good)}, {"name": str(bad)}]})
    with pytest.raises(InputError, match=r"bad cannot be run:\n.*test\.jsonl:1: not JSON"):
        await validate_run(config, Registry())


async def test_ds_raw_control_char_rows_that_are_skipped_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bad = ast.literal_eval(fault("ds-raw-control-char")["bytes_repr"]).splitlines()[0]
    good = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    folder = write_environment(tmp_path / "env", rows=good + bad)
    config = RunConfig.model_validate({"environments": [{"name": str(folder)}]})
    with pytest.raises(InputError, match=r"test\.jsonl:3: not JSON"):
        await validate_run(config, Registry())
    [report] = await validate_run(config.model_copy(update={"skip_bad_rows": True}), Registry())
    assert report.warnings == ["test: 1 of 3 rows are bad and left out"]


@pytest.mark.parametrize("text", ["MIT", "Apache-2.0 OR MIT", "(MIT AND CC-BY-4.0)", "LicenseRef-Acme", "proprietary"])
def test_licence_labels_that_are_known(text: str) -> None:
    assert licence_fault(text) is None


@pytest.mark.parametrize("text", ["", "Unknown-1.0", "MIT OR Foo", "apache", "OR"])
def test_licence_labels_that_are_not(text: str) -> None:
    assert licence_fault(text)


def aged(file: Path, seconds: int) -> None:
    """Make a file look as if it had been changed so long ago."""
    then = time.time() - seconds
    os.utime(file, (then, then))
