"""One episode: the history, the tools, the budgets and the record of one attempt at one task.

A harness decides what comes next by calling `generate`, `call_tools` and `respond`; everything those do is recorded here,
so that a harness cannot forget to.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from gymflow.contracts.model import Sampling
from gymflow.contracts.outcome import FailureKind, StopReason
from gymflow.contracts.run import Budgets
from gymflow.contracts.task import Task
from gymflow.contracts.trajectory import Step, ToolCall, Trajectory, Turn
from gymflow.environments import Observation, Session, ToolResult
from gymflow.errors import RolloutFailure, StopEpisode
from gymflow.items import function_calls
from gymflow.models.base import Item, ModelRequest, ModelResponse
from gymflow.models.client import ModelClient
from gymflow.runtime.blocking import Blocked
from gymflow.runtime.concurrency import within
from gymflow.runtime.plugins import own_doing
from gymflow.runtime.sandboxing import EpisodeSandbox
from gymflow.runtime.tools import Parsed, parse_call

T = TypeVar("T")

Answer = Callable[[dict[str, Any]], Awaitable[ToolResult]]
"""Answers a tool call, given its arguments."""


class Episode:
    """What a harness sees. `history` holds the Responses items so far; a harness may append its own."""

    def __init__(
        self,
        *,
        task: Task,
        session: Session,
        client: ModelClient,
        request: ModelRequest,
        budgets: Budgets,
        environment_timeout_s: float,
        sandbox: EpisodeSandbox | None = None,
    ) -> None:
        self.task = task
        self.session = session
        self.client = client
        self.budgets = budgets
        self.sandbox = sandbox
        """Where the agent works, its workspace in it; None where the environment asks for no sandbox."""
        self.trajectory = Trajectory()
        if sandbox is not None:
            self.trajectory.sandbox = sandbox.used
        self.history: list[Item] = request.input
        self.tools: list[Item] = list(request.tools)
        self.last: ModelResponse | None = None
        self._request = request
        self._timeout = environment_timeout_s
        self._tools_by_name: dict[str, Item] = {}
        self._own_tools: dict[str, Answer] = {}

    async def start(self) -> None:
        """Set up the session; its first messages follow the task's input, its tools the task's tools."""
        if type(self.session) is not Session:
            observation = await self._ask(self.session.start(), "start")
            if observation.messages or observation.reward is not None or observation.done:
                self.trajectory.start = _step(observation)
                self.history.extend(observation.messages)
            offered = {tool.get("name") for tool in self.tools}
            own = await self._ask(self.session.tools(), "tools")
            self.tools += [tool for tool in own if tool["name"] not in offered]
        self._tools_by_name = {tool["name"]: tool for tool in self.tools if tool.get("type", "function") == "function"}
        self._request.tools = self.tools

    def offer(self, tool: Item, answer: Answer) -> None:
        """Add a tool that the harness answers itself. The environment's tool of the same name, if there is one, stays."""
        name = tool["name"]
        if name not in self._tools_by_name:
            self.tools.append(tool)
            self._tools_by_name[name] = tool
            self._own_tools[name] = answer

    @property
    def instructions(self) -> str | None:
        """The task's, beside its input."""
        return self._request.instructions

    @property
    def sampling(self) -> Sampling:
        """How the agent's model is sampled here."""
        return self._request.sampling

    @property
    def done(self) -> bool:
        """Whether the environment ended the episode."""
        return self.trajectory.stop_reason is not None

    def stop(self, reason: StopReason, detail: str | None = None) -> None:
        """Say why the episode ends; the first reason given holds."""
        if self.trajectory.stop_reason is None:
            self.trajectory.stop_reason = reason
            self.trajectory.stop_detail = detail

    async def generate(self) -> ModelResponse:
        """One model call over the history, as a new turn. Raises StopEpisode when a budget does not allow it."""
        turns = self.trajectory.turns
        if self.budgets.max_turns is not None and len(turns) >= self.budgets.max_turns:
            raise StopEpisode(StopReason.MAX_TURNS, f"{len(turns)} turns")
        turn = Turn(index=len(turns))
        self._request.input = list(self.history)
        response = await self.client.create(self._request, turn=turn.index)
        turn.model_call = self.client.calls[-1].index
        turns.append(turn)
        self.history.extend(response.output)
        self.last = response
        return response

    async def call_tools(self, response: ModelResponse) -> list[ToolResult]:
        """Execute the response's function calls, all at once, and append their outputs in the order of the calls."""
        calls = function_calls(response.output)
        turn = self.trajectory.turns[-1]
        results = await asyncio.gather(*(self._call_tool(item, turn) for item in calls))
        for item, result in zip(calls, results, strict=True):
            self.history.append(
                {"type": "function_call_output", "call_id": item.get("call_id", ""), "output": result.output}
            )
        rewards = [result.reward for result in results if result.reward is not None]
        if rewards or any(result.done for result in results):
            turn.step = Step(reward=sum(rewards) if rewards else None, done=any(result.done for result in results))
            if turn.step.done:
                self.stop(StopReason.ENVIRONMENT_DONE)
        return list(results)

    async def respond(self, message: str) -> Observation | None:
        """The environment's turn after a message of the agent; its messages are appended. None: it has nothing to say."""
        observation = await self._ask(self.session.respond(message), "respond")
        if observation is None:
            return None
        self.trajectory.turns[-1].step = _step(observation)
        self.history.extend(observation.messages)
        if observation.done:
            self.stop(StopReason.ENVIRONMENT_DONE)
        elif observation.truncated:
            self.stop(StopReason.ENVIRONMENT_TRUNCATED)
        return observation

    async def _call_tool(self, item: Item, turn: Turn) -> ToolResult:
        record = ToolCall(
            call_id=str(item.get("call_id") or ""),
            name=str(item.get("name") or ""),
            arguments=str(item.get("arguments") or ""),
        )
        turn.tool_calls.append(record)
        return await self.use_tool(record)

    async def use_tool(self, record: ToolCall) -> ToolResult:
        """Answer a call that no turn holds yet, and fill in its record. For loops that are not ours to follow."""
        record.started_at = time.time()
        parsed: Parsed = parse_call(record.name, record.arguments, self._tools_by_name)
        if parsed.arguments is None:
            result = ToolResult(parsed.error, error=True)
            record.status = "unknown_tool" if parsed.status == "unknown_tool" else "malformed"
        elif own := self._own_tools.get(record.name):
            result = await own(parsed.arguments)
            record.status = "error" if result.error else "ok"
        else:
            said: Any = await self._ask(self.session.call(record.name, parsed.arguments), f"tool {record.name}")
            if not isinstance(said, ToolResult):
                message = f"the session's tool {record.name} returned {type(said).__name__}, not a ToolResult"
                raise RolloutFailure(FailureKind.ENVIRONMENT_ERROR, message)
            result = said
            record.status = "error" if result.error else "ok"
        record.output = result.output
        record.ended_at = time.time()
        return result

    async def _ask(self, answer: Awaitable[T], what: str) -> T:
        """Wait for the session; its bugs and its silence are the environment's failure, not the agent's."""
        return await asked(answer, what, self._timeout)


async def asked(answer: Awaitable[T], what: str, timeout_s: float) -> T:
    """The session's answer, or RolloutFailure(environment_error) naming what it was asked."""
    if not hasattr(answer, "__await__"):
        message = f"the session's {what} has to be `async def`: it returned {type(answer).__name__}"
        raise RolloutFailure(FailureKind.ENVIRONMENT_ERROR, message)
    try:
        return await within(timeout_s, answer)
    except (RolloutFailure, StopEpisode):
        raise
    except Blocked as error:
        message = (
            f"the session held up every rollout in {what} for {timeout_s:g} s; let it await what it waits for, or hand it to "
            "asyncio.to_thread"
        )
        raise RolloutFailure(FailureKind.ENVIRONMENT_ERROR, message, cause=error) from error
    except TimeoutError as error:
        message = f"the session did not answer {what} within {timeout_s:g} s"
        raise RolloutFailure(FailureKind.ENVIRONMENT_ERROR, message, cause=error) from error
    except BaseException as error:
        if not own_doing(error):
            raise
        message = f"the session failed in {what}: {type(error).__name__}: {error}"
        raise RolloutFailure(FailureKind.ENVIRONMENT_ERROR, message, cause=error) from error


def _step(observation: Observation) -> Step:
    return Step(
        messages=observation.messages,
        reward=observation.reward,
        done=observation.done,
        truncated=observation.truncated,
    )
