"""Run configurations from files and flags."""

from pathlib import Path

import pytest

from gymflow.config import apply_overrides, check_metrics, load_config
from gymflow.contracts.run import RunConfig
from gymflow.errors import InputError
from tests.support.cases import fault

MINIMAL = "environments: [{name: mcqa}]\n"


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    return file


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        load_config(written(tmp_path, text))
    return str(caught.value)


def test_cf_unknown_key(tmp_path: Path) -> None:
    [key] = fault("cf-unknown-key")["config"]
    at_its_level = refusal(tmp_path, MINIMAL + f"sampling:\n  {key}: 0.2\n")
    assert "run.yaml:3: sampling.temprature: unknown key; did you mean temperature?" in at_its_level
    elsewhere = refusal(tmp_path, MINIMAL + f"{key}: 0.2\n")
    assert "run.yaml:2: temprature: unknown key; did you mean sampling.temperature?" in elsewhere


def test_cf_zero_is_value(tmp_path: Path) -> None:
    given = fault("cf-zero-is-value")
    config = load_config(
        written(
            tmp_path,
            MINIMAL
            + "seed: 0\nsampling: {temperature: 0, extra: {stream: false}}\nmodels: {policy: {max_retries: 0}}\n",
        )
    )
    recorded = RunConfig.model_validate_json(config.model_dump_json())
    for one in (config, recorded):
        assert one.seed == given["seed"] == 0
        assert one.sampling.temperature == given["temperature"] == 0
        assert one.models["policy"].max_retries == given["max_retries"] == 0
        assert one.sampling.extra["stream"] is given["stream"] is False


def test_a_flag_of_zero_wins_over_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, MINIMAL + "seed: 3\nsampling: {temperature: 0.7, top_p: 0.9}\n")
    config = load_config(file, {"seed": 0, "sampling": {"temperature": 0.0}})
    assert (config.seed, config.sampling.temperature, config.sampling.top_p) == (0, 0.0, 0.9)


def test_cf_reused_object_leak(tmp_path: Path) -> None:
    case = fault("cf-reused-object-leak")
    file = written(tmp_path, MINIMAL)
    base = load_config(file)
    first = apply_overrides(base, {"sampling.max_output_tokens": case["run1"]["max_tokens"], "sampling.extra.x": 1})
    second = load_config(file)
    assert first.sampling.max_output_tokens == 10
    assert second == base
    assert second.sampling.max_output_tokens is None and second.sampling.extra == {}


def test_cf_impossible_k() -> None:
    case = fault("cf-impossible-k")
    with pytest.raises(InputError, match="pass@8 needs at least 8 repeats, and the run has 4"):
        check_metrics(case["metrics"], case["repeats"])
    check_metrics(["pass@4", "pass^1", "score"], case["repeats"])


def test_every_fault_of_a_file_is_listed_with_its_line(tmp_path: Path) -> None:
    text = "environments:\n  - name: mcqa\n    limt: 2\nsampling:\n  temperature: -1\nbudgets: {max_turns: many}\n"
    assert refusal(tmp_path, text).splitlines() == [
        f"{tmp_path}/run.yaml:3: environments.0.limt: unknown key; did you mean limit?",
        f"{tmp_path}/run.yaml:5: sampling.temperature: input should be greater than or equal to 0, not -1",
        f"{tmp_path}/run.yaml:6: budgets.max_turns: input should be a valid integer, unable to parse string as an integer,"
        " not 'many'",
    ]


def test_a_fault_in_a_flag_does_not_blame_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, MINIMAL + "sampling: {top_p: 0.5}\n")
    with pytest.raises(InputError, match=r"^command line: sampling.top_p: "):
        load_config(file, {"sampling": {"top_p": 5}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("environments: [{name: mcqa}\nseed: 1\n", r"run\.yaml:2:\d+: "),
        ("environments: [{name: mcqa}]\nseed: 1\nseed: 2\n", "run.yaml:3: seed is given twice; first in line 2"),
        ("a: !!python/object/apply:os.system [ls]\n", "run.yaml:1: the tag .* is not read"),
        ("a: !!python/name:os.system\n", "could not determine a constructor"),
        ("just words\n", "expected keys with values"),
        ("", "expected keys with values"),
        ("a: &a [*a]\n", "nested too deeply"),
    ],
)
def test_yaml_that_cannot_be_read_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_config(written(tmp_path, text))


def test_a_missing_file_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: No such file"):
        load_config(tmp_path / "none.yaml")


def test_references_to_secrets_stay_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-very-secret-value")
    config = load_config(written(tmp_path, MINIMAL + "models: {policy: {api_key: '${env:MODEL_KEY}'}}\n"))
    assert config.models["policy"].api_key == "${env:MODEL_KEY}"
    assert "very-secret" not in config.model_dump_json()


def test_flags_replace_lists_and_merge_groups(tmp_path: Path) -> None:
    file = written(
        tmp_path, "environments: [{name: mcqa}, {name: arithmetic}]\nmodels: {policy: {provider: embedded}}\n"
    )
    config = load_config(file, {"environments": [{"name": "workplace"}], "models": {"policy": {"concurrency": 2}}})
    assert [selection.name for selection in config.environments] == ["workplace"]
    assert (config.models["policy"].provider, config.models["policy"].concurrency) == ("embedded", 2)


def test_a_fault_shows_a_long_value_in_part_and_a_secret_not_at_all(tmp_path: Path) -> None:
    assert "not 'xxx" in (told := refusal(tmp_path, MINIMAL + f"seed: {'x' * 5000}\n")) and len(told) < 300
    assert "12345" not in refusal(tmp_path, MINIMAL + "models: {policy: {api_key: 12345}}\n")
