"""What the flags of `gym eval run` become."""

import pytest

from cli.options import RunOptions, run_config
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
