"""What a rollout's client records, bounds and chains."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gymflow.contracts.model import ModelSpec, Sampling
from gymflow.contracts.outcome import FailureKind, StopReason
from gymflow.contracts.run import Budgets, RunBudget
from gymflow.contracts.trajectory import ModelCall, Usage
from gymflow.errors import RolloutFailure, RunIncomplete, StopEpisode
from gymflow.keys import derived_seed
from gymflow.models import BudgetExhausted, Gateway, Item, ModelClient, ModelRequest, ModelResponse, Spending, TokenIds
from gymflow.models.dialects import message, reasoning
from gymflow.models.scripted import Scripted

Answer = Callable[[ModelRequest], ModelResponse]


def user(text: str) -> Item:
    return {"role": "user", "content": text}


def answer(text: str = "ok", **fields: Any) -> ModelResponse:
    usage = Usage(prompt_tokens=10, completion_tokens=10)
    return ModelResponse([message(text)], "stop", usage, **fields)


def client(reply: Answer, **options: Any) -> ModelClient:
    spec = options.pop("spec", ModelSpec(provider="scripted", model="s"))
    return Gateway({"policy": spec}, providers={"policy": Scripted(spec, answer=reply)}).client("policy", **options)


def history_of(calls: list[ModelCall], index: int) -> list[Item]:
    """What a call saw, put together from what is stored."""
    call = calls[index]
    before = [] if call.parent is None else [*history_of(calls, call.parent), *calls[call.parent].output]
    return before + call.new_input


async def test_a_history_is_stored_once_and_can_be_put_together_again():
    policy = client(lambda request: answer(f"answer {len(request.input)}"))
    history: list[Item] = []
    seen = []
    for turn in range(5):
        history.append(user(f"question {turn}"))
        seen.append(list(history))
        history += (await policy.create(ModelRequest(list(history)), turn=turn)).output
    assert [call.parent for call in policy.calls] == [None, 0, 1, 2, 3]
    assert [len(call.new_input) for call in policy.calls] == [1] * 5
    assert [history_of(policy.calls, index) for index in range(5)] == seen


async def test_bytes_per_turn_do_not_grow_with_the_turn_number():
    def reply(request: ModelRequest) -> ModelResponse:
        prompt = [*(request.exact_prefix or [1]), *[5] * 30]
        return answer("an answer of some length", tokens=TokenIds(prompt, [7] * 20, [-0.25] * 20))

    policy = client(reply)
    history: list[Item] = []
    for turn in range(101):
        history.append(user(f"question number {turn:03}"))
        history += (await policy.create(ModelRequest(list(history)), turn=turn)).output
    size = [len(call.model_dump_json()) for call in policy.calls]
    assert size[100] <= 1.2 * size[10]


async def test_a_history_may_hold_what_json_libraries_refuse():
    policy = client(lambda request: answer("half \ud83d"))
    history = [user("\udc00"), {"role": "user", "content": [{"type": "input_text", "text": str(2**70)}]}]
    tools = [{"type": "function", "name": "f", "parameters": {"maximum": 2**70}}]
    history += (await policy.create(ModelRequest(list(history), tools=tools))).output
    await policy.create(ModelRequest([*history, user("b")], tools=tools))
    assert policy.calls[1].parent == 0


async def test_a_branch_continues_the_call_it_branched_from():
    policy = client(lambda request: answer(f"to {request.input[-1]['content']}"))
    start = [user("a")]
    start += (await policy.create(ModelRequest(list(start)))).output
    await policy.create(ModelRequest([*start, user("b")]))
    await policy.create(ModelRequest([*start, user("c")]))
    await policy.create(ModelRequest([user("something else")]))
    assert [call.parent for call in policy.calls] == [None, 0, 0, None]


async def test_other_instructions_begin_another_history():
    policy = client(lambda request: answer())
    await policy.create(ModelRequest([user("a")], instructions="x"))
    await policy.create(ModelRequest([user("a"), message("ok"), user("b")], instructions="x"))
    await policy.create(ModelRequest([user("a"), message("ok"), user("b")], instructions="y"))
    assert [(call.parent, call.instructions) for call in policy.calls] == [(None, "x"), (0, None), (None, "y")]


async def test_a_history_is_found_again_when_the_client_spells_it_differently():
    """Clients of other dialects send content as a string, leave server fields out, and drop reasoning."""
    policy = client(lambda request: ModelResponse([reasoning("hm"), message("ok") | {"id": "msg_1"}], "stop", Usage()))
    await policy.create(ModelRequest([user("a")]))
    await policy.create(ModelRequest([user("a"), {"role": "assistant", "content": "ok"}, user("b")]))
    assert (policy.calls[1].parent, policy.calls[1].new_input) == (0, [user("b")])


async def test_a_call_is_recorded_with_what_was_asked_and_what_came_back():
    spec = ModelSpec(provider="scripted", model="s", parameters={"price": {"input": 1, "output": 2}})
    policy = client(lambda request: answer(reported_model="s-1", response_id="r"), spec=spec, seed=7)
    tools = [{"type": "function", "name": "f", "parameters": {}}]
    request = ModelRequest([user("a")], tools=tools, sampling=Sampling(temperature=0.0))
    await policy.create(request, invocation=2, turn=1)
    call = policy.calls[0]
    assert call.parameters == {"temperature": 0.0, "seed": derived_seed(7, 0)}
    assert (call.status, call.error_message, call.attempts) == ("ok", None, 1)
    assert (call.invocation, call.turn, call.model, call.reported_model, call.response_id) == (2, 1, "s", "s-1", "r")
    assert call.cost_usd == pytest.approx(3e-5)
    assert call.tools_digest is not None
    assert request.seed is None, "the caller's request is left as it was"


async def test_each_call_of_a_rollout_has_its_own_seed_and_a_rollout_repeats():
    seeds: list[int | None] = []

    def reply(request: ModelRequest) -> ModelResponse:
        seeds.append(request.seed)
        return answer()

    for _ in range(2):
        policy = client(reply, seed=11)
        for _ in range(2):
            await policy.create(ModelRequest([user("a")]))
    await client(reply).create(ModelRequest([user("a")]))
    assert seeds[:2] == seeds[2:4]
    assert seeds[0] != seeds[1]
    assert seeds[4] is None


@pytest.mark.parametrize(
    ("budgets", "reason", "made"),
    [
        (Budgets(max_calls=2), StopReason.CALL_BUDGET, 2),
        (Budgets(max_tokens=50), StopReason.TOKEN_BUDGET, 3),
        (Budgets(max_cost_usd=0.00005), StopReason.COST_BUDGET, 3),
    ],
)
async def test_a_used_up_budget_stops_the_episode_before_the_next_call(budgets: Budgets, reason: StopReason, made: int):
    spec = ModelSpec(provider="scripted", model="s", parameters={"price": {"input": 1, "output": 1}})
    policy = client(lambda request: answer(), spec=spec, budgets=budgets)
    with pytest.raises(StopEpisode) as stop:
        while True:
            await policy.create(ModelRequest([user("a")]))
    assert (stop.value.reason, len(policy.calls)) == (reason, made)


async def test_a_simulated_users_calls_count_as_cost_but_not_as_the_agents_calls():
    spec = ModelSpec(provider="scripted", model="s", parameters={"price": {"input": 1, "output": 1}})
    provider = Scripted(spec, answer=lambda request: answer())
    gateway = Gateway({"policy": spec, "user": spec}, providers={"policy": provider, "user": provider})
    policy = gateway.client("policy", auxiliary={"simulator": "user"}, budgets=Budgets(max_calls=1))
    await policy.create(ModelRequest([user("a")]), role="simulator")
    await policy.create(ModelRequest([user("a")]))
    assert [call.role for call in policy.calls] == ["simulator", "policy"]
    assert policy.calls[1].parent is None, "another role's history is another history"
    assert policy.cost_usd == pytest.approx(4e-5)


async def test_an_unknown_price_is_unknown_and_not_zero():
    policy = client(
        lambda request: answer(), spec=ModelSpec(provider="openai", model="x", base_url="http://127.0.0.1:1")
    )
    await policy.create(ModelRequest([user("a")]))
    assert policy.calls[0].cost_usd is None
    assert policy.cost_usd is None


async def test_token_ids_chain_over_turns_and_are_handed_to_the_provider():
    prefixes: list[tuple[list[int] | None, int]] = []

    def reply(request: ModelRequest) -> ModelResponse:
        prefixes.append((request.exact_prefix, request.prefix_items))
        prompt = [*(request.exact_prefix or [1]), 5]
        return answer(tokens=TokenIds(prompt, [9, 2], [-0.1, -0.2]))

    policy = client(reply)
    history = [user("a")]
    for _ in range(3):
        history += (await policy.create(ModelRequest(list(history)))).output
        history.append(user("b"))
    assert prefixes == [(None, 0), ([1, 5, 9, 2], 2), ([1, 5, 9, 2, 5, 9, 2], 4)]
    stored = [call.tokens for call in policy.calls]
    assert [tokens.chained for tokens in stored if tokens] == [False, True, True]
    assert [tokens.prompt_token_ids for tokens in stored if tokens] == [[1, 5], [5], [5]]
    assert policy.token_ids(2) == [1, 5, 9, 2, 5, 9, 2, 5, 9, 2]


async def test_a_broken_chain_is_located_and_the_whole_prompt_is_kept():
    replies = iter([TokenIds([1, 2], [3], [0.0]), TokenIds([1, 2, 4, 6], [7], [0.0])])
    policy = client(lambda request: answer(tokens=next(replies)))
    history = [user("a")]
    history += (await policy.create(ModelRequest(list(history)))).output
    await policy.create(ModelRequest([*history, user("b")]))
    tokens = policy.calls[1].tokens
    assert tokens is not None
    assert (tokens.chained, tokens.break_at, tokens.prompt_token_ids) == (False, 2, [1, 2, 4, 6])


async def test_other_tools_render_another_prompt_so_no_exact_prefix_is_given():
    seen: list[list[int] | None] = []

    def reply(request: ModelRequest) -> ModelResponse:
        seen.append(request.exact_prefix)
        return answer(tokens=TokenIds([1], [2], [0.0]))

    policy = client(reply)
    request = ModelRequest([user("a")])
    output = (await policy.create(request)).output
    tools = [{"type": "function", "name": "f", "parameters": {}}]
    await policy.create(replace(request, input=[user("a"), *output, user("b")], tools=tools))
    assert seen == [None, None]
    assert policy.calls[1].parent == 0


async def test_context_overflow_is_the_agents_doing_and_keeps_the_words():
    spec = ModelSpec(
        provider="scripted",
        model="s",
        parameters={"rules": [{"error": {"context_overflow": True, "message": "context length 9000 > 8192"}}]},
    )
    policy = Gateway({"policy": spec}).client("policy")
    with pytest.raises(StopEpisode, match="9000 > 8192") as stop:
        await policy.create(ModelRequest([user("a")]))
    assert stop.value.reason is StopReason.CONTEXT_OVERFLOW
    assert policy.calls[0].error_message == "context length 9000 > 8192"


async def test_a_failed_call_stays_in_the_record():
    spec = ModelSpec(provider="scripted", model="s", max_retries=0, parameters={"rules": [{"error": {"status": 500}}]})
    policy = Gateway({"policy": spec}).client("policy")
    with pytest.raises(RolloutFailure) as failure:
        await policy.create(ModelRequest([user("a")]))
    assert failure.value.kind is FailureKind.MODEL_ERROR
    call = policy.calls[0]
    assert (call.status, call.http_status, call.error_message) == ("error", 500, "scripted failure")


async def test_a_call_that_is_cut_off_is_recorded_as_such_and_gives_its_slot_back():
    async def never(request: ModelRequest) -> ModelResponse:
        await asyncio.sleep(60)
        raise AssertionError

    spec = ModelSpec(provider="scripted", model="s", concurrency=1)
    gateway = Gateway({"policy": spec}, providers={"policy": Scripted(spec, answer=never)})
    policy = gateway.client("policy")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await policy.create(ModelRequest([user("a")]))
    assert (policy.calls[0].status, policy.calls[0].attempts) == ("error", 1)
    assert gateway["policy"].limiter.in_flight == 0


async def test_secret_values_do_not_reach_the_record(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MODEL_KEY", "value-of-the-key")
    spec = ModelSpec(provider="scripted", model="s", api_key="${env:MODEL_KEY}")
    provider = Scripted(spec, answer=lambda request: answer("you sent value-of-the-key"))
    policy = Gateway({"policy": spec}, providers={"policy": provider}).client("policy")
    response = await policy.create(ModelRequest([user("echo value-of-the-key")]))
    assert "value-of-the-key" not in policy.calls[0].model_dump_json()
    follow_up = [user("echo value-of-the-key"), *response.output, user("b")]
    await policy.create(ModelRequest(follow_up))
    assert policy.calls[1].parent == 0, "histories are compared before they are redacted"


@pytest.mark.parametrize("bound", ["rollout", "run"])
@pytest.mark.parametrize(("limit", "words"), [("max_tokens", "report usage"), ("max_cost_usd", "is not known")])
async def test_a_budget_on_what_is_not_counted_is_not_kept_silently(bound: str, limit: str, words: str):
    spec = ModelSpec(provider="scripted", model="s", parameters={"price": {"input": 1, "output": 1}})
    provider = Scripted(spec, answer=lambda request: ModelResponse([message("a")], "stop", Usage()))
    budget = {limit: 1}
    spending = Spending(RunBudget(**budget)) if bound == "run" else None
    gateway = Gateway({"policy": spec}, providers={"policy": provider}, spending=spending)
    policy = gateway.client("policy", budgets=Budgets() if bound == "run" else Budgets(**budget))
    with pytest.raises(RunIncomplete, match=words):
        await policy.create(ModelRequest([user("a")]))
    assert len(policy.calls) == 1, "the run ends with the first such call"


async def test_a_prompt_that_was_refused_has_nothing_to_count():
    refused = client(lambda request: ModelResponse([], "content_filter", Usage()), budgets=Budgets(max_tokens=9))
    assert (await refused.create(ModelRequest([user("a")]))).finish_reason == "content_filter"


async def test_an_answer_that_nobody_foresaw_is_a_failed_call_and_never_a_good_one():
    broken: Any = object()
    policy = client(lambda request: ModelResponse([message("a")], "stop", broken))
    with pytest.raises(RolloutFailure, match="the call broke the gateway") as failure:
        await policy.create(ModelRequest([user("a")]))
    assert failure.value.kind is FailureKind.MODEL_ERROR
    assert (policy.calls[0].status, policy.calls[0].error_kind) == ("error", FailureKind.MODEL_ERROR)


async def test_all_clients_count_in_one_run_budget_and_a_judge_is_only_counted():
    spec = ModelSpec(provider="scripted", model="s")
    provider = Scripted(spec, answer=lambda request: answer())
    gateway = Gateway({"policy": spec}, providers={"policy": provider}, spending=Spending(RunBudget(max_calls=2)))
    for _ in range(2):
        await gateway.client("policy").create(ModelRequest([user("a")]))
    with pytest.raises(BudgetExhausted, match="2 of 2 model calls"):
        await gateway.client("policy").create(ModelRequest([user("a")]))
    judge = gateway.client("policy", auxiliary={"judge": "policy"})
    await judge.create(ModelRequest([user("a")]), role="judge")
    assert gateway.spending.calls == 3
