"""The reported faults by id: each stands for its kind."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "cases"
_FAULTS = {case["id"]: case for case in map(json.loads, (FOLDER / "reported_faults.jsonl").read_text().splitlines())}


def fault(case_id: str) -> dict[str, Any]:
    """The case's `input`."""
    return _FAULTS[case_id]["input"]
