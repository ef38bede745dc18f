"""A model that answers by rules: for tests, fixtures, and trying out a harness without a model.

    models:
      policy:
        provider: scripted
        parameters:
          rules:
            - {matches: 'What is (\\d+) plus zero', text: 'Answer: \\1'}
            - {turn: 0, tool_calls: [{name: calculate, arguments: {a: 1, op: add, b: 2}}]}
            - {turn: 1, text: done}
            - {error: {status: 500, message: overloaded}, times: 2}
            - {text: 'I do not know.', delay_s: 0.1}

`script: PATH` reads the rules from a YAML or JSON file instead. The first rule whose conditions all hold answers: `turn` (how
many answers of the model the history has), `contains` and `matches` (on the text of the last item that is not the model's; a
regular expression whose groups `text` may refer to), `times` (at most so often over the whole run).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import yaml
from pydantic import Field, TypeAdapter, ValidationError

from gymflow.contracts.base import Contract
from gymflow.contracts.model import ModelIdentity, ModelSpec
from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.trajectory import Usage
from gymflow.errors import InputError
from gymflow.keys import digest
from gymflow.models.base import ContextOverflow, FinishReason, Item, ModelError, ModelRequest, ModelResponse, Provider
from gymflow.models.dialects import finish_of, function_call, message, reasoning

Answer = Callable[[ModelRequest], "ModelResponse | Awaitable[ModelResponse]"]


class ScriptedCall(Contract):
    """A tool call; arguments given as text go out as they are, also malformed ones."""

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)


class ScriptedError(Contract):
    """A failed attempt, or `context_overflow`."""

    kind: FailureKind = FailureKind.MODEL_ERROR
    status: int | None = None
    message: str = "scripted failure"
    retryable: bool = True
    context_overflow: bool = False


class Rule(Contract):
    """One rule: conditions, then what they answer."""

    turn: int | None = None
    contains: str | None = None
    matches: str | None = None
    times: int | None = Field(None, ge=0)
    text: str | None = None
    reasoning: str | None = None
    tool_calls: list[ScriptedCall] = Field(default_factory=list)
    finish_reason: FinishReason | None = None
    usage: Usage = Field(default_factory=Usage)
    error: ScriptedError | None = None
    delay_s: float = Field(0.0, ge=0)


class Scripted(Provider):
    """Answers by the rules of its specification, or by a function."""

    def __init__(self, spec: ModelSpec | None = None, *, answer: Answer | None = None) -> None:
        super().__init__(spec or ModelSpec(provider="scripted", model="scripted"))
        self.rules = [] if answer is not None else _rules(self.spec)
        self._used = [0] * len(self.rules)
        self._answer = answer

    async def open(self) -> None:
        """Nothing to acquire."""

    async def close(self) -> None:
        """Nothing to release."""

    async def probe(self) -> None:
        """Always there."""

    def identity(self) -> ModelIdentity:
        revision = self.spec.revision or digest([rule.model_dump(mode="json") for rule in self.rules])[:16]
        return ModelIdentity(provider="scripted", model=self.spec.model, revision=revision)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        if self._answer is not None:
            answered = self._answer(request)
            return answered if isinstance(answered, ModelResponse) else await answered
        turn, said = _turn(request.input), _last_text(request.input)
        for position, rule in enumerate(self.rules):
            if rule.times is not None and self._used[position] >= rule.times:
                continue
            if (found := _fits(rule, turn, said)) is None:
                continue
            self._used[position] += 1
            if rule.delay_s:
                await asyncio.sleep(rule.delay_s)
            return _play(rule, found, turn)
        raise ModelError(FailureKind.MODEL_ERROR, f"no rule of the script fits turn {turn} after {said[:200]!r}")


def _rules(spec: ModelSpec) -> list[Rule]:
    source, raw = "parameters.rules", spec.parameters.get("rules")
    if path := spec.parameters.get("script"):
        source = str(path)
        try:
            raw = yaml.safe_load(Path(path).expanduser().read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError) as error:
            raise InputError(f"the script {path} cannot be read: {error}") from error
        raw = raw.get("rules") if isinstance(raw, dict) else raw
    try:
        rules = TypeAdapter(list[Rule]).validate_python(raw)
        for rule in rules:
            re.compile(rule.matches or "")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"scripted model, {source}: rule {where}: {first['msg']}") from error
    except re.error as error:
        raise InputError(f"scripted model, {source}: {error.pattern!r} is not a regular expression: {error}") from error
    return rules


def _fits(rule: Rule, turn: int, said: str) -> re.Match[str] | bool | None:
    """The match that `text` may refer to, or True; None where a condition does not hold."""
    if rule.turn is not None and rule.turn != turn:
        return None
    if rule.contains is not None and rule.contains not in said:
        return None
    return True if rule.matches is None else re.search(rule.matches, said)


def _play(rule: Rule, found: re.Match[str] | bool, turn: int) -> ModelResponse:
    if rule.error is not None:
        if rule.error.context_overflow:
            raise ContextOverflow(rule.error.message)
        raise ModelError(rule.error.kind, rule.error.message, status=rule.error.status, retryable=rule.error.retryable)
    output: list[Item] = [reasoning(rule.reasoning)] if rule.reasoning else []
    if rule.text is not None:
        output.append(message(found.expand(rule.text) if isinstance(found, re.Match) else rule.text))
    for position, call in enumerate(rule.tool_calls):
        arguments = call.arguments if isinstance(call.arguments, str) else orjson.dumps(call.arguments).decode()
        output.append(function_call(f"call_{turn}_{position}", call.name, arguments))
    return ModelResponse(
        output=output,
        finish_reason=rule.finish_reason or finish_of(output),
        usage=rule.usage.model_copy(),
        reported_model="scripted",
    )


def _turn(items: list[Item]) -> int:
    """How many answers the history holds: runs of items that are the model's."""
    answers, inside = 0, False
    for item in items:
        own = _is_own(item)
        answers += own and not inside
        inside = own
    return answers


def _last_text(items: list[Item]) -> str:
    for item in reversed(items):
        if not _is_own(item):
            content = item.get("output") if item.get("type") == "function_call_output" else item.get("content")
            if isinstance(content, str):
                return content
            return "\n".join(part.get("text") or "" for part in content or () if isinstance(part, dict))
    return ""


def _is_own(item: Item) -> bool:
    kind = item.get("type", "message")
    return kind in ("function_call", "reasoning") or (kind == "message" and item.get("role") == "assistant")
