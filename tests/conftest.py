"""Fixtures that tests of several areas share."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Tests run flows as plain functions; those that need a server start one and run commands against it.
os.environ["GYMFLOW_INLINE"] = "1"

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Ran:
    """A finished `gym` command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store that commands and code use by default."""
    root = tmp_path / "store"
    monkeypatch.setenv("GYMFLOW_STORE", str(root))
    return root


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Caches and state of commands go here, not to the user's."""
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "PREFECT_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    return tmp_path


@pytest.fixture
def gym(store: Path, home: Path) -> Callable[..., Ran]:
    """Run the `gym` command in a process of its own."""

    def run(*arguments: str, cwd: Path | None = None, timeout: float = 120) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "cli.main", *arguments],
            capture_output=True,
            text=True,
            cwd=cwd,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def faults() -> dict[str, dict[str, Any]]:
    """The reported faults by id."""
    lines = (CASES / "reported_faults.jsonl").read_text().splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}
