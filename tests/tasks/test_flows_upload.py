"""What a flow run wrote is uploaded when it ends, however it ends."""

from typing import Any

import pytest

import tasks
from gymflow.errors import RunIncomplete


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """When something was uploaded."""
    calls: list[str] = []
    monkeypatch.setattr(tasks, "INLINE", False)
    monkeypatch.setattr(tasks, "settle", lambda: calls.append("uploaded"))
    return calls


def flow_of(function: Any) -> Any:
    """What a flow of this function runs."""
    return tasks.flow(name="one")(function).fn


async def test_a_flow_that_ends_well_has_uploaded(settled: list[str]) -> None:
    async def double(number: int) -> int:
        assert not settled
        return 2 * number

    assert await flow_of(double)(2) == 4
    assert settled == ["uploaded"]


async def test_a_flow_that_fails_has_uploaded_and_fails_as_it_did(
    settled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise RunIncomplete("2 rollouts are missing")

    with pytest.raises(RunIncomplete, match="2 rollouts"):
        await flow_of(fail)()
    assert settled == ["uploaded"]

    def refuse() -> None:
        raise RunIncomplete("not all is in the bucket")

    monkeypatch.setattr(tasks, "settle", refuse)
    with pytest.raises(RunIncomplete, match="2 rollouts"):
        await flow_of(fail)()
    with pytest.raises(RunIncomplete, match="not all"):
        await flow_of(lambda: _nothing())()


async def _nothing() -> None:
    pass
