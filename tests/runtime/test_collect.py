"""Scored rollouts for a trainer's loop."""

import asyncio

import pytest

from gymflow import collect
from gymflow.contracts.model import ModelSpec
from gymflow.contracts.run import EnvironmentSelection, Limits
from gymflow.errors import InputError
from gymflow.models.health import EndpointDown
from gymflow.models.scripted import Scripted
from gymflow.store import Store, connect
from tests.support.endpoint import start_endpoint

RULES = ModelSpec(provider="scripted", parameters={"rules": [{"text": "The answer is (A)."}]})
FEW = EnvironmentSelection(name="mcqa", limit=4)


async def test_every_repeat_comes_out_scored_and_carries_its_weights(home):
    samples = [sample async for sample in collect(FEW, "single_turn", RULES, repeats=3, weight_version="step-7")]
    assert len(samples) == 12
    assert {sample.record.rollout.weight_version for sample in samples} == {"step-7"}
    assert all(sample.verdict is not None and sample.verdict.verdict is not None for sample in samples)
    assert len({(s.record.rollout.task_id, s.record.rollout.repeat) for s in samples}) == 12


async def test_nothing_is_written_without_a_store(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async for _ in collect(FEW, model=RULES):
        pass
    assert not (tmp_path / "gymflow-store").exists()


async def test_with_a_store_a_sample_is_durable_before_it_is_yielded(home, tmp_path):
    async for sample in collect(FEW, model=RULES, store=tmp_path / "store"):
        run_id = sample.record.rollout.run_id
        assert sample.record.rollout.plan_index in Store(tmp_path / "store").run(run_id).completed()
    with connect(tmp_path / "store") as connection:
        assert connection.execute("select count(*), count(reward) from outcomes").fetchone() == (4, 4)


async def test_samples_come_while_others_are_still_played(home):
    slow = ModelSpec(
        provider="scripted",
        parameters={
            "rules": [{"text": "The answer is (A).", "times": 1}, {"text": "The answer is (B).", "delay_s": 30}]
        },
    )
    samples = collect(FEW, model=slow, limits=Limits(concurrency=4))
    async with asyncio.timeout(20):
        first = await anext(samples)
    await samples.aclose()
    assert "(A)" in str(first.record.evidence.response)


async def test_a_trainers_own_provider_is_used_and_left_open(home):
    provider = Scripted(RULES)
    await provider.open()
    closed = []
    provider.close = lambda: closed.append(True)  # type: ignore[method-assign,assignment]
    samples = [sample async for sample in collect(FEW, model=provider)]
    assert len(samples) == 4 and closed == []


async def test_equal_seeds_ask_for_the_same_and_none_asks_anew(home):
    async def seeds(seed):
        return sorted([s.record.rollout.seed async for s in collect(FEW, model=RULES, repeats=2, seed=seed)])

    assert await seeds(3) == await seeds(3)
    assert await seeds(None) != await seeds(None)


async def test_an_unreachable_model_is_an_input_error(home):
    spec = ModelSpec(provider="openai", model="m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(InputError, match="unreachable"):
        async for _ in collect(FEW, model=spec):
            pass


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tasks": "mcqq"}, "did you mean mcqa"),
        ({"agent": "singel_turn"}, "did you mean single_turn"),
        ({"model": "embeded"}, "did you mean embedded"),
        ({"model": {"provder": "embedded"}}, "did you mean provider"),
        ({"repeats": 0}, "collect: repeats: "),
        ({"sampling": {"temperature": "hot"}}, "collect: sampling.temperature: "),
        ({"tasks": 3}, "collect: environments.0: "),
        ({"model": 3}, "collect: models.policy: "),
        ({"agent": "half \ud800"}, "a lone surrogate"),
    ],
)
async def test_a_mistake_is_one_input_error(home, arguments, message):
    with pytest.raises(InputError, match=message):
        async for _ in collect(**({"tasks": "mcqa"} | arguments)):
            pass


async def test_an_endpoint_that_dies_while_the_trainer_is_busy_is_not_the_end_of_the_tasks(home):
    limits = Limits(concurrency=4, unreachable_s=0.5)
    samples = 0
    with start_endpoint(latency_ms=20) as endpoint:
        spec = ModelSpec(provider="openai", model="m", base_url=endpoint.url, max_retries=0)
        with pytest.raises(EndpointDown, match="out of reach"):
            async for _ in collect("mcqa", model=spec, repeats=2, limits=limits):
                samples += 1
                if samples == 5:
                    endpoint.process.kill()
                    await asyncio.sleep(3)
    assert 5 <= samples < 20


@pytest.mark.parametrize("stored", [False, True])
def test_a_loop_that_is_left_ends_quietly(home, tmp_path, capfd, stored):
    store = tmp_path / "store" if stored else None

    async def train() -> None:
        async for _ in collect("mcqa", model=RULES, repeats=3, store=store):
            return

    asyncio.run(train())
    captured = capfd.readouterr()
    assert "Traceback" not in captured.err and "unhandled" not in captured.err
    if stored:
        with connect(store) as connection:
            assert connection.execute("select count(*) from rollouts").fetchone()[0] >= 1
        assert not Store(store).run("latest").being_written
