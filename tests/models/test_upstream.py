"""Retries, bounds and dead endpoints, against servers that misbehave."""

import asyncio
import itertools
import time

import pytest
from aiohttp import web

from gymflow.contracts.model import ModelSpec
from gymflow.contracts.outcome import FailureKind, StopReason
from gymflow.errors import InputError, RolloutFailure, StopEpisode
from gymflow.models import EndpointDown, Gateway, ModelRequest
from gymflow.models import limiter as limiter_module
from gymflow.models import upstream as upstream_module
from tests.models.conftest import chat_answer
from tests.support.cases import fault

ASK = [{"role": "user", "content": "2 + 2?"}]


@pytest.fixture(autouse=True)
def quick_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_module, "BACKOFF_BASE_S", 0.002)


async def ask(spec: ModelSpec, **options):
    async with Gateway({"policy": spec}, **options) as gateway:
        policy = gateway.client("policy")
        try:
            return await policy.create(ModelRequest(ASK)), policy.calls[0]
        except RolloutFailure as failure:
            return failure, policy.calls[0]


async def test_a_passing_failure_is_retried(serve, spec):
    statuses = iter([500, 429, 200])

    async def handler(request):
        return web.json_response(chat_answer(), status=next(statuses))

    response, call = await ask(spec(await serve(handler)))
    assert (response.output[0]["content"][0]["text"], call.attempts, call.status, call.error_kind) == (
        "4",
        3,
        "ok",
        None,
    )


async def test_neither_errors_nor_refusals_are_ever_answered_from_memory(serve, spec):
    """Cases ca-errors-not-cached and mc-refusal-cached: the same request reaches the model each time."""
    answers = iter(
        [
            ({"error": {"message": "boom"}}, 400),
            ({"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}, 200),
            (chat_answer(), 200),
        ]
    )

    async def handler(request):
        body, status = next(answers)
        return web.json_response(body, status=status)

    base_url = await serve(handler)
    failure, _ = await ask(spec(base_url))
    assert isinstance(failure, RolloutFailure)
    assert (await ask(spec(base_url)))[0].finish_reason == "content_filter"
    assert (await ask(spec(base_url)))[0].finish_reason == "stop"


async def test_an_answer_without_choices_is_a_provider_error_if_it_persists(serve, spec):
    """Case mc-empty-choices."""

    async def handler(request):
        return web.json_response({"id": "x", "choices": [], "usage": {"total_tokens": 0}})

    failure, call = await ask(spec(await serve(handler)))
    assert isinstance(failure, RolloutFailure)
    assert (failure.kind, call.attempts) == (FailureKind.MODEL_ERROR, 3)


async def test_429_for_ever_ends_within_the_retries_and_frees_the_slot(serve, spec):  # mc-429-forever
    asked = itertools.count()

    async def handler(request):
        next(asked)
        return web.json_response({"error": {"message": "slow down"}}, status=429)

    base_url = await serve(handler)
    async with Gateway({"policy": spec(base_url, max_retries=5, concurrency=1)}) as gateway:
        policy = gateway.client("policy")
        with pytest.raises(RolloutFailure, match="slow down") as failure:
            await policy.create(ModelRequest(ASK))
        assert failure.value.kind is FailureKind.MODEL_RATE_LIMITED
        assert (policy.calls[0].attempts, next(asked)) == (6, 6)
        assert gateway["policy"].limiter.in_flight == 0


async def test_retry_after_is_honoured_by_every_rollout(serve, spec):
    times = []

    async def handler(request):
        times.append(time.monotonic())
        if len(times) == 1:
            return web.json_response({}, status=429, headers={"retry-after-ms": "150"})
        return web.json_response(chat_answer())

    async with Gateway({"policy": spec(await serve(handler))}) as gateway:
        first = asyncio.create_task(gateway.client("policy").create(ModelRequest(ASK)))
        await asyncio.sleep(0.05)
        await gateway.client("policy").create(ModelRequest(ASK))
        await first
    assert all(later - times[0] >= 0.15 for later in times[1:])


async def test_a_wait_that_the_deadline_does_not_allow_is_not_begun(serve, spec):
    async def handler(request):
        return web.json_response({}, status=503, headers={"retry-after": "60"})

    began = time.monotonic()
    failure, call = await ask(spec(await serve(handler), timeout_s=5))
    assert isinstance(failure, RolloutFailure)
    assert (failure.kind, call.attempts) == (FailureKind.MODEL_RATE_LIMITED, 1)
    assert time.monotonic() - began < 2


async def test_an_endpoint_that_says_not_before_tomorrow_fails_calls_in_its_own_words_and_is_asked_again(
    serve, spec, monkeypatch
):
    monkeypatch.setattr(limiter_module, "CLOSED_AT_MOST_S", 1.0)
    monkeypatch.setattr(upstream_module, "TOLD_FROM_S", 0.1)
    answers = iter([429])

    async def handler(request):
        if next(answers, None):
            body = {"error": {"message": "daily limit"}}
            return web.json_response(body, status=429, headers={"retry-after": "86400"})
        return web.json_response(chat_answer())

    base_url = await serve(handler)
    async with Gateway({"policy": spec(base_url, timeout_s=5)}) as gateway:
        began = time.monotonic()
        policy = gateway.client("policy")
        with pytest.raises(RolloutFailure, match="daily limit") as failure:
            await policy.create(ModelRequest(ASK))
        assert failure.value.kind is FailureKind.MODEL_RATE_LIMITED
        assert policy.calls[0].http_status == 429
        assert time.monotonic() - began < 1.0
        assert "daily limit" in gateway.waiting_for["policy"]
        await gateway.client("policy").create(ModelRequest(ASK))
        assert 1.0 <= time.monotonic() - began < 3, "after a bounded time it is asked again"
        assert gateway.waiting_for == {}


async def test_a_call_whose_deadline_lies_within_the_pause_does_not_wait_for_it(serve, spec):
    async def handler(request):
        body = {"error": {"message": "daily limit"}}
        return web.json_response(body, status=429, headers={"retry-after": "86400"})

    began = time.monotonic()
    async with Gateway({"policy": spec(await serve(handler), timeout_s=5)}) as gateway:
        for _ in range(4):
            policy = gateway.client("policy")
            with pytest.raises(RolloutFailure, match="daily limit") as failure:
                await policy.create(ModelRequest(ASK))
            assert failure.value.kind is policy.calls[0].error_kind is FailureKind.MODEL_RATE_LIMITED
            assert "daily limit" in policy.calls[0].error_message
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("status", [402, 403, 404])
async def test_requests_that_are_refused_one_by_one_do_not_end_the_run(serve, spec, status):
    """One rollout asks for a file that is not there, again and again; the others are answered."""

    async def handler(request):
        if "the file" in await request.text():
            return web.json_response({"error": {"message": "file not found"}}, status=status)
        return web.json_response(chat_answer())

    async with Gateway({"policy": spec(await serve(handler))}) as gateway:
        for _ in range(25):
            with pytest.raises(RolloutFailure, match="file not found"):
                await gateway.client("policy").create(ModelRequest([{"role": "user", "content": "read the file"}]))
        assert (await gateway.client("policy").create(ModelRequest(ASK))).finish_reason == "stop"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_what_repeating_cannot_cure_is_not_repeated(serve, spec, status):
    async def handler(request):
        return web.json_response({"error": {"message": "no such thing"}}, status=status)

    failure, call = await ask(spec(await serve(handler), max_retries=5), unreachable_s=0.1)
    assert isinstance(failure, RolloutFailure)
    assert (failure.kind, call.attempts) == (FailureKind.MODEL_ERROR, 1)
    assert "no such thing" in failure.message


async def test_a_silent_server_times_out_and_the_others_are_answered(serve, spec):
    async def handler(request):
        if (await request.json())["messages"][0]["content"] == "3":
            await asyncio.sleep(5)
        return web.json_response(chat_answer())

    async with Gateway({"policy": spec(await serve(handler), timeout_s=0.3, max_retries=0)}) as gateway:
        requests = [ModelRequest([{"role": "user", "content": str(number)}]) for number in range(5)]
        calls = [gateway.client("policy").create(request) for request in requests]
        answers = await asyncio.gather(*calls, return_exceptions=True)
    failures = [answer for answer in answers if isinstance(answer, RolloutFailure)]
    assert [failure.kind for failure in failures] == [FailureKind.MODEL_TIMEOUT]
    assert len(answers) == 5


async def test_the_time_limit_is_each_calls_own(serve, spec):  # mc-session-total-timeout
    async def handler(request):
        await asyncio.sleep(0.02)
        return web.json_response(chat_answer())

    async with Gateway({"policy": spec(await serve(handler), timeout_s=0.5, concurrency=1)}) as gateway:
        policy = gateway.client("policy")
        for _ in range(50):
            await policy.create(ModelRequest(ASK))
    assert [call.status for call in policy.calls] == ["ok"] * 50


async def test_a_dead_endpoint_ends_the_run_without_failing_rollouts(unused_tcp_port, spec):
    url = f"http://127.0.0.1:{unused_tcp_port}/v1"
    began = time.monotonic()
    async with Gateway({"policy": spec(url, max_retries=0)}, unreachable_s=0.3) as gateway:
        calls = [gateway.client("policy").create(ModelRequest(ASK)) for _ in range(8)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        with pytest.raises(EndpointDown):
            await gateway.client("policy").create(ModelRequest(ASK))
    assert [type(outcome) for outcome in outcomes] == [EndpointDown] * 8
    assert url in str(outcomes[0])
    assert 0.3 <= time.monotonic() - began < 3


async def test_an_endpoint_that_comes_back_goes_on_where_it_was(serve, spec):
    dead = True
    asked = itertools.count()

    async def handler(request):
        if request.method == "POST":
            next(asked)
        if dead:
            request.transport.abort()
        return web.json_response({"data": [{"id": "m"}]} if request.method == "GET" else chat_answer())

    async with Gateway({"policy": spec(await serve(handler))}, unreachable_s=5) as gateway:
        clients = [gateway.client("policy") for _ in range(4)]
        calls = asyncio.gather(*(policy.create(ModelRequest(ASK)) for policy in clients))
        await asyncio.sleep(0.3)
        while_dead = next(asked)
        dead = False
        answers = await calls
    assert while_dead <= 4, "a paused endpoint is only probed"
    assert len(answers) == 4


async def test_a_proxy_in_front_of_a_dead_server_counts_as_dead_too(serve, spec):
    async def handler(request):
        return web.Response(status=502, text="bad gateway")

    async with Gateway({"policy": spec(await serve(handler), max_retries=5)}, unreachable_s=0.1) as gateway:
        calls = [gateway.client("policy").create(ModelRequest(ASK)) for _ in range(5)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(outcome, EndpointDown) for outcome in outcomes)


async def test_calls_in_flight_stay_within_the_models_bound(serve, spec):
    running = most = 0

    async def handler(request):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1
        return web.json_response(chat_answer())

    async with Gateway({"policy": spec(await serve(handler), concurrency=4)}) as gateway:
        await asyncio.gather(*(gateway.client("policy").create(ModelRequest(ASK)) for _ in range(40)))
    assert most == 4


async def test_queue_time_is_told_apart_from_the_answers(serve, spec):
    async def handler(request):
        await asyncio.sleep(0.5)
        return web.json_response(chat_answer())

    async with Gateway({"policy": spec(await serve(handler), concurrency=1)}) as gateway:
        clients = [gateway.client("policy") for _ in range(2)]
        await asyncio.gather(*(policy.create(ModelRequest(ASK)) for policy in clients))
    assert clients[0].calls[0].queue_s < 0.25 <= clients[1].calls[0].queue_s
    assert all(0.5 <= policy.calls[0].duration_s < 0.95 for policy in clients)


async def test_preflight_names_every_model_that_cannot_be_called(serve, spec, unused_tcp_port):
    async def handler(request):
        return web.json_response({"error": {"message": "Incorrect API key provided."}}, status=401)

    models = {"a": spec(await serve(handler)), "b": spec(f"http://127.0.0.1:{unused_tcp_port}/v1")}
    with pytest.raises(InputError) as refused:
        await Gateway(models).preflight()
    words = str(refused.value).splitlines()
    assert "model 'a'" in words[0]
    assert "Incorrect API key provided." in words[0]
    assert "model 'b'" in words[1]
    assert "unreachable: Connection refused" in words[1]


async def test_preflight_of_a_silent_endpoint_does_not_wait_for_ever(serve, spec, monkeypatch):
    monkeypatch.setattr("gymflow.models.gateway.PROBE_TIMEOUT_S", 0.1)

    async def handler(request):
        await asyncio.sleep(5)
        return web.json_response({})

    async with Gateway({"policy": spec(await serve(handler))}) as gateway:
        with pytest.raises(InputError, match="did not answer within"):
            await gateway.probe()


async def test_preflight_waits_for_an_endpoint_that_is_about_to_answer(serve, spec, monkeypatch):
    monkeypatch.setattr("gymflow.models.gateway.PROBE_PAUSE_S", 0.01)
    statuses = iter([503, 429])

    async def handler(request):
        status = next(statuses, 200) if request.method == "POST" else 404
        return web.json_response(chat_answer() if status == 200 else {"error": {"message": "loading"}}, status=status)

    async with Gateway({"policy": spec(await serve(handler))}) as gateway:
        await gateway.probe()
    assert next(statuses, None) is None


async def test_preflight_gives_up_on_an_endpoint_that_stays_busy_in_its_own_words(serve, spec, monkeypatch):
    monkeypatch.setattr("gymflow.models.gateway.PROBE_TIMEOUT_S", 0.1)
    monkeypatch.setattr("gymflow.models.gateway.PROBE_PAUSE_S", 0.01)

    async def handler(request):
        return web.json_response({"error": {"message": "still loading weights"}}, status=503)

    async with Gateway({"policy": spec(await serve(handler))}) as gateway:
        with pytest.raises(InputError, match="still loading weights"):
            await gateway.probe()


@pytest.mark.parametrize("status", [401, 402, 403, 404])
@pytest.mark.parametrize("answered_before", [False, True])
async def test_an_endpoint_that_refuses_every_call_ends_the_run(serve, spec, status, answered_before):
    """The list of models is open to all, so that the start-up check saw nothing wrong."""
    statuses = iter([200] if answered_before else [])

    async def handler(request):
        if request.method == "GET":
            return web.json_response({"data": [{"id": "m"}]})
        if next(statuses, None):
            return web.json_response(chat_answer())
        return web.json_response({"error": {"message": "this key has no credit left"}}, status=status)

    failures = 0
    async with Gateway({"policy": spec(await serve(handler))}) as gateway:
        if answered_before:
            await gateway.client("policy").create(ModelRequest(ASK))
        with pytest.raises(EndpointDown, match=r"refuses every call: .*no credit left"):
            while failures < 20:
                try:
                    await gateway.client("policy").create(ModelRequest(ASK))
                except RolloutFailure:
                    failures += 1
    assert failures == (9 if answered_before else 2)


async def test_an_errors_words_are_recorded(serve, spec):
    case = fault("mc-error-body-lost")

    async def handler(request):
        return web.Response(status=case["status"], text=case["body"])

    async with Gateway({"policy": spec(await serve(handler))}) as gateway:
        policy = gateway.client("policy")
        with pytest.raises(StopEpisode) as stop:
            await policy.create(ModelRequest(ASK))
    assert stop.value.reason is StopReason.CONTEXT_OVERFLOW
    assert stop.value.detail == policy.calls[0].error_message == "context length 9000 > 8192"
