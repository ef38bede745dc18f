"""Figures of the `local` sandboxes and of python_tests: `python tests/perf/bench_sandbox.py [--verdicts 1000]`.

Prints one line of JSON per figure. Run it on an idle machine.
"""

import argparse
import asyncio
import json
import os
import statistics
import time
from pathlib import Path

from gymflow.verifiers.python_tests import PythonTests, PythonTestsTask

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.local import LocalProvider, cgroups, state
from gymflow.verifiers import Evidence


def figure(name: str, value: float, unit: str, limit: float, *, at_most: bool = True) -> None:
    within = value <= limit if at_most else value >= limit
    print(
        json.dumps({"figure": name, "value": round(value, 2), "unit": unit, "limit": limit, "within": within}),
        flush=True,
    )


def left_behind() -> int:
    """Groups, entries and processes of this benchmark that are still there."""
    tree = cgroups.detect()
    groups = [g for base in (tree.folders() if tree else []) for g in base.glob(f"p{os.getpid()}-*")]
    processes = sum(b"gymflow-bench" in _environment(path) for path in Path("/proc").glob("[0-9]*/environ"))
    return len(groups) + len(state.entries()) + processes


def _environment(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def main(verdicts: int, sandboxes: int) -> None:
    provider, spec = LocalProvider(), SandboxSpec(env={"BENCH": "gymflow-bench"})
    await provider.run(spec, ["true"])
    shots, lives = [], []
    for _ in range(40):
        began = time.perf_counter()
        await provider.run(spec, ["true"])
        shots.append(time.perf_counter() - began)
        began = time.perf_counter()
        sandbox = await provider.start(spec)
        await sandbox.exec(["true"])
        await sandbox.stop()
        lives.append(time.perf_counter() - began)
    figure("one-shot, median", statistics.median(shots) * 1e3, "ms", 25)
    figure("start + exec + stop, median", statistics.median(lives) * 1e3, "ms", 90)

    places = asyncio.Semaphore(4)

    async def one() -> None:
        async with places:
            await provider.run(spec, "sleep 60 & setsid sleep 60 &")

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(sandboxes)))
    figure("one-shots", sandboxes / (time.perf_counter() - began), "per s", 30, at_most=False)
    await asyncio.sleep(1)
    figure(f"left behind by {sandboxes} sandboxes", left_behind(), "things", 0)

    verifier = PythonTests()
    await verifier.open()
    task = PythonTestsTask(entry_point="double", tests=["assert double(2) == 4", "assert double(-1) == -2"])
    content = [{"type": "output_text", "text": "```python\ndef double(x):\n    return 2 * x\n```"}]
    evidence = Evidence(response={"output": [{"type": "message", "role": "assistant", "content": content}]})
    began = time.perf_counter()
    results = await asyncio.gather(*(verifier.verify(task, evidence) for _ in range(verdicts)))
    figure(f"{verdicts} python_tests verdicts", time.perf_counter() - began, "s", 0.09 * verdicts)
    assert all(result.reward == 1.0 for result in results)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, default=1000)
    parser.add_argument("--sandboxes", type=int, default=1000)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.verdicts, arguments.sandboxes))
