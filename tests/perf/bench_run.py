"""What a run costs, against a stand-in endpoint in a process of its own. Prints figures; nothing is asserted.

    python tests/perf/bench_run.py cpu          CPU per single-turn mcqa rollout, start-up excluded (target 1.5 ms, aim 1)
    python tests/perf/bench_run.py rate         rollouts per second at 200 ms latency and concurrency 256 (target 600), mean in flight
    python tests/perf/bench_run.py tools        tool-calling rollouts per second: two calls, one tool (target 300)
    python tests/perf/bench_run.py first        seconds from `gym eval run mcqa` to the first model request (target 4)
    python tests/perf/bench_run.py resume       seconds in which a run of 100 000 decides what is left (target 3, after imports)
    python tests/perf/bench_run.py memory       growth of the peak from 1 000 to 100 000 rollouts (target under 150 MB)
    python tests/perf/bench_run.py rescore      seconds for 100 000 stored mcqa rollouts (target 15)

Run it on an idle machine; `--rollouts N` makes a measurement smaller.
"""

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

os.environ["GYMFLOW_INLINE"] = "1"

from flows.evaluate import evaluate
from flows.reverify import reverify
from gymflow.contracts.run import RunConfig
from gymflow.registry import Registry
from gymflow.runtime.preparing import prepare
from gymflow.store import Store
from tests.support.endpoint import start_endpoint

TASKS = 84  # tasks in mcqa's test split


def config(url: str, rollouts: int, *, environment: str = "mcqa", tasks: int = TASKS, **limits: Any) -> RunConfig:
    """A run of about this many rollouts."""
    return RunConfig.model_validate(
        {
            "environments": [{"name": environment}],
            "repeats": max(1, round(rollouts / tasks)),
            "models": {"policy": {"provider": "openai", "model": "fake-model", "base_url": url}},
            "limits": {"concurrency": 256} | limits,
        }
    )


def cpu_s() -> float:
    """User and system seconds of this process and its ended children."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def play(run: RunConfig, store: str, run_id: str = "bench") -> Any:
    """One run, inline, without the reports at its end; returns its scorecard."""
    return asyncio.run(evaluate(run, run_id, store, None, health=False, diagnosis=False))


def bench_cpu(rollouts: int, store: str) -> None:
    with start_endpoint(text="The answer is (C).") as endpoint:
        play(config(endpoint.url, TASKS), store, "warm")
        before, began = cpu_s(), time.monotonic()
        card = play(config(endpoint.url, rollouts), store)
        done = card.lines[0].rollouts
        print(
            f"{done} rollouts: {1e3 * (cpu_s() - before) / done:.3f} ms CPU each, {done / (time.monotonic() - began):.0f}/s"
        )


def bench_rate(rollouts: int, store: str) -> None:
    with start_endpoint(text="The answer is (C).", latency_ms=200) as endpoint:
        play(config(endpoint.url, TASKS), store, "warm")
        flights: list[int] = []
        ending = threading.Event()

        def watch() -> None:
            while not ending.wait(0.2):
                flights.append(endpoint.stats()["in_flight"])

        watcher = threading.Thread(target=watch)
        endpoint.stats(reset=True)
        watcher.start()
        card = play(config(endpoint.url, rollouts), store)
        ending.set()
        watcher.join()
        stats = endpoint.stats()
        span = stats["last_at"] - stats["first_at"]
        busy = [count for count in flights if count]
        steady = busy[1 : max(2, int(len(busy) * (1 - 256 / card.lines[0].rollouts)))]
        print(
            f"{card.lines[0].rollouts} rollouts at 200 ms, concurrency 256: {card.lines[0].rollouts / span:.0f}/s, "
            f"mean in flight {sum(steady) / len(steady):.0f} ({100 * sum(steady) / len(steady) / 256:.0f} %)"
        )


def bench_tools(rollouts: int, store: str) -> None:
    with start_endpoint(text="Answer: 1", tool_turns=1) as endpoint:
        run = config(endpoint.url, rollouts, environment="arithmetic", tasks=64)
        run = run.model_copy(update={"environments": [run.environments[0].model_copy(update={"split": "tool"})]})
        began = time.monotonic()
        card = play(run, store)
        done = card.lines[0].rollouts
        print(f"{done} rollouts with a tool call each: {done / (time.monotonic() - began):.0f}/s, start-up included")


def bench_first(_: int, store: str) -> None:
    with start_endpoint(text="The answer is (C).") as endpoint:
        for attempt in ("cold", "warm"):
            endpoint.stats(reset=True)
            began = time.time()
            subprocess.run(
                f"{sys.executable} -m cli.main eval run mcqa --base-url {endpoint.url} --model fake-model --limit 4 "
                f"--store {store} --inline".split(),
                check=True,
                capture_output=True,
            )
            print(f"{attempt}: first model request after {endpoint.stats()['first_at'] - began:.2f} s")


def bench_resume(rollouts: int, store: str) -> None:
    with start_endpoint(text="The answer is (C).") as endpoint:
        run = config(endpoint.url, rollouts)
        play(run, store)
        registry = Registry()
        began = time.monotonic()
        asyncio.run(prepare(Store(store), "bench", run, registry))
        reader = Store(store).run("bench")
        left = reader.planned() - len(reader.completed_indices())
        print(f"{reader.planned()} rollouts: decided in {time.monotonic() - began:.2f} s that {left} are left")


def bench_memory(rollouts: int, store: str) -> None:
    peaks = {}
    for count in (1_000, rollouts):
        code = (
            f"import sys, resource; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
            "from tests.perf.bench_run import config, play, start_endpoint\n"
            "with start_endpoint(text='The answer is (C).') as endpoint:\n"
            f"    play(config(endpoint.url, {count}), {store!r}, 'm{count}')\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
        )
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        peaks[count] = float(done.stdout.split()[-1])
    shown = ", ".join(f"{count} rollouts {peak:.0f} MB" for count, peak in peaks.items())
    print(f"peak memory: {shown}; growth {peaks[rollouts] - peaks[1_000]:.0f} MB")


def bench_rescore(rollouts: int, store: str) -> None:
    with start_endpoint(text="The answer is (C).") as endpoint:
        play(config(endpoint.url, rollouts), store)
    began, before = time.monotonic(), cpu_s()
    report = asyncio.run(reverify("bench", {"mode": "lenient"}, store))
    print(f"{report.scored} rollouts rescored in {time.monotonic() - began:.1f} s ({cpu_s() - before:.1f} s CPU)")


BENCHES = {
    "cpu": (bench_cpu, 20_000),
    "rate": (bench_rate, 20_000),
    "tools": (bench_tools, 5_000),
    "first": (bench_first, 0),
    "resume": (bench_resume, 100_000),
    "memory": (bench_memory, 100_000),
    "rescore": (bench_rescore, 100_000),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(BENCHES), metavar="BENCH")
    parser.add_argument("--rollouts", type=int)
    chosen = parser.parse_args()
    for name in chosen.names:
        bench, size = BENCHES[name]
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name:8}", end="", flush=True)
            bench(chosen.rollouts or size, folder)
