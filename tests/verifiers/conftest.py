"""Evidence for verifiers to judge, and the public cases."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gymflow.verifiers import Evidence, Verdict, Verifier

CASES = Path(__file__).parents[1] / "cases"
AREAS = {"math_case": "scoring-math", "mcq_case": "scoring-mcq", "call_case": "scoring-toolcall"}


class Bench:
    """Scores on one event loop, with one verifier per class and parameters, so that worker processes start once."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._verifiers: dict[tuple[type, str], Verifier[Any]] = {}

    def __call__(
        self,
        cls: type[Verifier[Any]],
        row: dict[str, Any],
        evidence: Evidence,
        parameters: dict[str, Any] | None = None,
    ) -> Verdict:
        key = (cls, json.dumps(parameters, sort_keys=True))
        if key not in self._verifiers:
            self._verifiers[key] = cls(cls.Parameters(**(parameters or {})))
        verifier = self._verifiers[key]
        return self._runner.run(verifier.verify(verifier.task_fields.model_validate(row), evidence))

    def close(self) -> None:
        for verifier in self._verifiers.values():
            self._runner.run(verifier.close())
        self._runner.close()


@pytest.fixture(scope="session")
def score() -> Iterator[Bench]:
    """`score(Verifier, row, evidence, parameters)` -> verdict."""
    bench = Bench()
    yield bench
    bench.close()


@pytest.fixture(scope="session")
def said() -> Callable[..., Evidence]:
    """Evidence of a final message."""

    def evidence(text: str, **more: Any) -> Evidence:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return Evidence(response={"output": [{"type": "message", "role": "assistant", "content": content}]}, **more)

    return evidence


@pytest.fixture(scope="session")
def asked() -> Callable[..., Evidence]:
    """Evidence of function calls that were asked for and not executed; arguments as text or as an object."""

    def evidence(*calls: tuple[str, Any]) -> Evidence:
        output = [
            {"type": "function_call", "name": name, "arguments": value if isinstance(value, str) else json.dumps(value)}
            for name, value in calls
        ]
        return Evidence(response={"output": output})

    return evidence


@pytest.fixture(scope="session")
def peer() -> Callable[[str], list[dict[str, Any]]]:
    """The two published rollouts of a NeMo Gym family."""

    def rollouts(family: str) -> list[dict[str, Any]]:
        text = (CASES / "peer_rollouts" / f"{family}.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]

    return rollouts


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise `math_case`, `mcq_case` and `call_case` with the reported faults of their area, by id."""
    for name, area in AREAS.items():
        if name in metafunc.fixturenames:
            lines = (CASES / "reported_faults.jsonl").read_text("utf-8").splitlines()
            cases = [case for case in map(json.loads, lines) if case["area"] == area]
            metafunc.parametrize(name, cases, ids=[case["id"] for case in cases])
