"""Requests share a batch without noticing each other."""

import random

import numpy as np
import pytest

from gymflow.models.embedded.engine import ContextOverflow, Engine, Generation, GenerationRequest
from gymflow.models.embedded.transformer import PREFILL_TOKENS


def run(transformer, requests, max_batch=64) -> list[Generation]:
    engine = Engine(transformer, max_batch=max_batch)
    active = [engine.submit(request) for request in requests]
    while not engine.idle:
        engine.step()
    return [a.result() for a in active]


def mixed_requests(count: int) -> list[GenerationRequest]:
    rng = random.Random(1)
    return [
        GenerationRequest(
            [rng.randrange(512) for _ in range(rng.choice([1, 5, 20, 61]))],
            max_tokens=rng.choice([1, 4, 8]),
            temperature=rng.choice([0.0, 0.7, 1.0]),
            top_p=rng.choice([0.9, 1.0]),
            seed=seed,
        )
        for seed in range(count)
    ]


def test_a_request_gets_the_same_tokens_and_log_probabilities_alone_and_in_any_batch(transformer):
    requests = mixed_requests(16)
    alone = [run(transformer, [request])[0] for request in requests]
    assert run(transformer, requests, max_batch=16) == alone
    assert run(transformer, requests[::-1], max_batch=5) == alone[::-1]


def test_a_request_that_joins_a_running_batch_gets_the_same(transformer):
    first, second = mixed_requests(2)
    first = GenerationRequest(first.prompt_token_ids, max_tokens=30, seed=1)
    engine = Engine(transformer)
    running = engine.submit(first)
    for _ in range(5):
        engine.step()
    joined = engine.submit(second)
    while not engine.idle:
        engine.step()
    assert [running.result(), joined.result()] == [run(transformer, [r])[0] for r in (first, second)]


def test_the_seed_decides(transformer):
    def sample(seed: int | None) -> list[int]:
        return run(transformer, [GenerationRequest([5, 6, 7], max_tokens=30, temperature=2.0, seed=seed)])[0].token_ids

    assert sample(7) == sample(7)
    assert len({tuple(sample(seed)) for seed in (1, -1, 2, None)}) == 4


@pytest.mark.parametrize("prompt_tokens", [1, 62, PREFILL_TOKENS + 1])
def test_log_probabilities_are_those_of_the_model_given_all_before(transformer, prompt_tokens):
    """Each step's log-probability equals a fresh pass over prompt and completion, also where the cache grows."""
    prompt = [random.Random(prompt_tokens).randrange(512) for _ in range(prompt_tokens)]
    generation = run(transformer, [GenerationRequest(prompt, max_tokens=4, seed=0)])[0]
    for index, (token, logprob) in enumerate(zip(generation.token_ids, generation.logprobs, strict=True)):
        ids = prompt + generation.token_ids[:index]
        pool = transformer.new_pool(transformer.capacity(len(ids)))
        logits = transformer.prefill(ids, pool, pool.add()).astype(float)
        assert np.isclose(logprob, logits[token] - np.log(np.exp(logits).sum()), atol=1e-4)


def test_generation_ends_after_a_stop_token_or_at_the_limit(transformer):
    free = run(transformer, [GenerationRequest([5, 6, 7], max_tokens=8, seed=3)])[0]
    assert (len(free.token_ids), len(free.logprobs), free.finish_reason) == (8, 8, "length")
    stop = free.token_ids[2]
    stopped = run(transformer, [GenerationRequest([5, 6, 7], max_tokens=8, seed=3, stop_token_ids=[stop])])[0]
    assert stopped.token_ids == free.token_ids[: free.token_ids.index(stop) + 1]
    assert stopped.finish_reason == "stop"


def test_without_a_limit_the_context_is_filled_to_its_end(transformer):
    context = transformer.config.max_position_embeddings
    generation = run(transformer, [GenerationRequest([5] * (context - 3), seed=0)])[0]
    assert (len(generation.token_ids), generation.finish_reason) == (3, "length")


def test_a_prompt_that_fills_the_context_is_refused(transformer):
    context = transformer.config.max_position_embeddings
    with pytest.raises(ContextOverflow, match=f"{context + 5} tokens"):
        Engine(transformer).submit(GenerationRequest([5] * (context + 5)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompt_token_ids": []},
        {"prompt_token_ids": [512]},
        {"prompt_token_ids": [-1]},
        {"max_tokens": 0},
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"top_p": 0.0},
        {"top_p": 1.5},
    ],
    ids=str,
)
def test_senseless_parameters_are_refused(transformer, wrong):
    with pytest.raises(ValueError):
        Engine(transformer).submit(GenerationRequest(**{"prompt_token_ids": [5], **wrong}))


def test_a_cancelled_request_leaves_the_others_as_they_were(transformer):
    requests = mixed_requests(6)
    engine = Engine(transformer, max_batch=4)
    active = [engine.submit(request) for request in requests]
    engine.step()
    engine.cancel(active[0])
    engine.cancel(active[5])
    while not engine.idle:
        engine.step()
    assert [a.result() for a in active[1:5]] == [run(transformer, [r])[0] for r in requests[1:5]]
