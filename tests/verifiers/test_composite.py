"""Several verifiers in one."""

from typing import Any

import pytest
from gymflow.verifiers.composite import Composite
from pydantic import ValidationError

from gymflow.errors import InputError
from gymflow.verifiers import VerifierError

ANSWER = {"verifier": "math", "name": "answer", "weight": 3}
ROW = {"expected_answer": "46"}


def composite(*components: dict[str, Any], **more: Any) -> Composite:
    return Composite(Composite.Parameters(components=components, **more))


def test_components_are_weighted_and_reported_by_name(score: Any, said: Any) -> None:
    parameters = {"components": [ANSWER, {"verifier": "exact", "name": "bare", "weight": 1}]}
    verdict = score(Composite, ROW, said("Answer: 46"), parameters)
    assert verdict.reward == 0.75
    assert verdict.components == {"answer": 1.0, "bare": 0.0}
    assert verdict.reason.startswith("bare: not an accepted answer")
    assert score(Composite, ROW, said("46"), parameters).reward == 1.0
    assert score(Composite, ROW, said("46"), parameters | {"total": "sum"}).reward == 4.0


def test_a_gate_multiplies(score: Any, said: Any) -> None:
    parameters = {"components": [ANSWER, {"verifier": "exact", "name": "bare", "gate": True}]}
    assert score(Composite, ROW, said("Answer: 46"), parameters).reward == 0.0
    assert score(Composite, ROW, said("46"), parameters).reward == 1.0


def test_a_component_that_cannot_decide_makes_the_whole_undecided(score: Any, said: Any) -> None:
    parameters = {"components": [ANSWER, {"verifier": "state", "name": "office"}]}
    with pytest.raises(VerifierError, match=r"component office: .*snapshot"):
        score(Composite, ROW | {"expected_state": {}}, said("46"), parameters)


def test_a_row_is_checked_against_every_component() -> None:
    verifier = composite(ANSWER, {"verifier": "state"})
    with pytest.raises(ValidationError, match="state: expected_state: Field required"):
        verifier.task_fields.model_validate(ROW)
    assert verifier.needs == {"response", "state"}
    assert verifier.rerun == "stateless"


@pytest.mark.parametrize(
    "components",
    [[], [ANSWER, ANSWER], [ANSWER | {"gate": True}], [ANSWER | {"weight": 0}], [{"verifier": "math", "x": 1}]],
)
def test_impossible_parameters_are_refused(components: list[dict[str, Any]]) -> None:
    with pytest.raises(ValidationError):
        Composite.Parameters(components=components)


def test_unknown_verifiers_and_parameters_are_the_users_mistake() -> None:
    with pytest.raises(InputError, match="mahts"):
        composite({"verifier": "mahts"})
    with pytest.raises(InputError, match="timeout"):
        composite(ANSWER | {"parameters": {"timeout": 1}})


def test_the_lenient_twin_is_lenient_in_every_component(score: Any, said: Any) -> None:
    lenient = composite(ANSWER, {"verifier": "exact"}).lenient()
    assert isinstance(lenient, Composite.Parameters)
    assert lenient.components[0].parameters["extraction"] == "lenient"
    assert lenient.components[1].parameters["match"] == "normalized"
    assert composite({"verifier": "state"}).lenient() is None
