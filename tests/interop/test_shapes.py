"""Files of other tools that are damaged, or made by something else, are refused with the rollout's number, never with a traceback."""

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gymflow.errors import InputError
from gymflow.interop import format_module
from gymflow.interop.exchange import export_run, import_file
from gymflow.interop.rollouts import OURS, ForeignRollout
from gymflow.interop.shapes import of_shape
from gymflow.registry import Registry
from gymflow.store import Store
from tests.support.runs import scripted

VALUES: tuple[Any, ...] = (None, 3, -1, 1.5, True, "x", "", [], {}, [3], ["x"], [None], {"a": 1}, "\u202e", 10**30)
MUTATIONS = 150
NAMES = {"nemo-gym": "out.jsonl", "ng-trajectory": "out.jsonl", "atif": "out", "inspect": "out.json"}


def foreign(value: Any) -> Any:
    """The same without what only our own exports hold."""
    if isinstance(value, dict):
        return {name: foreign(inner) for name, inner in value.items() if OURS not in name}
    return [foreign(inner) for inner in value] if isinstance(value, list) else value


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside another."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*at, key)
        yield from places(one, (*at, key))


def changed(document: Any, place: tuple[Any, ...], new: Any) -> Any:
    """A copy with another value at a place."""
    document = at = copy.deepcopy(document)
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = new
    return document


@pytest.mark.parametrize("format", NAMES)
def test_any_value_anywhere_is_read_or_refused(format: str, play: Any, tmp_path: Path) -> None:
    store: Store = play("one", scripted(environments=[{"name": "mcqa", "limit": 1}]))
    output = tmp_path / NAMES[format]
    export_run(store, "r", format, output)
    file = next(iter(sorted(output.glob("*.json")))) if output.is_dir() else output
    document = foreign(json.loads(file.read_text().splitlines()[0] if file.suffix == ".jsonl" else file.read_text()))
    found, rng, refused = list(places(document)), random.Random(7), 0
    damaged = tmp_path / "damaged.json"
    for _ in range(MUTATIONS):
        place, new = rng.choice(found), rng.choice(VALUES)
        damaged.write_text(json.dumps(changed(document, place, new)) + "\n")
        try:
            rollouts = list(of_shape(format_module(format).read(damaged, None), damaged, format))
        except InputError as error:
            refused += 1
            assert "damaged.json" in str(error), (place, new)
        else:
            assert all(isinstance(rollout, ForeignRollout) for rollout in rollouts), (place, new)
    assert 0 < refused < MUTATIONS


async def test_what_is_wrong_is_said_with_the_rollout(tmp_path: Path) -> None:
    good = {"responses_create_params": {"input": "1 + 1?"}, "response": {"output": []}, "reward": 1.0}
    file = tmp_path / "rollouts.jsonl"
    for bad, message in (
        (good | {"response": {"output": ["two"]}}, r"rollouts.jsonl:2: response.output.0: 'two' is no object"),
        (good | {"agent_ref": 3}, r"rollouts.jsonl:2: agent_ref: 3 is no object"),
        (good | {"response": {"output": [], "created_at": "x"}}, "rollout 2 has not the shape of nemo-gym: could not"),
        (good | {"tags": [None]}, r"rollout 2 has not the shape of nemo-gym: tags.0: Input should be a valid string"),
    ):
        file.write_text(json.dumps(good) + "\n" + json.dumps(bad) + "\n")
        store = Store(tmp_path / "store")
        with pytest.raises(InputError, match=message):
            await import_file(store, file, "nemo-gym", Registry())
        assert store.runs() == []
