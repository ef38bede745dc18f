"""The gateway's process for many streams: what it hands on, what is recorded, and what its death comes to."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import aiohttp
import openai
import orjson
import pytest
from aiohttp import web

from gymflow.contracts.model import ModelSpec
from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.trajectory import Usage
from gymflow.errors import RolloutFailure
from gymflow.models import Gateway, ModelRequest, ModelResponse, TokenIds, front_worker, wire
from gymflow.models import server as server_module
from gymflow.models.front import Front
from gymflow.models.front_wire import error_of, receive, request_json, request_of, response_json, response_of
from gymflow.models.server import GatewayServer
from tests.support.endpoint import RunningEndpoint, start_endpoint

STREAMS = 6


@pytest.fixture(autouse=True)
def few_streams_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "STREAMS_HERE", 2)


@pytest.fixture
def endpoint():
    with start_endpoint(text="seven of nine", chunks=5, chunk_ms=40) as endpoint:
        yield endpoint


class Crowd:
    """A gateway server, and rollouts that stream from it."""

    def __init__(self, endpoint: RunningEndpoint, **fields: Any) -> None:
        spec = ModelSpec(**({"model": "fake-model", "base_url": endpoint.url, "max_retries": 0} | fields))
        self.gateway = Gateway({"policy": spec})
        self.server = GatewayServer()
        self.clients: list[Any] = []

    async def __aenter__(self) -> "Crowd":
        await self.gateway.open()
        await self.server.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.close()
        await self.gateway.close()

    @property
    def pid(self) -> int:
        front = self.server._front
        assert front is not None and front._process is not None
        return front._process.pid

    def admit(self):
        client = self.gateway.client("policy")
        self.clients.append(client)
        return self.server.admit(client)

    async def stream(self, admission, text: str = "q", **options: Any) -> str:
        async with openai.AsyncOpenAI(base_url=admission.url + "/v1", api_key="x", max_retries=0) as sdk:
            messages: Any = [{"role": "user", "content": text}]
            events = await sdk.chat.completions.create(model="m", messages=messages, stream=True, **options)
            return "".join([event.choices[0].delta.content or "" async for event in events if event.choices])

    async def fronted(self) -> None:
        """Make so many streams that the process is there, and its callers with it."""
        await asyncio.gather(*(self.stream(self.admit()) for _ in range(STREAMS)))
        async with asyncio.timeout(60):
            while self.server._sites:
                await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_many_streams_move_to_a_process_and_are_recorded_as_before(endpoint):
    async with Crowd(endpoint) as crowd:
        await crowd.fronted()
        pid = crowd.pid
        before = [client.calls[0] for client in crowd.clients]
        admissions = [crowd.admit() for _ in range(STREAMS)]
        options = {"stream_options": {"include_usage": True}}
        said = await asyncio.gather(*(crowd.stream(one, f"q{n}", **options) for n, one in enumerate(admissions)))
        assert said == ["seven of nine"] * STREAMS
        after = [client.calls[0] for client in crowd.clients[STREAMS:]]
        for one, other in zip(before, after, strict=True):
            assert other.first_token_s is not None and 0 < other.first_token_s < other.duration_s
            own = {"new_input", "started_at", "queue_s", "duration_s", "first_token_s", "response_id"}
            assert one.model_dump(exclude=own) == other.model_dump(exclude=own)
            assert other.response_id
        assert [call.new_input[0]["content"] for call in after] == [f"q{n}" for n in range(STREAMS)]
        assert crowd.pid == pid
        assert crowd.server._front._secret.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert crowd.server._front._secret.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    assert not alive(pid)


async def test_everything_else_passes_through_it(endpoint):
    async def echo(request: web.Request) -> web.Response:
        return web.json_response({"body": (await request.read()).decode()}, headers={"mcp-session-id": "s1"})

    crowd = Crowd(endpoint)
    crowd.server = GatewayServer(routes=[web.post("/mcp/{token}", echo)])
    async with crowd, aiohttp.ClientSession() as session:
        await crowd.fronted()
        endpoint.control(chunk_ms=0)
        admission = crowd.admit()
        async with session.post(crowd.server.url + "/mcp/t", data=b"hello") as answer:
            assert (answer.status, answer.headers["mcp-session-id"]) == (200, "s1")
            assert await answer.json() == {"body": "hello"}
        async with session.get(admission.url + "/v1/models") as answer:
            assert (await answer.json())["data"][0]["id"] == "policy"
        async with session.post(admission.url + "/v1/chat/completions", data=b"{") as answer:
            assert answer.status == 400
        async with session.post(crowd.server.url + "/rollouts/nobody/v1/responses", json={}) as answer:
            assert answer.status == 404
        async with openai.AsyncOpenAI(base_url=admission.url + "/v1", api_key="x", max_retries=0) as sdk:
            assert (await sdk.responses.create(model="m", input="q")).output_text == "seven of nine"
            # Converted, since the endpoint is spoken to in chat.
            events = [event async for event in await sdk.responses.create(model="m", input="q", stream=True)]
        assert events[-1].type == "response.completed"
        assert events[-1].response.output_text == "seven of nine"
        assert [call.status for call in crowd.clients[-1].calls] == ["ok", "ok"]


async def test_errors_before_and_within_a_stream(endpoint):
    async with Crowd(endpoint) as crowd:
        await crowd.fronted()
        endpoint.control(error_rate=1, error_status=400)
        with pytest.raises(openai.APIError, match="400"):
            await crowd.stream(crowd.admit())
        assert crowd.clients[-1].calls[0].status == "error"
        endpoint.control(error_rate=0, chunk_ms=300)
        admission = crowd.admit()
        streaming = asyncio.create_task(crowd.stream(admission))
        await asyncio.sleep(0.6)
        endpoint.process.kill()
        with pytest.raises(openai.APIError):
            await streaming
        assert isinstance(admission.outcome, RolloutFailure)
        assert crowd.clients[-1].calls[0].error_kind is not None


async def test_a_caller_that_leaves_ends_its_call(endpoint):
    async with Crowd(endpoint) as crowd:
        await crowd.fronted()
        endpoint.control(chunk_ms=2000)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await crowd.stream(crowd.admit())
        async with asyncio.timeout(5):
            while crowd.gateway["policy"].limiter.in_flight:
                await asyncio.sleep(0.02)


async def test_its_death_fails_the_rollouts_concerned_and_it_is_started_again(endpoint):
    async with Crowd(endpoint) as crowd:
        await crowd.fronted()
        pid = crowd.pid
        idle, streaming = crowd.admit(), crowd.admit()
        endpoint.control(chunk_ms=1000)
        call = asyncio.create_task(crowd.stream(streaming))
        await asyncio.sleep(0.7)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(openai.APIError):
            await call
        async with asyncio.timeout(10):
            await streaming.ended.wait()
        assert isinstance(streaming.outcome, RolloutFailure)
        assert streaming.outcome.kind is FailureKind.MODEL_ERROR
        assert "process ended (signal 9)" in streaming.outcome.message
        endpoint.control(chunk_ms=0)
        async with asyncio.timeout(60):
            assert await crowd.stream(idle) == "seven of nine"  # waits for the new process
        assert idle.outcome is None
        again = crowd.pid
        assert again != pid and not alive(pid)
    assert not alive(again)


@pytest.mark.slow
async def test_one_that_cannot_be_kept_alive_leaves_the_gateway_alone(endpoint, monkeypatch):
    monkeypatch.setattr("gymflow.models.front.MAX_STARTS", 1)
    async with Crowd(endpoint) as crowd:
        await crowd.fronted()
        os.kill(crowd.pid, signal.SIGKILL)
        async with asyncio.timeout(60):
            assert await crowd.stream(crowd.admit()) == "seven of nine"
        assert crowd.server._sites


@pytest.mark.slow
async def test_it_ends_with_its_gateway():
    code = (
        "import asyncio, os\n"
        "from tests.models.test_front import Crowd, server_module, start_endpoint\n"
        "server_module.STREAMS_HERE = 2\n"
        "async def main():\n"
        "    with start_endpoint(text='a', chunks=3, chunk_ms=50) as endpoint:\n"
        "        async with Crowd(endpoint) as crowd:\n"
        "            await crowd.fronted()\n"
        "            endpoint.process.kill()\n"
        "            print(crowd.pid, flush=True)\n"
        "            os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    pid = int(out)
    async with asyncio.timeout(10):
        while alive(pid):
            await asyncio.sleep(0.05)


def test_a_stream_cannot_be_claimed_by_a_caller():
    front = Front([], Path("nowhere"), on_death=print, on_end=print)
    assert front.stream_of("guess.0") is None and front.stream_of(None) is None and front.stream_of("0") is None
    mine = front.stream_of(f"{front._secret}.7")
    assert mine is not None and mine.number == 7


def test_exact_ids_and_large_integers_survive_the_way():
    request = ModelRequest(
        [{"role": "user", "content": "half \ud83d", "n": 2**70}],
        seed=5,
        exact_prefix=[1, 2],
        prefix_items=1,
        affinity=3,
    )
    request.native = ("chat", {"messages": []})
    assert request_of(wire.loads(wire.dumps(request_json(request)))) == request
    response = ModelResponse(
        [{"type": "message"}], "stop", Usage(prompt_tokens=1), "m", "r", TokenIds([1], [2], [-0.5]), first_token_s=0.1
    )
    assert response_of(orjson.loads(wire.dumps(response_json(response)))) == response


async def test_what_breaks_inside_the_process_is_heard_of_by_the_gateway():
    class Broken:
        async def stream(self, request, sink):
            raise KeyError("nobody foresaw this")

    class Told:
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += data

    told: Any = Told()
    worker = front_worker.Front("/nowhere", "secret", told)
    provider = asyncio.get_running_loop().create_future()
    provider.set_result(Broken())
    worker._provider = lambda *_: provider
    message = {"stream": 0, "spec": {}, "secrets": {}, "request": request_json(ModelRequest([]))}
    await worker._attempt(7, message)
    await worker.close()
    reader = asyncio.StreamReader()
    reader.feed_data(told.data)
    answer = await receive(reader)
    assert answer["attempt"] == 7
    assert "nobody foresaw this" in answer["error"]["message"]
    assert error_of(answer["error"]).kind is FailureKind.MODEL_ERROR
