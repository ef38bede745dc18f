"""manifest < benchmark < the run."""

from pathlib import Path

import pytest

from gymflow.config import apply_overrides, merge_environment
from gymflow.contracts.run import EnvironmentSelection, RunConfig
from gymflow.contracts.sandbox import SandboxSpec
from gymflow.errors import InputError
from gymflow.registry import Registry
from gymflow.runtime.components import verifier_parameters
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


def test_a_run_changes_single_fields_of_a_sandbox(tmp_path: Path) -> None:
    sandbox = {"workdir": "/app", "env": {"A": "1"}, "limits": {"memory_mib": 512, "cpus": 1}}
    judging = {"name": "terminal", "parameters": {"sandbox": {"limits": {"memory_mib": 256}}}}
    entry = entry_of(
        write_environment(tmp_path / "env", sandbox=sandbox, verifier=judging, offers=["messages", "shell"])
    )
    config = RunConfig(environments=[EnvironmentSelection(name="env")])
    changes = {"sandbox.provider": "docker", "sandbox.limits.memory_mib": 1024, "verifier.sandbox.provider": "local"}
    [selection] = apply_overrides(config, changes).environments
    merged = merge_environment(entry, selection)

    assert merged.sandbox == {**sandbox, "provider": "docker", "limits": {"memory_mib": 1024, "cpus": 1}}
    assert merged.verifier.parameters == {"sandbox": {"limits": {"memory_mib": 256}, "provider": "local"}}
    judge = verifier_parameters(Registry().verifier_class("terminal"), merged)
    assert isinstance(judge.sandbox, SandboxSpec)  # type: ignore[attr-defined]
    assert judge.sandbox.model_dump(exclude_unset=True) == {
        "provider": "local", "workdir": "/app", "limits": {"memory_mib": 256, "cpus": 1}
    }  # fmt: skip


def test_a_verifier_judges_in_the_agents_kind_of_sandbox_without_its_gateway(tmp_path: Path) -> None:
    sandbox = {"image": "office", "network": "gateway", "files": {"a": "b"}}
    entry = entry_of(
        write_environment(
            tmp_path / "env", sandbox=sandbox, verifier={"name": "terminal"}, offers=["messages", "shell"]
        )
    )
    judge = verifier_parameters(Registry().verifier_class("terminal"), entry.manifest)
    assert judge.sandbox.model_dump(exclude_unset=True) == {"image": "office"}  # type: ignore[attr-defined]


def test_a_sandbox_for_an_environment_that_has_none_is_refused(tmp_path: Path) -> None:
    entry = entry_of(write_environment(tmp_path / "env"))
    with pytest.raises(InputError, match=r"sandbox\.image: env asks for no sandbox"):
        merge_environment(entry, EnvironmentSelection(name="env", sandbox={"image": "x"}))
