"""The real command lines, installed once, on scripted models."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymflow.collecting import collect
from gymflow.contracts.agent import AgentSpec, ComponentRef
from gymflow.contracts.model import ModelSpec, Sampling
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.run import Budgets, EnvironmentSelection, Limits
from gymflow.contracts.verdict import VerdictRecord
from gymflow.registry import Registry
from gymflow.registry.preparing import prepared
from gymflow.runtime.foreign import installing
from gymflow.sandboxes.local.platform import bubblewrap
from gymflow.user_roots import VARIABLE

HARNESSES = ("codex", "claude_code", "pi")
CACHE = installing.cache()
NOTE = Path(__file__).parent / "note"
SHELL = {"codex": ("exec_command", "cmd"), "claude_code": ("Bash", "command"), "pi": ("bash", "command")}
USAGE = {"prompt_tokens": 12, "completion_tokens": 5}

Rules = list[dict[str, Any]]
Played = tuple[RolloutRecord, VerdictRecord | None]


@pytest.fixture(autouse=True)
def own_folders(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything of a test's own, but the installed command lines."""
    monkeypatch.setenv(installing.CLIS, str(CACHE))
    monkeypatch.setenv(VARIABLE, str(NOTE))


@pytest.fixture(scope="session")
def installed() -> None:
    """The command lines are there; skips where no sandbox can be had."""
    if isinstance(reason := bubblewrap(), str):
        pytest.skip(f"no isolation here: {reason}")
    before = os.environ.get(installing.CLIS)
    os.environ[installing.CLIS] = str(CACHE)
    try:
        list(prepared(Registry(), HARNESSES, print))
    finally:
        os.environ.pop(installing.CLIS) if before is None else os.environ.update({installing.CLIS: before})


@pytest.fixture
def play(installed: None) -> Callable[..., Any]:
    """One rollout of a harness on a scripted model."""

    async def run(harness: str, rules: Rules, *, environment: str = "workplace", **budgets: Any) -> Played:
        model = ModelSpec(provider="scripted", model="stand-in", parameters={"rules": rules}, max_retries=0)
        samples = collect(
            EnvironmentSelection(name=environment, limit=1),
            AgentSpec(harness=ComponentRef(name=harness)),
            model,
            sampling=Sampling(temperature=0.5, max_output_tokens=777),
            budgets=Budgets(**budgets),
            limits=Limits(max_attempts=1),
        )
        [sample] = [sample async for sample in samples]
        return sample.record, sample.verdict

    return run


def shell(harness: str, command: str) -> dict[str, Any]:
    """A call of the harness's own shell tool."""
    name, argument = SHELL[harness]
    return {"name": name, "arguments": {argument: command}}
