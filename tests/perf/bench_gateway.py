"""What the model gateway costs: `python -m tests.perf.bench_gateway [--calls 5000] [--streams 200] [--queued 10000]`.

In process: CPU per call of the client alone, and with HTTP beside a bare aiohttp loop in the same run (targets: client and record
0.1 ms; capture of a 4 kB exchange 0.15 ms). Over HTTP, in a process of its own: CPU of the gateway per call (target 0.8 ms), and
what it adds to the delay of a chunk with many streams, which its front process takes over (targets: p50 2 ms, p99 15 ms). The
endpoint and the clients are further processes, so wall times mean something on four free cores only.

Besides: 10 000 rollouts that queue for a model (pending requests stay at the limit, memory flat), bytes that a turn adds to the
store (turn 100 at most 1.2 x turn 10, for calls and for token ids), and 1 000 concurrent rollouts of `collect`.
"""

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import orjson

from gymflow.collecting import collect
from gymflow.contracts.model import ModelSpec
from gymflow.contracts.run import Limits
from gymflow.contracts.trajectory import Usage
from gymflow.models import Gateway, ModelRequest, ModelResponse, TokenIds
from gymflow.models.dialects import message
from gymflow.models.scripted import Scripted
from gymflow.models.server import GatewayServer
from gymflow.secrets import Redactor
from tests.support.endpoint import start_endpoint

CONCURRENCY = 64
CHUNK_S = 0.05
CHUNKS = 200
RAMP_S = 4.0
"""Over which streams are begun, so that a chunk's delay is not that of two hundred requests at one time."""


def question(number: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"What is {number} + 1? [[answer:{number + 1}]]"}]


async def cpu_per_call(calls: int, call: Callable[[int], Awaitable[Any]]) -> tuple[float, float]:
    """Milliseconds of CPU per call, and calls per second, with a fixed number in flight."""
    todo = iter(range(calls))

    async def worker() -> None:
        for number in todo:
            await call(number)

    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))
    return 1000 * (time.process_time() - cpu) / calls, calls / (time.perf_counter() - wall)


async def in_process(url: str, calls: int) -> None:
    spec = ModelSpec(provider="scripted", model="s")
    text = "x" * 1900

    async def reply(request: ModelRequest) -> ModelResponse:
        return ModelResponse([message(text)], "stop", Usage(prompt_tokens=500, completion_tokens=500))

    gateway = Gateway({"policy": spec}, providers={"policy": Scripted(spec, answer=reply)})
    gateway.redactor = Redactor(["a-secret-value-that-occurs-nowhere"])
    exchange = [{"role": "user", "content": text}]

    async def captured(number: int) -> None:
        await gateway.client("policy", seed=number).create(ModelRequest(list(exchange)))

    print(f"client and record, 4 kB exchange, no HTTP: {(await cpu_per_call(calls, captured))[0]:.3f} ms CPU")

    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def bare(number: int) -> None:
            body = orjson.dumps({"model": "fake-model", "messages": question(number)})
            headers = {"content-type": "application/json"}
            async with session.post(f"{url}/chat/completions", data=body, headers=headers) as answer:
                orjson.loads(await answer.read())

        cpu, rate = await cpu_per_call(calls, bare)
        print(f"bare aiohttp loop:     {cpu:.3f} ms CPU, {rate:.0f}/s")

    async with Gateway({"policy": ModelSpec(model="fake-model", base_url=url)}, concurrency=CONCURRENCY) as real:

        async def through(number: int) -> None:
            await real.client("policy", seed=number).create(ModelRequest(question(number)))

        cpu, rate = await cpu_per_call(calls, through)
        print(f"through ModelClient:   {cpu:.3f} ms CPU, {rate:.0f}/s")


async def over_http(url: str, gateway_url: str, gateway_pid: int, calls: int) -> None:
    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def call(number: int) -> None:
            body = {"model": "m", "messages": question(number)}
            async with session.post(f"{gateway_url}/v1/chat/completions", json=body) as answer:
                assert answer.status == 200
                await answer.read()

        before = process_cpu_s(gateway_pid)
        _, rate = await cpu_per_call(calls, call)
        cost = 1000 * (process_cpu_s(gateway_pid) - before) / calls
        print(f"over HTTP, not streamed: {cost:.3f} ms CPU of the gateway per call, {rate:.0f}/s")


async def chunk_delays(url: str, streams: int) -> list[float]:
    """Seconds from the endpoint's write to the client's read, of every chunk while all streams are on."""
    chunks: list[tuple[float, float]] = []
    begun = time.monotonic()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def stream(number: int) -> None:
            await asyncio.sleep(number * RAMP_S / streams)
            asked = [{"role": "user", "content": f"Say {number}."}]
            body = {"model": "m", "messages": asked, "stream": True}
            async with session.post(f"{url}/chat/completions", json=body) as answer:
                async for line in answer.content:
                    if (at := line.find(b'"sent_at":')) >= 0:
                        chunks.append((float(line[at + 10 :].partition(b",")[0]), time.monotonic()))

        await asyncio.gather(*(stream(number) for number in range(streams)))
    return [read - sent for sent, read in chunks if RAMP_S + 1 <= sent - begun <= CHUNKS * CHUNK_S]


async def queued(url: str, rollouts: int) -> None:
    """Many clients wait for few slots: how many requests are out at most, and what a waiting one weighs."""
    limit = 32
    spec = ModelSpec(model="fake-model-20ms", base_url=url, concurrency=limit)
    async with Gateway({"policy": spec}) as gateway:
        most = 0
        await gateway.client("policy").create(ModelRequest(question(0)))
        before = memory_mb()

        async def one(number: int) -> None:
            await gateway.client("policy", seed=number).create(ModelRequest(question(number)))

        async def watch() -> None:
            nonlocal most
            while True:
                most = max(most, gateway["policy"].limiter.in_flight)
                await asyncio.sleep(0.005)

        watcher = asyncio.create_task(watch())
        waiting = [asyncio.create_task(one(number)) for number in range(rollouts)]
        await asyncio.sleep(0)
        halfway = memory_mb()
        await asyncio.gather(*waiting)
        watcher.cancel()
        print(
            f"{rollouts} queued rollouts: at most {most} of {limit} requests out; memory {before:.0f} MB before, "
            f"{halfway:.0f} MB queued, {memory_mb():.0f} MB at the end"
        )


async def stored_per_turn(turns: int = 100) -> None:
    """JSON bytes that a turn adds to a rollout's calls, with and without token ids."""
    spec = ModelSpec(provider="scripted", model="s")
    text, ids = "y" * 400, list(range(1000, 1100))
    prompt: list[int] = []

    async def reply(request: ModelRequest) -> ModelResponse:
        prompt.extend(range(2000, 2050))
        tokens = TokenIds(list(prompt), ids, [-0.5] * len(ids))
        prompt.extend(ids)
        return ModelResponse([message(text)], "stop", Usage(prompt_tokens=500, completion_tokens=500), tokens=tokens)

    client = Gateway({"policy": spec}, providers={"policy": Scripted(spec, answer=reply)}).client("policy")
    history: list[dict[str, Any]] = []
    for number in range(turns):
        history.append({"role": "user", "content": f"{number:04} " + "z" * 400})
        history += (await client.create(ModelRequest(list(history)))).output
    calls = [len(call.model_dump_json(exclude={"tokens"})) for call in client.calls]
    tokens = [len(call.tokens.model_dump_json()) for call in client.calls if call.tokens]
    print(
        f"bytes per turn, turn {turns} / turn 10: calls {calls[-1]} / {calls[9]} = {calls[-1] / calls[9]:.2f}, "
        f"tokens {tokens[-1]} / {tokens[9]} = {tokens[-1] / tokens[9]:.2f}"
    )


async def collected(url: str, rollouts: int = 1000) -> None:
    """`collect` in this process, all rollouts at once."""
    model = ModelSpec(model="fake-model-200ms", base_url=url)
    before, cpu, wall = memory_mb(), time.process_time(), time.perf_counter()
    count = 0
    async for sample in collect("mcqa", model=model, repeats=rollouts // 84 + 1, limits=Limits(concurrency=rollouts)):
        count += sample.verdict is not None
    print(
        f"collect, {rollouts} at once: {count} rollouts in {time.perf_counter() - wall:.1f} s, "
        f"{1000 * (time.process_time() - cpu) / count:.2f} ms CPU each, {memory_mb() - before:.0f} MB more"
    )


def memory_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def process_cpu_s(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def quantiles(delays: list[float]) -> str:
    cuts = statistics.quantiles(delays, n=100)
    return f"p50 {1000 * cuts[49]:.2f} ms, p99 {1000 * cuts[98]:.2f} ms"


async def serve(url: str) -> None:
    """The gateway, until SIGTERM."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with Gateway({"policy": ModelSpec(model="fake-model", base_url=url)}) as gateway:
        server = GatewayServer()
        await server.open()
        print(server.admit(gateway.client("policy")).url, flush=True)
        await ended.wait()
        await server.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--queued", type=int, default=10_000)
    parser.add_argument("--serve", metavar="URL")
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.serve))
        return
    with start_endpoint() as endpoint:
        asyncio.run(in_process(endpoint.url, options.calls))
        asyncio.run(stored_per_turn())
        asyncio.run(queued(endpoint.url, options.queued))
        asyncio.run(collected(endpoint.url))
        command = [sys.executable, "-m", "tests.perf.bench_gateway", "--serve", endpoint.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            asyncio.run(over_http(endpoint.url, url, process.pid, options.calls))
            endpoint.control(chunk_ms=1000 * CHUNK_S, chunks=CHUNKS, text="x" * 10 * CHUNKS, stamped=True)
            asyncio.run(chunk_delays(f"{url}/v1", options.streams))  # they move to the front process
            direct = asyncio.run(chunk_delays(endpoint.url, options.streams))
            through = asyncio.run(chunk_delays(f"{url}/v1", options.streams))
            print(
                f"{options.streams} streams x {1 / CHUNK_S:.0f} chunks/s, delay of a chunk: direct {quantiles(direct)}; "
                f"through the gateway {quantiles(through)}"
            )
            process.terminate()


if __name__ == "__main__":
    main()
