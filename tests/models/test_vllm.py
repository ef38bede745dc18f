"""Exact ids on servers that retokenise, and replicas that die.

The stand-in renders and tokenises as vLLM's chat endpoint does, with the trait that makes exact ids necessary: its model samples
`a`, `b` as two tokens, while the tokeniser writes the text `ab` as one.
"""

import asyncio
import re
from typing import Any

import pytest
from aiohttp import web

from gymflow.contracts.model import ModelSpec
from gymflow.contracts.outcome import FailureKind
from gymflow.errors import InputError, RolloutFailure
from gymflow.models import EndpointDown, Gateway, Item, ModelClient, ModelRequest
from gymflow.models.providers import make_provider

END, AB = 1, 2


def tokenise(text: str) -> list[int]:
    return [
        AB if piece == "ab" else END if piece == "\x03" else 100 + ord(piece)
        for piece in re.findall("ab|.", text, re.S)
    ]


def render(messages: list[dict[str, Any]], generation_prompt: bool) -> list[int]:
    text = "".join(f"<{message['role']}>{message['content'] or ''}\x03\n" for message in messages)
    return tokenise(text + ("<assistant>" if generation_prompt else ""))


def written(token: int) -> str:
    return {AB: "ab", END: "\x03"}.get(token) or chr(token - 100)


class FakeVllm:
    """One server. `honours` is off for a version that ignores the exact prompt."""

    def __init__(
        self, *, honours: bool = True, cut: bool = False, tokenizes: bool = True, silent: tuple[int, ...] = ()
    ) -> None:
        """`silent`: the calls, from 1, that are answered with nothing."""
        self.honours, self.cut, self.tokenizes, self.silent = honours, cut, tokenizes, silent
        self.calls: list[dict[str, Any]] = []
        self.ranks: list[str | None] = []
        self.down = False

    async def answer(self, request: web.Request) -> web.Response:
        if self.down:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if request.method == "GET":
            return web.json_response({"data": [{"id": "m"}]})
        body = await request.json()
        if request.path in ("/tokenize", "/detokenize") and not self.tokenizes:
            raise web.HTTPNotFound
        if request.path == "/detokenize":
            return web.json_response({"prompt": "|".join(written(token) for token in body["tokens"])})
        if request.path == "/tokenize":
            return web.json_response({"tokens": render(body["messages"], body["add_generation_prompt"])})
        self.calls.append(body)
        self.ranks.append(request.headers.get("x-data-parallel-rank"))
        prompt = render(body["messages"], True)
        given = (body.get("kv_transfer_params") or {}).get("prompt_token_ids")
        if given and self.honours:
            prompt = given
        said = "" if len(self.calls) in self.silent else "ab"
        sampled = [*(100 + ord(letter) for letter in said), *([] if self.cut else [END])]
        choice = {
            "message": {"role": "assistant", "content": said},
            "finish_reason": "length" if self.cut else "stop",
            "token_ids": sampled,
            "logprobs": {"content": [{"logprob": -0.5}] * len(sampled)},
        }
        return web.json_response({"model": "m", "choices": [choice], "prompt_token_ids": prompt, "usage": {}})


async def converse(policy: ModelClient, turns: int) -> None:
    history: list[Item] = []
    for turn in range(turns):
        history.append({"role": "user", "content": f"question {turn}"})
        history += (await policy.create(ModelRequest(list(history)))).output


def vllm(url: str, **parameters: Any) -> ModelSpec:
    return ModelSpec(provider="vllm", model="m", base_url=url, max_retries=1, parameters=parameters)


async def test_ids_are_exact_over_ten_turns_where_plain_history_drifts(serve):
    server = FakeVllm()
    async with Gateway({"policy": vllm(await serve(server.answer))}) as gateway:
        policy = gateway.client("policy")
        await converse(policy, 10)
    assert [call.tokens.chained for call in policy.calls if call.tokens] == [False] + [True] * 9
    last = server.calls[-1]
    ids = policy.token_ids(9)
    assert ids is not None
    assert ids[: len(last["kv_transfer_params"]["prompt_token_ids"])] == last["kv_transfer_params"]["prompt_token_ids"]
    assert render(last["messages"], True) != last["kv_transfer_params"]["prompt_token_ids"]
    assert AB not in ids, "what was sampled as two tokens is never one"


@pytest.mark.parametrize("server", [FakeVllm(honours=False), FakeVllm(tokenizes=False)], ids=["ignores ids", "old"])
async def test_a_server_that_cannot_be_exact_shows_as_breaks(serve, server):
    async with Gateway({"policy": vllm(await serve(server.answer))}) as gateway:
        policy = gateway.client("policy")
        await converse(policy, 3)
    stored = [call.tokens for call in policy.calls if call.tokens]
    assert [tokens.chained for tokens in stored] == [False, False, False]
    first_turn = stored[0].prompt_token_ids
    assert stored[1].break_at == len(first_turn), "the break is where the sampled text begins"
    texts = (stored[1].break_before, stored[1].break_after)
    if not server.tokenizes:
        assert texts == (None, None)
    else:
        assert (texts[0] or "").endswith("|a|b|\x03"), "what was sampled"
        assert "|ab|\x03" in (texts[1] or ""), "what the server made of it"


async def test_a_completion_that_was_cut_is_closed_before_the_next_turn(serve):
    server = FakeVllm()
    async with Gateway({"policy": vllm(await serve(server.answer))}) as gateway:
        await converse(gateway.client("policy"), 1)
        server.cut = True
        policy = gateway.client("policy")
        await converse(policy, 3)
    assert [call.tokens.chained for call in policy.calls if call.tokens] == [False, True, True]


async def test_an_answer_of_nothing_breaks_no_chain(serve):
    server = FakeVllm(silent=(2, 3))
    async with Gateway({"policy": vllm(await serve(server.answer))}) as gateway:
        policy = gateway.client("policy")
        await converse(policy, 5)
    assert [call.tokens.completion_token_ids for call in policy.calls if call.tokens][1:3] == [[END], [END]]
    assert [call.tokens.chained for call in policy.calls if call.tokens] == [False] + [True] * 4


async def test_a_rollout_stays_with_its_replica_and_moves_when_it_dies(serve):
    servers = [FakeVllm(), FakeVllm(), FakeVllm()]
    urls = [await serve(server.answer) for server in servers]
    async with Gateway({"policy": vllm(urls[0], replicas=urls[1:])}) as gateway:
        clients = [gateway.client("policy") for _ in range(30)]
        await asyncio.gather(*(converse(policy, 3) for policy in clients))
        spread = [len(server.calls) for server in servers]
        assert all(count % 3 == 0 for count in spread), "three turns of a rollout went to one server"
        assert all(spread)
        servers[0].down = True
        await asyncio.gather(*(converse(policy, 1) for policy in clients))
        assert sum(len(server.calls) for server in servers) == 120
        assert len(servers[0].calls) == spread[0]


async def test_only_when_all_replicas_are_dead_the_model_is(serve):
    servers = [FakeVllm(), FakeVllm()]
    urls = [await serve(server.answer) for server in servers]
    for server in servers:
        server.down = True
    async with Gateway({"policy": vllm(urls[0], replicas=urls[1:])}, unreachable_s=0.1) as gateway:
        with pytest.raises(EndpointDown):
            await converse(gateway.client("policy"), 1)


async def test_engines_behind_one_server_are_chosen_by_rollout(serve):
    server = FakeVllm()
    async with Gateway({"policy": vllm(await serve(server.answer), data_parallel_size=2)}) as gateway:
        for _ in range(2):
            await converse(gateway.client("policy"), 2)
    assert sorted(server.ranks) == ["0", "0", "1", "1"]
    assert server.ranks[0] == server.ranks[1]


def test_a_server_has_to_be_named():
    with pytest.raises(InputError, match="needs `base_url`"):
        make_provider(ModelSpec(provider="vllm", model="m"))


def given_ids(**changed: Any) -> Any:
    """A server whose answer is sound but for what is changed."""
    choice = {"message": {"role": "assistant", "content": "ab"}, "finish_reason": "stop", "token_ids": [5, END]}
    choice |= {"logprobs": {"content": [{"logprob": value} for value in changed.pop("logprobs", [-0.5, -0.1])]}}
    answer = {"id": "c", "model": "m", "prompt_token_ids": [1, 2], "usage": {}}
    rendered = changed.pop("rendered", {"tokens": [1, 2]})

    async def handler(request: web.Request) -> web.Response:
        if request.path == "/tokenize":
            return web.json_response(rendered)
        whole = answer | {name: value for name, value in changed.items() if name != "token_ids"}
        whole["choices"] = [choice | ({"token_ids": changed["token_ids"]} if "token_ids" in changed else {})]
        return web.json_response(whole)

    return handler


@pytest.mark.parametrize(
    "changed",
    [{"token_ids": [5, odd]} for odd in ("a", None, 1.5, True, -1, 2**31, [1])]
    + [{"prompt_token_ids": [[1, 2]]}, {"prompt_token_ids": ["1", "2"]}]
    + [{"logprobs": [odd, -0.1]} for odd in (5.0, float("nan"), float("-inf"), "x", True, [0])],
    ids=repr,
)
async def test_ids_and_log_probabilities_that_are_none_fail_the_call(serve, changed):
    async with Gateway({"policy": vllm(await serve(given_ids(**changed)))}) as gateway:
        policy = gateway.client("policy")
        with pytest.raises(RolloutFailure, match=r"is no (token id|log-probability)") as failed:
            await converse(policy, 1)
    assert failed.value.kind is FailureKind.MODEL_ERROR
    assert [(call.status, call.attempts, call.tokens) for call in policy.calls] == [("error", 1, None)]


@pytest.mark.parametrize("rendered", [{"count": 3}, {"tokens": "abc"}, {"tokens": [None]}], ids=repr)
async def test_a_rendering_without_token_ids_fails_the_call(serve, rendered):
    async with Gateway({"policy": vllm(await serve(given_ids(rendered=rendered)))}) as gateway:
        with pytest.raises(RolloutFailure, match=r"/tokenize: .*token id") as failed:
            await converse(gateway.client("policy"), 2)
    assert failed.value.kind is FailureKind.MODEL_ERROR


@pytest.mark.parametrize(("given", "kept"), [(7, "7"), ("step-7", "step-7"), (None, "mine"), ([7], "mine")])
async def test_a_weight_version_may_be_a_number(serve, given, kept):
    handler = given_ids(weight_version=given, logprobs=[None, 1e-7])
    async with Gateway({"policy": vllm(await serve(handler), weight_version="mine")}) as gateway:
        policy = gateway.client("policy")
        await converse(policy, 1)
    tokens = policy.calls[0].tokens
    assert tokens is not None
    assert (tokens.weight_version, tokens.logprobs) == (kept, [None, 0.0])
