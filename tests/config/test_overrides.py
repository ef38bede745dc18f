"""`--set` and `--vary`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymflow.config import apply_overrides, expand_vary, parse_assignments, parse_vary
from gymflow.contracts.run import RunConfig
from gymflow.documents import parse_value
from gymflow.errors import InputError

CONFIG = RunConfig.model_validate({"environments": [{"name": "mcqa"}, {"name": "arithmetic"}]})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-3", -3),
        ("0.5", 0.5),
        ("1e-3", 0.001),
        ("true", True),
        ("no", "no"),
        ("null", None),
        ("", ""),
        ('"7"', "7"),
        ("[1, two]", [1, "two"]),
        ("{a: 1}", {"a": 1}),
        ("2024-05-01", "2024-05-01"),
        ("${env:KEY}", "${env:KEY}"),
        ("Note: think first.", "Note: think first."),
    ],
)
def test_values_have_the_types_of_yaml_1_2(text: str, value: Any) -> None:
    parsed = parse_value(text)
    assert parsed == value and type(parsed) is type(value)


@given(st.text(max_size=40))
def test_any_text_is_a_value_or_an_input_error(text: str) -> None:
    try:
        parse_value(text)
    except InputError:
        assert text[0] in "[{\"'"


def test_dotted_keys_reach_agents_that_are_not_there_yet() -> None:
    changed = apply_overrides(CONFIG, {"agents.a.harness.name": "simple", "agents.a.harness.parameters.max_turns": 3})
    harness = changed.agents["a"].harness
    assert harness is not None and harness.parameters == {"max_turns": 3}
    assert CONFIG.agents == {}


def test_short_keys_mean_every_environment() -> None:
    changed = apply_overrides(CONFIG, {"verifier.mode": "lenient", "session.size": 4, "harness": "simple"})
    for selection in changed.environments:
        assert selection.verifier == {"mode": "lenient"}
        assert selection.session == {"size": 4}
        assert selection.harness is not None and selection.harness.name == "simple"


def test_list_elements_are_named_by_name_or_index() -> None:
    changed = apply_overrides(CONFIG, {"environments.arithmetic.limit": 0, "environments.0.limit": 5})
    assert [selection.limit for selection in changed.environments] == [5, 0]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("temperature", "--set: temperature: unknown key; did you mean sampling.temperature?"),
        ("sampling.temprature", "did you mean temperature?"),
        ("environments.arithmetc.limit", "did you mean arithmetic?"),
        ("seed.x", "seed is a single value"),
        ("verifier", "name the parameter"),
        ("harness.max_turns", "mcqa runs on its default harness; name the one that is meant"),
        ("agents.a.harness.parameters.x", "agents.a.harness.name: required, but missing"),
    ],
)
def test_a_key_that_leads_nowhere_says_what_to_write(key: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        apply_overrides(CONFIG, {key: 1})
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["seed", "=1", ".a=1", "a..b=1"])
def test_an_assignment_needs_a_key_and_a_value(text: str) -> None:
    with pytest.raises(InputError, match="write key=value"):
        parse_assignments([text])


def test_a_key_set_twice_is_refused() -> None:
    with pytest.raises(InputError, match="seed is set twice"):
        parse_assignments(["seed=1", "seed=2"])


def test_vary_makes_one_named_run_for_each_value() -> None:
    varied = CONFIG.model_copy(update={"vary": parse_vary(["sampling.temperature=0,0.7"]), "name": "study"})
    first, second = expand_vary(varied)
    assert (first.name, first.sampling.temperature) == ("study sampling.temperature=0", 0)
    assert (second.name, second.sampling.temperature) == ("study sampling.temperature=0.7", 0.7)
    assert first.vary == second.vary == {}
    assert expand_vary(CONFIG) == [CONFIG]


def test_vary_over_the_harness_names_it() -> None:
    runs = expand_vary(CONFIG.model_copy(update={"vary": {"harness": ["simple", "single_turn"]}}))
    assert [run.name for run in runs] == ["mcqa+arithmetic harness=simple", "mcqa+arithmetic harness=single_turn"]


def test_a_value_with_a_comma_is_written_in_brackets() -> None:
    assert parse_vary(['verifier.mark=["a,b", c]']) == {"verifier.mark": ["a,b", "c"]}


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ({"seed": [1], "repeats": [2]}, "an ablation varies one field"),
        ({"seed": [1, 1]}, "1 is named twice"),
        ({"seed": []}, "name the values"),
        ({"sampling.temprature": [0]}, "vary: sampling.temprature: unknown key"),
    ],
)
def test_an_ablation_that_makes_no_sense_is_refused(vary: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        expand_vary(CONFIG.model_copy(update={"vary": vary}))


def test_an_integer_beyond_what_python_converts_is_refused() -> None:
    with pytest.raises(InputError, match="an integer of that many digits"):
        parse_value("1" * 5000)
