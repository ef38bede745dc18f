"""Measure the shipped model on the arithmetic test split: the figures of the model card.

    python data/embedded/evaluate.py [--count 64] [--repeats 8]

Needs gymflow only. Temperature 1, top-p 1; an attempt passes if its last turn ends with `Answer: N` and N is right.
"""

# ruff: noqa: T201 - a script that prints its result

import argparse
import asyncio
import json
from math import comb
from typing import Any

from conversations import CHAT_TOOL, tasks

from gymflow.models.embedded import EmbeddedModel, GenerationRequest, ToolCall, parse_reply

MOST_TURNS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the embedded model on the arithmetic test split.")
    parser.add_argument("--count", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=8)
    options = parser.parse_args()
    for variant in tasks.VARIANTS:
        rows = list(tasks.generate("test", variant, options.count))
        passes = asyncio.run(evaluate(rows, options.repeats))
        print(f"{variant}: {options.count} tasks x {options.repeats}")
        slices: dict[str, list[int]] = {"all": passes}
        for row, passed in zip(rows, passes, strict=True):
            operation, difficulty, _, *others = row["tags"]
            for name in (f"{operation}, {difficulty}", *others):
                slices.setdefault(name, []).append(passed)
        for name, counts in slices.items():
            print(f"  {name:24} {summary(counts, options.repeats)}")


async def evaluate(rows: list[dict[str, Any]], repeats: int) -> list[int]:
    """How many of its attempts each task passes."""
    model = EmbeddedModel.load()
    attempts = [attempt(model, row, seed) for row in rows for seed in range(repeats)]
    passed = await asyncio.gather(*attempts)
    await model.close()
    return [sum(passed[i : i + repeats]) for i in range(0, len(passed), repeats)]


async def attempt(model: EmbeddedModel, row: dict[str, Any], seed: int) -> bool:
    """One conversation, with the calculator if the row offers it."""
    parameters = row["responses_create_params"]
    stop = [model.tokenizer.stop_token_id]
    prompt = model.tokenizer.encode_chat(parameters["input"], [CHAT_TOOL] if "tools" in parameters else [])
    for turn in range(MOST_TURNS):
        request = GenerationRequest(prompt, 96, seed=seed * MOST_TURNS + turn, stop_token_ids=stop)
        completion = (await model.generate(request)).token_ids
        reply = parse_reply(model.tokenizer.decode(completion))
        if not reply.tool_calls:
            return reply.content.endswith(f"Answer: {row['expected_answer']}")
        results = [{"role": "tool", "content": calculate(call)} for call in reply.tool_calls]
        prompt = model.tokenizer.extend(prompt, completion, results)
    return False


def calculate(call: ToolCall) -> str:
    """What the calculator answers."""
    try:
        return str(tasks.value(tasks.Problem(**json.loads(call.arguments))))
    except (TypeError, ValueError) as error:
        return f"error: {error}"


def summary(counts: list[int], repeats: int) -> str:
    """pass@1 and pass@repeats, and how many tasks always, sometimes and never pass."""
    pass_at_one = sum(counts) / repeats / len(counts)
    pass_at_all = sum(1 - comb(repeats - c, repeats) for c in counts) / len(counts)
    always, never = counts.count(repeats), counts.count(0)
    sometimes = len(counts) - always - never
    return (
        f"n {len(counts):3}  pass@1 {pass_at_one:.3f}  pass@{repeats} {pass_at_all:.3f}  "
        f"always {always:2}  sometimes {sometimes:2}  never {never:2}"
    )


if __name__ == "__main__":
    main()
