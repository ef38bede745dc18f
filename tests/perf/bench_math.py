"""What verdicts cost: `python tests/perf/bench_math.py [--verdicts 20000]`.

math: 80 % integers and decimals, 15 % fractions and roots, 5 % symbolic, half of each right, 64 at a time as a run has them.
Target: 20 000 verdicts in 60 s on two cores. mcqa: one `verify` of a 1 kB answer, target 40 µs.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Callable
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from gymflow.verifiers.math import Math, MathTask
from gymflow.verifiers.mcqa import Mcqa, McqaTask

from gymflow.verifiers import Evidence

CONCURRENCY = 64
REASONING = "Let us look at what is asked, write down what is known and go on from there, step by step. " * 10


def said(text: str) -> Evidence:
    content = [{"type": "output_text", "text": text}]
    return Evidence(response={"output": [{"type": "message", "role": "assistant", "content": content}]})


def number(rng: random.Random) -> tuple[str, str, str]:
    """(gold, an equal answer, another one)."""
    value = rng.randint(-(10**6), 10**6)
    if rng.random() < 0.5:
        return str(value), rng.choice([f"{value}", f"{value:,}", f"{value}.0", f"{value} apples"]), str(value + 1)
    cents = f"{value / 100:.2f}"
    return cents, rng.choice([cents, f"${cents}", f"{cents}0"]), f"{value / 100 + 0.01:.2f}"


def fraction(rng: random.Random) -> tuple[str, str, str]:
    a, b, k = rng.randint(1, 40), rng.randint(2, 40), rng.randint(2, 9)
    if rng.random() < 0.5:
        return (
            rf"\frac{{{a}}}{{{b}}}",
            rng.choice([f"{a * k}/{b * k}", rf"\dfrac{{{a}}}{{{b}}}"]),
            rf"\frac{{{a}}}{{{b + 1}}}",
        )
    return rf"{a}\sqrt{{{b}}}", rng.choice([rf"\sqrt{{{a * a * b}}}", rf"{a}\sqrt{{{b}}}"]), rf"{a + 1}\sqrt{{{b}}}"


def symbolic(rng: random.Random) -> tuple[str, str, str]:
    a, b = rng.randint(1, 30), rng.randint(1, 30)
    return rng.choice(
        [
            (rf"(x+{a})(x+{b})", rf"x^2+{a + b}x+{a * b}", rf"x^2+{a + b}x+{a * b + 1}"),
            (rf"\{{{a}, {a + b}\}}", rf"{a + b}, {a}", rf"{a}, {a + b}, 0"),
            (rf"\frac{{{a}x}}{{x+{b}}}", rf"{a} - \frac{{{a * b}}}{{x+{b}}}", rf"{a} + \frac{{{a * b}}}{{x+{b}}}"),
            (rf"({a}, {b}]", rf"({a}.0, {b}]", rf"({a}, {b})"),
            (rf"y = {a}x + {b}", rf"y - {a}x = {b}", rf"y + {a}x = {b}"),
        ]
    )


def workload(verdicts: int, seed: int) -> list[tuple[MathTask, Evidence, bool]]:
    rng = random.Random(seed)
    jobs = []
    for _ in range(verdicts):
        draw = rng.random()
        make: Callable[[random.Random], tuple[str, str, str]] = (
            number if draw < 0.8 else fraction if draw < 0.95 else symbolic
        )
        gold, right, wrong = make(rng)
        correct = rng.random() < 0.5
        text = f"{REASONING}\n\nSo the answer is $\\boxed{{{right if correct else wrong}}}$."
        jobs.append((MathTask(expected_answer=gold), said(text), correct))
    return jobs


async def bench_math(verdicts: int) -> None:
    jobs = workload(verdicts, seed=7)
    verifier = Math()
    slots = asyncio.Semaphore(CONCURRENCY)
    wrong = 0

    async def one(task: MathTask, evidence: Evidence, correct: bool) -> None:
        nonlocal wrong
        async with slots:
            verdict = await verifier.verify(task, evidence)
            wrong += verdict.reward != float(correct)

    before, begun = getrusage(RUSAGE_SELF).ru_utime, time.perf_counter()
    await asyncio.gather(*(one(*job) for job in jobs))
    elapsed, own = time.perf_counter() - begun, getrusage(RUSAGE_SELF).ru_utime - before
    await verifier.close()
    workers = getrusage(RUSAGE_CHILDREN).ru_utime
    print(
        f"math  {verdicts} verdicts in {elapsed:.1f} s (CPU: {own:.1f} s here, {workers:.1f} s in workers), {wrong} unexpected"
    )
    assert wrong == 0


async def bench_mcqa(batches: int = 60, batch: int = 300) -> None:
    """Prints the median and the best batch: the best is what the code costs, the rest is what else the machine does."""
    options = ["a mitochondrion", "a chloroplast", "the nucleus", "a ribosome"]
    task = McqaTask(options=options, expected_answer="C")
    verifier = Mcqa()
    for name, ending in (
        ("phrase", "The answer is C."),
        ("box", "\\boxed{C}"),
        ("letter", "C"),
        ("none", "I am not sure."),
    ):
        text = REASONING[: 1000 - len(ending)] + "\n" + ending
        response = said(text).response
        costs = []
        for _ in range(batches):
            begun = time.process_time()
            for _ in range(batch):
                await verifier.verify(task, Evidence(response=response))
            costs.append((time.process_time() - begun) / batch * 1e6)
        costs.sort()
        print(
            f"mcqa  {name:7} {costs[len(costs) // 2]:.1f} µs of CPU, {costs[0]:.1f} at best, for {len(text)} characters"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, default=20_000)
    asyncio.run(bench_math(parser.parse_args().verdicts))
    asyncio.run(bench_mcqa())
