"""Answers from a stored run."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from gymflow.contracts.model import ModelSpec, Sampling
from gymflow.contracts.trajectory import Usage
from gymflow.errors import InputError, RolloutFailure
from gymflow.models import Gateway, Item, ModelClient, ModelRequest, ModelResponse
from gymflow.models.dialects import message
from gymflow.models.providers import make_provider
from gymflow.models.scripted import Scripted
from gymflow.store import Store
from tests.store.conftest import Build, UnsyncedFiles

TOOLS = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]


def replay(root: Path, **parameters: Any) -> ModelSpec:
    return ModelSpec(provider="replay", max_retries=0, parameters={"run": "r", "store": str(root)} | parameters)


async def play(gateway: Gateway, seed: int, temperature: float = 0.5, tools: list[Item] = TOOLS) -> ModelClient:
    """A conversation of two turns."""
    policy = gateway.client("policy", seed=seed)
    history: list[Item] = []
    for question in ("a", "b"):
        history.append({"role": "user", "content": question})
        sampling = Sampling(temperature=temperature)
        request = ModelRequest(list(history), tools=tools, instructions="be brief", sampling=sampling)
        history += (await policy.create(request)).output
    return policy


def said(policy: ModelClient) -> list[Any]:
    return [call.output[0]["content"][0]["text"] for call in policy.calls]


@pytest.fixture
async def recorded(tmp_path: Path) -> list[list[str]]:
    """What a model that counts its calls said in two rollouts, stored as run `r`."""
    count = itertools.count(1)

    def reply(request: ModelRequest) -> ModelResponse:
        return ModelResponse([message(f"answer {next(count)}")], "stop", Usage(prompt_tokens=3, completion_tokens=1))

    spec = ModelSpec(provider="scripted", model="counter")
    build, store = Build(), Store(tmp_path, files=UnsyncedFiles())
    build.run(store, "r", 2)
    texts = []
    async with (
        Gateway({"policy": spec}, providers={"policy": Scripted(spec, answer=reply)}) as gateway,
        store.writer("r") as writer,
    ):
        for seed in range(2):
            policy = await play(gateway, seed)
            texts.append(said(policy))
            await writer.commit(build.record("r", seed, calls=policy.calls))
    return texts


async def test_a_run_repeats_word_for_word_without_its_model(recorded, tmp_path):
    async with Gateway({"policy": replay(tmp_path)}) as gateway:
        await gateway.probe()
        replayed = [await play(gateway, seed) for seed in (1, 0)]
        assert gateway.identities()["policy"].pinned
    assert [said(policy) for policy in replayed] == [recorded[1], recorded[0]]
    assert replayed[0].calls[0].usage == Usage(prompt_tokens=3, completion_tokens=1)


@pytest.mark.parametrize(
    "changed", [{"seed": 7}, {"temperature": 0.7}, {"tools": []}], ids=["seed", "temperature", "tools"]
)
async def test_a_request_that_was_not_made_is_an_error(recorded, tmp_path, changed):
    async with Gateway({"policy": replay(tmp_path)}) as gateway:
        with pytest.raises(RolloutFailure, match="run r holds no answer to this request"):
            await play(gateway, **{"seed": 0} | changed)


async def test_one_models_answers_are_never_anothers(recorded, tmp_path):
    async with Gateway({"policy": replay(tmp_path).model_copy(update={"model": "counter"})}) as gateway:
        assert said(await play(gateway, 0)) == recorded[0]
    with pytest.raises(InputError, match="no calls of model 'other'; it called: counter"):
        async with Gateway({"policy": replay(tmp_path).model_copy(update={"model": "other"})}):
            pass


def test_a_run_has_to_be_named(tmp_path):
    with pytest.raises(InputError, match=r"needs `parameters\.run`"):
        make_provider(ModelSpec(provider="replay"))
    with pytest.raises(InputError, match="no parameter 'runs'"):
        make_provider(replay(tmp_path, runs="r"))
