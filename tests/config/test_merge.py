"""manifest < benchmark < the run."""

from pathlib import Path

import pytest

from gymflow.config import merge_environment
from gymflow.contracts.run import EnvironmentSelection
from gymflow.errors import InputError
from tests.support.environments import entry_of, write_environment


def test_each_layer_wins_over_the_one_below(tmp_path: Path) -> None:
    entry = entry_of(
        write_environment(
            tmp_path / "env",
            harness={"name": "single_turn"},
            session_parameters={"size": 3, "mode": "easy"},
            verifier={"name": "./verifier.py", "parameters": {"strict": True}},
            benchmarks={"hard": {"prompt": {"user": "Hard: {question}"}, "harness": {"name": "simple"}}},
        )
    )
    plain = merge_environment(entry, EnvironmentSelection(name="env"))
    assert plain == entry.manifest
    selection = EnvironmentSelection(name="env", benchmark="hard", verifier={"strict": False}, session={"size": 0})
    merged = merge_environment(entry, selection)
    assert merged.prompt is not None and merged.prompt.user == "Hard: {question}"
    assert merged.harness.name == "simple"
    assert merged.verifier.parameters == {"strict": False}
    assert merged.session_parameters == {"size": 0, "mode": "easy"}
    explicit = selection.model_copy(update={"harness": entry.manifest.harness})
    assert merge_environment(entry, explicit).harness.name == "single_turn"
    assert entry.manifest.session_parameters == {"size": 3, "mode": "easy"}


def test_a_benchmark_may_have_a_verifier_of_its_own(tmp_path: Path) -> None:
    judge = {"name": "judge", "parameters": {"votes": 3, "grading": "reference"}}
    entry = entry_of(write_environment(tmp_path / "env", benchmarks={"judged": {"verifier": judge}, "plain": {}}))
    selection = EnvironmentSelection(name="env", benchmark="judged", verifier={"votes": 1})
    assert merge_environment(entry, selection).verifier.model_dump() == {
        "name": "judge",
        "parameters": {"votes": 1, "grading": "reference"},
    }
    plain = merge_environment(entry, EnvironmentSelection(name="env", benchmark="plain"))
    assert plain.verifier == entry.manifest.verifier


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"benchmark": "hrad"}, "env has no benchmark 'hrad'; did you mean hard"),
        ({"session": {"sise": 1}}, "no session parameter 'sise' in environment.yaml; did you mean size"),
    ],
)
def test_what_does_not_exist_is_refused(tmp_path: Path, selection: dict[str, object], message: str) -> None:
    folder = write_environment(tmp_path / "env", session_parameters={"size": 3}, benchmarks={"hard": {}})
    with pytest.raises(InputError, match=message):
        merge_environment(entry_of(folder), EnvironmentSelection.model_validate({"name": "env", **selection}))
