"""The final state against the expected one."""

from typing import Any

import pytest
from gymflow.verifiers.state import State

from gymflow.verifiers import Evidence, VerifierError

EXPECTED = {"mail": [{"id": 1, "folder": "trash"}, {"id": 2, "folder": "inbox"}], "balance": 10.0, "log": {}}


def after(state: dict[str, Any] | None) -> Evidence:
    return Evidence(response={"output": []}, snapshot=state)


@pytest.mark.parametrize(
    ("state", "parameters", "reward"),
    [
        (EXPECTED, {}, 1.0),
        (EXPECTED | {"balance": 10}, {}, 1.0),
        (EXPECTED | {"balance": 10.004}, {}, 0.0),
        (EXPECTED | {"balance": 10.004}, {"tolerance": 0.01}, 1.0),
        (EXPECTED | {"extra": 1}, {}, 0.0),
        (EXPECTED | {"extra": 1}, {"match": "subset"}, 1.0),
        (EXPECTED | {"log": {"at": 5}}, {"ignored": ["log.*"]}, 1.0),
        (EXPECTED | {"mail": EXPECTED["mail"][::-1]}, {}, 0.0),
        (EXPECTED | {"mail": EXPECTED["mail"][::-1]}, {"unordered": ["mail"]}, 1.0),
        (EXPECTED | {"mail": EXPECTED["mail"][:1]}, {"unordered": ["mail"], "match": "subset"}, 0.0),
        ({}, {"match": "subset"}, 0.0),
    ],
)
def test_states_compare(state: dict[str, Any], parameters: dict[str, Any], reward: float, score: Any) -> None:
    verdict = score(State, {"expected_state": EXPECTED}, after(state), parameters)
    assert verdict.reward == reward
    assert (verdict.reason is None) == (reward == 1.0)
    assert (verdict.details == {}) == (reward == 1.0)


def test_differing_paths_are_reported_and_anchored(score: Any) -> None:
    state = {"mail": [{"id": 1, "folder": "inbox"}, {"id": 2, "folder": "inbox"}], "log": {}}
    verdict = score(State, {"expected_state": EXPECTED}, after(state))
    assert verdict.reason == 'mail.0.folder is "inbox", expected "trash"; balance is missing'
    assert verdict.details["count"] == 2
    assert verdict.anchors[0].locator == "snapshot/mail/0/folder"
    assert verdict.components["matched"] == pytest.approx(4 / 6)


def test_a_rollout_without_a_snapshot_is_undecided(score: Any) -> None:
    with pytest.raises(VerifierError, match="snapshot"):
        score(State, {"expected_state": EXPECTED}, after(None))
