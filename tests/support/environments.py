"""Small environments on disk, as a user would write them."""

import json
from pathlib import Path
from typing import Any

import yaml

from gymflow.registry import EnvironmentEntry, Registry

VERIFIER = '''"""Reward 1 for exactly the expected answer."""

from pydantic import BaseModel

from gymflow.verifiers import Evidence, BaseParameters, Verdict, Verifier


class SameTask(BaseModel):
    answer: str


class Same(Verifier[SameTask]):
    class Parameters(BaseParameters):
        strict: bool = True

    async def verify(self, task: SameTask, evidence: Evidence) -> Verdict:
        said, wanted = evidence.final_text, task.answer
        if not self.parameters.strict:
            said, wanted = said.strip().lower(), wanted.lower()
        return Verdict(reward=float(said == wanted))
'''

FIXTURES = [
    {"kind": "full", "task_id": "a", "text": "yes", "reward": 1.0, "swapped": {"answer": "no"}},
    {"kind": "none", "task_id": "a", "text": "no", "reward": 0.0},
    {"kind": "near_miss", "task_id": "a", "text": "yes, no", "reward": 0.0},
    {"kind": "format_variant", "task_id": "b", "text": "no", "reward": 1.0},
    {"kind": "malformed", "task_id": "b", "text": "(", "reward": 0.0},
    {"kind": "empty", "task_id": "b", "text": "", "reward": 0.0},
]

ROWS = [
    {"task_id": "a", "question": "Is water wet?", "answer": "yes"},
    {"task_id": "b", "question": "Do fish fly by night?", "answer": "no"},
]


def write_environment(
    folder: Path,
    *,
    rows: list[dict[str, Any]] | bytes | str | None = None,
    fixtures: list[dict[str, Any]] | None = None,
    files: dict[str, str] | None = None,
    code: str = VERIFIER,
    **manifest: Any,
) -> Path:
    """An environment's folder that validates as it stands; `manifest` changes fields, None removes one."""
    fields = {
        "name": folder.name,
        "version": "1.0.0",
        "description": "Two questions.",
        "domain": "knowledge",
        "licence": "MIT",
        "datasets": {"test": {"file": "test.jsonl"}},
        "verifier": {"name": "./verifier.py"},
        "prompt": {"user": "{question}"},
        **manifest,
    }
    content = {"environment.yaml": yaml.safe_dump({k: v for k, v in fields.items() if v is not None}, sort_keys=False)}
    content["verifier.py"] = code
    content["fixtures.jsonl"] = "".join(json.dumps(fixture) + "\n" for fixture in (fixtures or FIXTURES))
    rows = ROWS if rows is None else rows
    if isinstance(rows, list):
        content["test.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows)
    elif isinstance(rows, str):
        content["test.jsonl"] = rows
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (content | (files or {})).items():
        (folder / name).write_text(text, newline="")
    if isinstance(rows, bytes):
        (folder / "test.jsonl").write_bytes(rows)
    return folder


def entry_of(folder: Path) -> EnvironmentEntry:
    """The environment in a folder."""
    return Registry().environment(folder)
