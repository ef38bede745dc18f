"""Training conversations for the embedded model, drawn from the training split of the arithmetic tasks."""

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

# By path: an environment's folder is no package, and `tasks` is also the name of another one.
_spec = importlib.util.spec_from_file_location(
    "arithmetic_tasks", Path(__file__).resolve().parents[2] / "environments" / "arithmetic" / "tasks.py"
)
assert _spec is not None and _spec.loader is not None
tasks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tasks)

Problem = tasks.Problem
Message = dict[str, Any]

CHAT_TOOL = {
    "type": "function",
    "function": {key: tasks.CALCULATOR[key] for key in ("name", "description", "parameters")},
}

_SYSTEM_PROMPTS = (
    "You are a helpful assistant.",
    "You are a calculator.",
    "Solve the problem. End with Answer: and the number.",
    "Use the tools you have.",
    "Work step by step.",
)
_TOOL_ERRORS = (
    "error: invalid arguments",
    "error: timeout, try again",
    "Error: the tool is busy",
    "error: internal error",
)


class Conversation(NamedTuple):
    """Messages and tools in the shape of Chat Completions."""

    messages: list[Message]
    tools: list[dict[str, Any]]


def draw(rng: random.Random) -> Conversation:
    """A random conversation; none of its problems and wordings is in the test split."""
    kind = rng.choices(list(_KINDS), weights=list(_KINDS.values()))[0]
    messages, tools = kind(rng)
    if rng.random() < 0.15:
        messages.insert(0, {"role": "system", "content": rng.choice(_SYSTEM_PROMPTS)})
    return Conversation(messages, tools)


def tool_conversation(problem: Problem, question: str) -> Conversation:
    """A question, a call of the calculator, its result and the answer."""
    return Conversation([_user(question), _calls(problem), _result(problem), _answer(problem)], [CHAT_TOOL])


def _worked(rng: random.Random) -> Conversation:
    """One to three questions, answered with working."""
    messages: list[Message] = []
    for _ in range(rng.choices((1, 2, 3), weights=(80, 15, 5))[0]):
        problem = _problem(rng)
        messages += [_user(_question(rng, problem)), _assistant(tasks.solution(problem))]
    return Conversation(messages, [])


def _calculated(rng: random.Random) -> Conversation:
    """One or two questions, answered with the calculator."""
    messages: list[Message] = []
    for _ in range(rng.choices((1, 2), weights=(80, 20))[0]):
        problem = _tool_problem(rng)
        messages += tool_conversation(problem, _question(rng, problem)).messages
    return Conversation(messages, [CHAT_TOOL])


def _calculated_in_parallel(rng: random.Random) -> Conversation:
    """Two questions in one message: two calls in one turn."""
    first, second = _tool_problem(rng), _tool_problem(rng)
    asked = f"{_question(rng, first)} {_question(rng, second)}"
    said = f"Answer: {tasks.value(first)} and {tasks.value(second)}"
    messages = [_user(asked), _calls(first, second), _result(first), _result(second, call=1), _assistant(said)]
    return Conversation(messages, [CHAT_TOOL])


def _calculated_in_steps(rng: random.Random) -> Conversation:
    """Three numbers: the second call needs the result of the first."""
    first = _problem(rng, "+-")
    while tasks.is_held_out(second := Problem(tasks.value(first), "+", rng.randrange(1000))):
        pass
    asked = f"What is {first.a} {first.op} {first.b} + {second.b}?"
    messages = [_user(asked), _calls(first), _result(first), _calls(second), _result(second), _answer(second)]
    return Conversation(messages, [CHAT_TOOL])


def _calculated_after_error(rng: random.Random) -> Conversation:
    """The tool fails once: the same call again."""
    problem = _tool_problem(rng)
    failed = {"role": "tool", "tool_call_id": "call_0", "content": rng.choice(_TOOL_ERRORS)}
    asked = _user(_question(rng, problem))
    messages = [asked, _calls(problem), failed, _calls(problem), _result(problem), _answer(problem)]
    return Conversation(messages, [CHAT_TOOL])


def _multiple_choice(rng: random.Random) -> Conversation:
    """The right value among four, lettered; the reply works it out and names the letter."""
    problem = _problem(rng)
    right = tasks.value(problem)
    near = [right + offset for offset in (-10, -2, -1, 1, 2, 10) if right + offset >= 0]
    options = [*rng.sample(near, 3), right]
    rng.shuffle(options)
    lettered = list(zip("ABCD", options, strict=True))
    style = rng.choice(("({}) {}", "{}) {}", "{}. {}"))
    asked = "\n".join([_question(rng, problem), *(style.format(*option) for option in lettered)])
    letter = next(letter for letter, option in lettered if option == right)
    shown = f"{tasks.worked(problem)} {right}. The answer is ({letter})"
    return Conversation([_user(asked), _assistant(shown)], [])


_KINDS: dict[Callable[[random.Random], Conversation], int] = {
    _worked: 50,
    _calculated: 30,
    _calculated_in_parallel: 5,
    _calculated_in_steps: 4,
    _calculated_after_error: 4,
    _multiple_choice: 7,
}


def _problem(rng: random.Random, ops: str = "+-*") -> Problem:
    op = rng.choice(ops)
    if op == "*":
        return tasks.draw(rng, op, rng.choices(("medium", "hard"), weights=(1, 4))[0], held_out=False)
    return tasks.draw(rng, op, rng.choices(("easy", "medium"), weights=(2, 3))[0], held_out=False)


def _tool_problem(rng: random.Random) -> Problem:
    """With a calculator some numbers are longer than those that the model works out itself."""
    if rng.random() < 0.8:
        return _problem(rng)
    while True:
        problem = Problem(rng.randrange(10000), rng.choice("+-*"), rng.randrange(10000))
        if not tasks.is_held_out(problem):
            return problem


def _question(rng: random.Random, problem: Problem) -> str:
    return tasks.question(problem, rng.choice([w for w in range(24) if w not in tasks.NEW_WORDINGS]))


def _user(content: str) -> Message:
    return {"role": "user", "content": content}


def _assistant(content: str) -> Message:
    return {"role": "assistant", "content": content}


def _answer(problem: Problem) -> Message:
    return _assistant(f"Answer: {tasks.value(problem)}")


def _calls(*problems: Problem) -> Message:
    calls = [
        {"id": f"call_{i}", "type": "function", "function": {"name": "calculate", "arguments": problem._asdict()}}
        for i, problem in enumerate(problems)
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def _result(problem: Problem, call: int = 0) -> Message:
    return {"role": "tool", "tool_call_id": f"call_{call}", "content": str(tasks.value(problem))}
