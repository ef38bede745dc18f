"""The embedded model through the gateway: exact ids over every turn, and the same answers whenever a rollout is repeated."""

from pathlib import Path

import pytest

from gymflow.contracts.model import ModelSpec, Sampling
from gymflow.contracts.outcome import StopReason
from gymflow.errors import InputError, RolloutFailure, StopEpisode
from gymflow.models import Gateway, Item, ModelClient, ModelRequest
from gymflow.models.providers import make_provider

TOOLS = [
    {
        "type": "function",
        "name": "calculate",
        "parameters": {"type": "object", "properties": {"a": {}, "op": {}, "b": {}}},
    },
    {"type": "function", "name": "no_schema"},
]
SHORT = Sampling(max_output_tokens=24)


async def conversation(policy: ModelClient, turns: int, sampling: Sampling = SHORT) -> list[Item]:
    """A tool conversation whose history is whatever the model says."""
    history: list[Item] = [{"role": "user", "content": "What is 12 + 34?"}]
    for turn in range(turns):
        response = await policy.create(ModelRequest(list(history), tools=TOOLS, sampling=sampling), turn=turn)
        history += response.output
        calls = [item for item in response.output if item["type"] == "function_call"]
        history += [{"type": "function_call_output", "call_id": call["call_id"], "output": "46"} for call in calls]
        history.append({"role": "user", "content": f"And {turn} + 5?"})
    return history


async def test_ids_are_exact_over_a_tool_conversation_of_ten_turns():
    async with Gateway({"policy": ModelSpec(provider="embedded")}) as gateway:
        policy = gateway.client("policy", seed=5)
        await conversation(policy, 10)
        stored = [call.tokens for call in policy.calls]
        assert [tokens.chained for tokens in stored if tokens] == [False] + [True] * 9
        for call in policy.calls:
            ids = policy.token_ids(call.index)
            assert ids is not None
            assert call.tokens is not None
            assert len(ids) == (call.usage.prompt_tokens or 0) + (call.usage.completion_tokens or 0)
            assert len(call.tokens.logprobs) == len(call.tokens.completion_token_ids)
            assert all(logprob is not None and logprob <= 0 for logprob in call.tokens.logprobs)


async def test_a_rollout_with_a_seed_repeats_word_for_word():
    async with Gateway({"policy": ModelSpec(provider="embedded")}) as gateway:
        hot = Sampling(max_output_tokens=24, temperature=2.0)  # at 1 the model is sure of this, whatever the seed
        first, again, other = [await conversation(gateway.client("policy", seed=seed), 3, hot) for seed in (1, 1, 2)]
    assert first == again != other


async def test_a_history_that_fills_the_context_stops_the_episode():
    async with Gateway({"policy": ModelSpec(provider="embedded")}) as gateway:
        with pytest.raises(StopEpisode, match="no room to answer") as stop:
            await gateway.client("policy").create(ModelRequest([{"role": "user", "content": "1 + 1 " * 2000}]))
    assert stop.value.reason is StopReason.CONTEXT_OVERFLOW


async def test_sampling_that_it_does_not_know_is_refused_and_not_ignored():
    async with Gateway({"policy": ModelSpec(provider="embedded")}) as gateway:
        request = ModelRequest([{"role": "user", "content": "hi"}], sampling=Sampling(top_k=5, stop=["x"]))
        with pytest.raises(RolloutFailure, match="cannot sample with top_k, stop"):
            await gateway.client("policy").create(request)


def test_its_identity_is_pinned_before_it_is_opened(tmp_path: Path):
    assert make_provider(ModelSpec(provider="embedded")).identity().pinned
    with pytest.raises(InputError, match="cannot be loaded"):
        make_provider(ModelSpec(provider="embedded", parameters={"path": str(tmp_path)})).identity()
    with pytest.raises(InputError, match="no parameter 'batch'"):
        make_provider(ModelSpec(provider="embedded", parameters={"batch": 3}))


async def test_a_break_shows_what_the_ids_say_on_both_sides():
    async with Gateway({"policy": ModelSpec(provider="embedded")}) as gateway:
        policy = gateway.client("policy", seed=5)
        history: list[Item] = [{"role": "user", "content": "What is 12 + 34?"}]
        history += (await policy.create(ModelRequest(list(history), tools=TOOLS, sampling=SHORT))).output
        history.append({"role": "user", "content": "And 1 + 5?"})
        await policy.create(ModelRequest(history, tools=TOOLS[1:], sampling=SHORT))
        tokens = policy.calls[1].tokens
    assert tokens is not None
    assert not tokens.chained
    assert "calculate" in (tokens.break_before or "")
    assert "no_schema" in (tokens.break_after or "")
