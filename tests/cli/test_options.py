"""What the flags of `gym eval run` become."""

import pytest

from cli.options import RunOptions, resumed_config, run_config
from gymflow.errors import InputError


def test_a_benchmark_names_its_environment() -> None:
    config = run_config(RunOptions(benchmark="mcqa-4x"), None)
    assert [(one.name, one.benchmark) for one in config.environments] == [("mcqa", "mcqa-4x")]


def test_an_unknown_benchmark_is_said_with_what_was_meant() -> None:
    with pytest.raises(InputError, match="did you mean mcqa-4x"):
        run_config(RunOptions(benchmark="mcqa4x"), None)


def test_zero_is_a_value_and_nothing_said_is_none() -> None:  # cf-zero-is-value
    said = run_config(
        RunOptions(environments=["mcqa"], limit=0, seed=0, sampling={"temperature": 0.0, "top_p": None}), None
    )
    assert (said.environments[0].limit, said.seed, said.sampling.temperature, said.sampling.top_p) == (0, 0, 0.0, None)


def test_several_models_are_named_by_what_they_serve() -> None:
    config = run_config(RunOptions(environments=["mcqa"], models=["embedded", "openai:m"]), None)
    assert {name: spec.provider for name, spec in config.models.items()} == {"embedded": "embedded", "m": "openai"}


def test_one_model_twice_is_refused() -> None:
    with pytest.raises(InputError, match="each model once"):
        run_config(RunOptions(environments=["mcqa"], models=["m", "m"]), None)


@pytest.mark.parametrize("text", ["1", "4/4", "a/b", "1/"])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="i/n"):
        run_config(RunOptions(environments=["mcqa"], shard=text), None)


def test_a_provider_that_is_misspelt_is_not_taken_for_a_served_name() -> None:
    with pytest.raises(InputError, match="did you mean embedded"):
        run_config(RunOptions(environments=["mcqa"], models=["embeded"]), None)
    served = run_config(RunOptions(environments=["mcqa"], models=["embeded"], base_url="http://127.0.0.1:9/v1"), None)
    assert (served.models["policy"].provider, served.models["policy"].model) == ("openai", "embeded")


def test_a_resumed_run_takes_what_may_change() -> None:
    before = run_config(RunOptions(environments=["mcqa"], models=["m"], base_url="http://127.0.0.1:9/v1"), None)
    options = RunOptions(
        harness="simple",
        split="train",
        api="chat",
        api_key_env="NEW_KEY",
        seed=7,
        reuse="none",
        strict_routing=True,
        repeats=3,
    )
    now = resumed_config(before, options)
    (selection,), model = now.environments, now.models["policy"]
    assert (selection.split, selection.harness.name) == ("train", "simple")
    assert (model.api, model.api_key) == ("chat", "${env:NEW_KEY}")
    assert (now.seed, now.reuse, now.strict_routing, now.repeats) == (7, "none", True, 3)


@pytest.mark.parametrize(
    "options",
    [{"models": ["m"]}, {"benchmark": "mcqa-4x"}, {"tasks": ["t"]}, {"vary": ["seed=1,2"]}, {"shard": "0/2"}],
    ids=lambda options: next(iter(options)),
)
def test_a_resumed_run_refuses_what_is_its_own(options: dict[str, object]) -> None:
    before = run_config(RunOptions(environments=["mcqa"]), None)
    with pytest.raises(InputError, match="does not go with --resume"):
        resumed_config(before, RunOptions(**options))
