"""Rows as tasks: ids, inputs, selection."""

import ast
import random
from pathlib import Path
from typing import Any

import pytest

from gymflow.contracts.environment import PromptTemplate
from gymflow.contracts.task import Task
from gymflow.datasets import RowFault, dataset_digest, load_rows, rendered
from gymflow.datasets.prompt import compiled
from gymflow.errors import InputError
from tests.support.cases import fault
from tests.support.environments import entry_of, write_environment

PROMPT = {"user": "{prompt}"}


def tasks_of(folder: Path, **options: Any) -> list[Task]:
    return list(load_rows(entry_of(folder), "test", **options))


def ids(tasks: list[Task]) -> list[str | int | None]:
    return [task.task_id for task in tasks]


def test_ds_duplicate_id(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "env", rows=fault("ds-duplicate-id")["rows"], prompt=PROMPT)
    with pytest.raises(InputError, match=r"test\.jsonl:2: id: the id 'dup' is taken by line 1"):
        tasks_of(folder)


def test_ds_id_int_vs_str(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "env", rows=fault("ds-id-int-vs-str")["rows"], prompt=PROMPT)
    with pytest.raises(InputError, match="the id '1' is taken by line 1; ids are compared as text"):
        tasks_of(folder)


def test_ds_mid_file_bad_line(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "env", rows=fault("ds-mid-file-bad-line")["jsonl"], prompt=PROMPT)
    with pytest.raises(InputError, match=r"test\.jsonl:2: not JSON"):
        tasks_of(folder)


def test_ds_raw_control_char(tmp_path: Path) -> None:
    rows = ast.literal_eval(fault("ds-raw-control-char")["bytes_repr"])
    folder = write_environment(tmp_path / "env", rows=rows, prompt=PROMPT)
    skipped: list[RowFault] = []
    assert ids(tasks_of(folder, skip_bad=True, skipped=skipped)) == ["2"]
    assert [one.line for one in skipped] == [1]


def test_ds_shuffle_auto_id(tmp_path: Path) -> None:
    case = fault("ds-shuffle-auto-id")
    named: dict[str, set[str | int | None]] = {text: set() for text in case["rows"]}
    for seed in case["shuffle_seeds"]:
        rows = [{"question": text} for text in case["rows"]]
        random.Random(seed).shuffle(rows)
        folder = write_environment(tmp_path / f"env{seed}", rows=rows)
        for task in tasks_of(folder)[: case["limit"] + seed]:
            named[task.verifier_fields["question"]].add(task.task_id)
    assert all(len(known) <= 1 for known in named.values())
    assert len(set().union(*named.values())) == len([known for known in named.values() if known])


def test_equal_rows_without_ids_are_told_apart(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "env", rows=[{"question": "a"}, {"question": "b"}, {"question": "a"}])
    first, other, again = ids(tasks_of(folder))
    assert again == f"{first}-2" and other not in (first, again)


def test_the_id_of_a_row_without_one_is_pinned(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "env", rows=[{"question": "é", "n": 1.0}])
    assert ids(tasks_of(folder)) == ["e4089e3ff6feb469"]


@pytest.mark.parametrize(("row", "task_id"), [({"task_id": 7, "id": "x"}, "7"), ({"id": 0}, "0"), ({"id": "x"}, "x")])
def test_a_rows_own_id_is_used_as_text(tmp_path: Path, row: dict[str, Any], task_id: str) -> None:
    folder = write_environment(tmp_path / "env", rows=[{**row, "question": "a"}])
    assert ids(tasks_of(folder)) == [task_id]


def rendered_with(user: str, system: str | None = None, **fields: Any) -> list[dict[str, Any]]:
    return compiled(PromptTemplate(system=system, user=user)).render(Task.model_validate(fields))


def test_a_prompt_fills_its_placeholders() -> None:
    assert rendered_with("{a}-{b}-{c}", "Use {{x}}.", a="t", b=1.5, c=["ü"]) == [
        {"role": "system", "content": "Use {x}."},
        {"role": "user", "content": 't-1.5-["ü"]'},
    ]


def test_zero_and_false_fill_a_placeholder_and_a_filled_value_is_not_a_template() -> None:
    assert rendered_with("{a}{b}{c}", a=0, b=False, c="{a}")[0]["content"] == "0false{a}"


@pytest.mark.parametrize("text", ["{", "}", "{a b}", "{a!r}", "{0}", "{a.b}"])
def test_a_lone_brace_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no placeholder; write \{\{ and \}\}"):
        compiled(PromptTemplate(user=text))


def test_a_placeholder_that_a_row_lacks_is_named(tmp_path: Path) -> None:
    entry = entry_of(write_environment(tmp_path / "env", rows=[{"task_id": "a", "questoin": "?", "answer": "x"}]))
    with pytest.raises(
        InputError,
        match=r"test\.jsonl:1: input: the prompt's placeholder \{question\} is not in the row; did you mean questoin",
    ):
        list(load_rows(entry, "test", manifest=entry.manifest))


def test_a_row_with_its_own_input_and_the_prompts_fields_is_ambiguous(tmp_path: Path) -> None:
    entry = entry_of(write_environment(tmp_path / "env"))
    both = Task.model_validate({"question": "a", "responses_create_params": {"input": "b"}})
    with pytest.raises(ValueError, match="keep one of them"):
        rendered(both, entry.manifest)
    own = Task.model_validate({"responses_create_params": {"input": "b"}})
    assert rendered(own, entry.manifest) == [{"role": "user", "content": "b"}]


def test_a_row_without_any_input_needs_a_session_that_speaks_first(tmp_path: Path) -> None:
    manifest = entry_of(write_environment(tmp_path / "env", prompt=None)).manifest
    with pytest.raises(ValueError, match="no input"):
        rendered(Task(), manifest)
    assert rendered(Task(), manifest.model_copy(update={"session": "session:Host"})) == []


GENERATOR = """
import random


def generate(count, seed=0):
    source = random.Random(seed)
    for index in range(count):
        yield {"task_id": index, "question": f"{source.random()}", "pair": (1, 2)}


def broken():
    yield {"task_id": "ok", "question": "?"}
    raise KeyError("answer")
"""


def generated(tmp_path: Path, generator: str, **arguments: Any) -> Path:
    spec = {"test": {"generator": generator, "arguments": arguments}}
    return write_environment(tmp_path / "env", files={"tasks.py": GENERATOR}, datasets=spec)


def test_a_generator_yields_rows_as_json(tmp_path: Path) -> None:
    tasks = tasks_of(generated(tmp_path, "tasks:generate", count=3))
    assert ids(tasks) == ["0", "1", "2"]
    assert tasks[0].verifier_fields["pair"] == [1, 2]


@pytest.mark.parametrize(
    ("generator", "arguments", "message"),
    [
        ("tasks:broken", {}, r"generator tasks:broken failed after row 1: KeyError: 'answer'"),
        ("tasks:generate", {"cuont": 3}, r"TypeError: .*'cuont'"),
        ("tasks:generat", {"count": 3}, r"module 'tasks' has no 'generat'; did you mean generate"),
        ("tsks:generate", {"count": 3}, r"there is no module 'tsks' .*did you mean tasks"),
        ("generate", {}, r"should read `module:name`"),
    ],
)
def test_a_generator_that_fails_is_told_with_its_place(
    tmp_path: Path, generator: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        tasks_of(generated(tmp_path, generator, **arguments))


def test_an_unknown_split_and_a_missing_file_are_named(tmp_path: Path) -> None:
    entry = entry_of(
        write_environment(tmp_path / "env", datasets={"test": {"file": "gone.jsonl"}, "x": {"file": "a.txt"}})
    )
    with pytest.raises(InputError, match="env has no split 'tset'; did you mean test"):
        list(load_rows(entry, "tset"))
    with pytest.raises(
        InputError, match=r"environment\.yaml:\d+: datasets\.test\.file: there is no file .*gone\.jsonl"
    ):
        list(load_rows(entry, "test"))


def test_pv_dataset_changed(tmp_path: Path) -> None:
    assert fault("pv-dataset-changed")["run1_hash"] != fault("pv-dataset-changed")["run2_hash"]
    folder = write_environment(tmp_path / "env")
    before = dataset_digest(entry_of(folder), "test")
    write_environment(folder, rows=[{"task_id": "a", "question": "Is water wet?", "answer": "no"}])
    assert dataset_digest(entry_of(folder), "test") != before
