"""Published rows of NVIDIA NeMo Gym load as they are, and validate against the environment of their family or a generic one."""

import json
from pathlib import Path
from typing import Any

import pytest

from gymflow.datasets import load_rows, rendered
from gymflow.registry import Registry
from gymflow.validation import SplitCache
from gymflow.validation.splits import check_split
from tests.support.cases import FOLDER
from tests.support.environments import entry_of, write_environment

ANY_FIELDS = '''"""Reads nothing of a task."""

from pydantic import BaseModel

from gymflow.verifiers import Evidence, Verdict, Verifier


class AnyFields(BaseModel):
    pass


class Generic(Verifier[AnyFields]):
    rerun = "recorded"

    async def verify(self, task: AnyFields, evidence: Evidence) -> Verdict:
        return Verdict(reward=0.0)
'''

OURS = {
    "bunsenbench_chemistry_mcq": "mcqa",
    "equivalence_rule": "exact",
    "hotpotqa_qa": "exact",
    "imo_gradingbench": "exact",
    "lc_niah": "exact",
    "math_with_judge": "math",
    "mcqa": "mcqa",
    "mrcr": "exact",
    "polymath": "math",
    "ruler2": "exact",
    "single_step_tool_use_with_argument_comparison": "tool_calls",
    "string_match": "exact",
    "swe_pivot": "tool_calls",
    "terminal_multi_harness": "tool_calls",
    "xlam_fc": "tool_calls",
}
"""Family -> our verifier for it; the others are read by a generic environment."""


def rows_of(family: Path) -> list[dict[str, Any]]:
    """The tasks of a family, each once: both rollouts may be of the same one."""
    tasks = [json.loads(line)["task"] for line in family.read_text().splitlines()]
    return [task for place, task in enumerate(tasks) if task is not None and task not in tasks[:place]]


FAMILIES = {path.stem: path for path in sorted((FOLDER / "peer_rollouts").glob("*.jsonl")) if rows_of(path)}


def test_the_cases_are_there() -> None:
    assert len(FAMILIES) >= 38 and OURS.keys() <= FAMILIES.keys()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_published_row_loads_unchanged_and_validates(family: str, tmp_path: Path) -> None:
    rows = rows_of(FAMILIES[family])
    folder = write_environment(
        tmp_path / "env",
        rows=rows,
        prompt=None,
        code=ANY_FIELDS,
        verifier={"name": OURS.get(family, "./verifier.py")},
    )
    entry, registry = entry_of(folder), Registry()
    name = entry.manifest.verifier.name
    fields = registry.verifier_class(name, entry).task_fields
    tasks = list(load_rows(entry, "test", manifest=entry.manifest, task_fields=fields))
    for row, task in zip(rows, tasks, strict=True):
        loaded = task.model_dump(mode="json", exclude_unset=True)
        if "task_id" not in row:
            loaded.pop("task_id")
        assert loaded == row
        given = row["responses_create_params"]["input"]
        assert rendered(task, entry.manifest) == (
            [{"role": "user", "content": given}] if isinstance(given, str) else given
        )
    report = check_split(
        entry, entry.manifest, "test", fields, registry.verifier_digest(name, entry), SplitCache(tmp_path)
    )
    assert report.rows == len(rows) and report.faults == []
