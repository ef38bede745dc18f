"""Many coroutines share the embedded model; each can leave at any time."""

import asyncio

import pytest

from gymflow.models.embedded import ContextOverflow, EmbeddedModel, GenerationRequest, parse_reply
from gymflow.models.embedded.engine import Engine


@pytest.fixture
async def model():
    model = EmbeddedModel.load(max_batch=8)
    yield model
    await model.close()


def request(seed: int = 0, max_tokens: int = 10) -> GenerationRequest:
    return GenerationRequest([5, 6, 7], max_tokens=max_tokens, seed=seed)


async def test_many_callers_get_what_each_would_get_alone(model):
    together = await asyncio.gather(*(model.generate(request(seed)) for seed in range(40)))
    assert [await model.generate(request(seed)) for seed in range(40)] == together


async def test_cancelling_a_caller_frees_its_place(model):
    long = [asyncio.create_task(model.generate(request(seed, max_tokens=1900))) for seed in range(8)]
    await asyncio.sleep(0.05)
    for task in long:
        task.cancel()
    async with asyncio.timeout(2):
        await model.generate(request())
    assert all(task.cancelled() for task in await asyncio.wait(long) and long)


async def test_a_prompt_that_is_too_long_is_refused_before_it_is_queued(model):
    with pytest.raises(ContextOverflow):
        await model.generate(GenerationRequest([5] * model.context_tokens))


async def test_closing_cancels_what_runs_and_the_model_can_be_used_again(model):
    running = asyncio.create_task(model.generate(request(max_tokens=1900)))
    await asyncio.sleep(0.05)
    await model.close()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len((await model.generate(request())).token_ids) == 10


async def test_a_fault_in_the_engine_reaches_the_callers(model, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "step", lambda self: 1 / 0)
        outcomes = await asyncio.gather(*(model.generate(request(i)) for i in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ZeroDivisionError] * 3
    assert len((await model.generate(request())).token_ids) == 10


def test_one_model_serves_one_event_loop_after_another():
    model = EmbeddedModel.load()
    first = asyncio.run(model.generate(request()))
    assert asyncio.run(model.generate(request())) == first
    asyncio.run(model.close())


def test_the_identity_names_the_exact_weights(random_checkpoint):
    shipped, other = EmbeddedModel.load(), EmbeddedModel.load(random_checkpoint)
    assert shipped.identity.model == other.identity.model == "embedded"
    assert shipped.identity.pinned
    assert shipped.identity.revision != other.identity.revision


async def test_exact_ids_survive_turns_in_which_retokenising_would_change_them(random_checkpoint):
    """Random weights write text that no tokenizer would split as they did; the next prompt keeps their tokens."""
    model = EmbeddedModel.load(random_checkpoint)
    tokens = model.tokenizer
    prompt = tokens.encode_chat([{"role": "user", "content": "What is 3 + 4?"}])
    generation = await model.generate(GenerationRequest(prompt, max_tokens=30, seed=1))
    said = {"role": "assistant", "content": tokens.decode(generation.token_ids)}
    question = {"role": "user", "content": "And 5 + 6?"}
    rendered_again = tokens.encode_chat([{"role": "user", "content": "What is 3 + 4?"}, said, question])
    exact = tokens.extend(prompt, generation.token_ids, [question])
    past = prompt + generation.token_ids
    assert exact[: len(past)] == past
    assert rendered_again[: len(past)] != past
    await model.close()


async def test_the_shipped_model_answers_and_calls_the_calculator(model):
    tokens = model.tokenizer
    user = {"role": "user", "content": "What is 21 + 34?"}
    parameters = {"properties": {"a": {}, "op": {}, "b": {}}}
    tools = [{"type": "function", "function": {"name": "calculate", "parameters": parameters}}]

    async def say(prompt: list[int]) -> list[int]:
        stop = [tokens.stop_token_id]
        return (await model.generate(GenerationRequest(prompt, 64, temperature=0.0, stop_token_ids=stop))).token_ids

    answered = await say(tokens.encode_chat([user]))
    assert tokens.decode(answered).endswith("Answer: 55")
    prompt = tokens.encode_chat([user], tools)
    called = await say(prompt)
    (call,) = parse_reply(tokens.decode(called)).tool_calls
    assert (call.name, call.arguments) == ("calculate", '{"a": 21, "op": "+", "b": 34}')
    concluded = await say(tokens.extend(prompt, called, [{"role": "tool", "content": "55"}]))
    assert tokens.decode(concluded) == "Answer: 55"
