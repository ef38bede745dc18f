"""One episode of a foreign agent: started in its sandbox, watched, ended with everything that it started, and written down."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gymflow.contracts.outcome import FailureKind, StopReason
from gymflow.contracts.trajectory import Gap, ToolCall
from gymflow.environments import Session, ToolResult
from gymflow.errors import RolloutFailure, RunIncomplete, StopEpisode
from gymflow.items import output_text
from gymflow.models.base import Item
from gymflow.models.server import Admission
from gymflow.runtime.episode import Episode
from gymflow.runtime.foreign.calls import TurnCalls
from gymflow.runtime.foreign.protocol import GRACE_S, PID_FILE, Output, Seen, ServedCall, Visit, read
from gymflow.runtime.foreign.record import complete
from gymflow.sandboxes.interface import ExecResult, Sandbox
from gymflow.sandboxes.local.gateway import GATEWAY_PORT
from gymflow.sandboxes.local.layout import environment

if TYPE_CHECKING:
    from gymflow.runtime.foreign.harness import ForeignHarness

GATEWAY = f"http://127.0.0.1:{GATEWAY_PORT}"
KEEP_BYTES = 64 << 20
MARGIN_S = GRACE_S + 1.0
"""The agent is told to end this much before the wall time is over, so that what it wrote can still be read."""
TOLD_BY_THE_MODEL = ("length", "content_filter", "refusal")
"""Finish reasons that say by themselves how the episode ended, whatever the agent makes of them."""


class Play:
    """One rollout's agent."""

    def __init__(
        self, harness: "ForeignHarness", episode: Episode, sandbox: Sandbox, worker: str, started: float
    ) -> None:
        """`started`: by the monotonic clock, when the agent's time began."""
        self.harness = harness
        self.episode = episode
        self.sandbox = sandbox
        self.worker = worker
        self.counted = TurnCalls(episode)
        self.seen = Seen()
        self.served: list[ServedCall] = []
        self.over = asyncio.Event()
        """The environment ended the episode."""
        self.started = started
        self.lost = False
        """Whether events of the agent were lost."""

    async def run(self) -> None:
        """Play to the end. Raises StopEpisode, RolloutFailure, RunIncomplete."""
        episode, server, endpoints = self.episode, self.harness.server, self.harness.endpoints
        first, instructions = opening(episode.history, episode.instructions)
        prompt: str | None = first
        resumed = False
        if episode.tools and type(episode.session) is Session:
            message = (
                "the task's tools have nobody who answers them; a harness such as single_turn leaves the calls open"
            )
            raise RolloutFailure(FailureKind.HARNESS_ERROR, message)
        model = episode.client.served_name()
        admission = server.admit(self.counted, sampling=episode.sampling, served_name=model)
        endpoints.serve(admission.token, episode.tools, lambda *call: self._answer(admission, *call))
        try:
            while prompt is not None:
                visit = Visit(
                    command=self.harness.command,
                    prompt=prompt,
                    instructions=instructions,
                    model=model,
                    url=GATEWAY + admission.path,
                    key=admission.token,
                    tools_url=f"{GATEWAY}{admission.path}/mcp" if episode.tools else None,
                    workspace=self.sandbox.spec.workdir,
                    state=f"{environment(self.sandbox.spec)['HOME']}/.agent",
                    resumed=resumed,
                )
                await self._start(visit, admission)
                prompt, resumed = await self._reply(), True
        finally:
            admission.close()
            endpoints.dismiss(admission.token)
            if self.lost:
                detail = "the agent was killed before all of its events could be read"
                episode.trajectory.gaps.append(Gap(code="no_tool_timing", detail=detail))
            complete(episode.trajectory, episode.client.calls, self.counted, self.seen, self.served)

    async def _reply(self) -> str | None:
        """What the environment says to the agent's last message; None: the episode is over."""
        last = self.episode.last
        if self.over.is_set() or last is None or last.finish_reason in TOLD_BY_THE_MODEL:
            return None
        observation = await self.episode.respond(output_text(last.output))
        if observation is None or self.episode.done:
            return None
        return opening(observation.messages, None)[0]

    async def _start(self, visit: Visit, admission: Admission) -> None:
        """Run the agent once, to its end or until it may do no more."""
        limit_s, budget = self._limit()
        made = len(self.episode.client.calls)
        self.lost = True
        running = asyncio.ensure_future(
            self.sandbox.exec(
                ["python3", "-I", self.worker],
                stdin=self.harness.job(visit).encoded(visit.workspace, limit_s),
                timeout_s=limit_s + 3 * GRACE_S,
                keep_bytes=KEEP_BYTES,
            )
        )
        try:
            await self._until_over(running, admission)
            result = await running
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait([running])  # its tree has to be gone before the workspace is looked at
        output = read(result.stdout)
        self.lost = result.truncated or output.ended is None
        for event in output.events:
            self.harness.see(event, self.seen)
        stalled = not budget and len(self.episode.client.calls) == made
        self._conclude(result, output, admission, f"{limit_s:.1f} s", stalled=stalled)

    async def _until_over(self, running: "asyncio.Future[ExecResult]", admission: Admission) -> None:
        """Wait until the agent has ended; once it may do no more it is told to, and then made to."""
        over: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(event.wait()) for event in (self.over, admission.ended)
        ]
        try:
            await asyncio.wait({running, *over}, return_when=asyncio.FIRST_COMPLETED)
            if not self.over.is_set():
                # What it was refused makes most agents end by themselves.
                await asyncio.wait([running], timeout=GRACE_S)
            if not running.done():
                await self.sandbox.exec(f'kill -TERM "$(cat {PID_FILE})"', timeout_s=10)
                await asyncio.wait([running], timeout=3 * GRACE_S)
        finally:
            for waiting in over:
                waiting.cancel()

    def _conclude(self, result: ExecResult, output: Output, admission: Admission, limit: str, *, stalled: bool) -> None:
        if admission.outcome is not None:
            raise admission.outcome
        if self.over.is_set():
            return
        if result.outcome == "timeout" or (output.ended is not None and output.ended.late):
            if admission.refused is not None:
                words = f"after {limit} its last request was still refused: {admission.refused}"
                raise RolloutFailure(FailureKind.HARNESS_ERROR, words)
            if stalled:
                raise RolloutFailure(FailureKind.HARNESS_STALLED, f"it made no model call within {limit}")
            raise StopEpisode(StopReason.WALL_TIME, limit)
        if result.outcome == "oom":
            raise StopEpisode(StopReason.OUT_OF_MEMORY, output.words())
        ended = output.ended
        if ended is None:
            words = result.text().strip()[-500:]
            raise RolloutFailure(FailureKind.HARNESS_ERROR, f"the worker ended early ({result.outcome}): {words}")
        if ended.problem is not None:
            raise RolloutFailure(FailureKind.HARNESS_ERROR, f"it did not start: {ended.problem}")
        failure = self.seen.failure or (f"exit code {ended.exit_code}: {output.words()}" if ended.exit_code else None)
        if failure is None and self.episode.last is None:
            failure = f"it ended without an answer of the model: {admission.refused or output.words()}"
        if failure is None or (self.episode.last and self.episode.last.finish_reason in TOLD_BY_THE_MODEL):
            return
        if self.counted.overflowed is not None:
            raise StopEpisode(StopReason.CONTEXT_OVERFLOW, self.counted.overflowed)
        raise RolloutFailure(FailureKind.HARNESS_ERROR, failure)

    async def _answer(self, admission: Admission, name: str, arguments: str, meta: Item) -> ToolResult:
        """A tool call over MCP. What goes wrong in the environment ends the rollout, not the agent's turn."""
        record = ToolCall(call_id="", name=name, arguments=arguments)
        try:
            result = await self.episode.use_tool(record)
        except (RolloutFailure, StopEpisode, RunIncomplete) as error:
            admission.end(error)
            return ToolResult(f"Error: {error}", error=True)
        except Exception as error:
            failure = RolloutFailure(FailureKind.ENVIRONMENT_ERROR, f"tool {name!r}: {error!r}", cause=error)
            admission.end(failure)
            return ToolResult(f"Error: {failure}", error=True)
        self.served.append(ServedCall(record, meta, result.reward, result.done))
        if result.done:
            self.episode.stop(StopReason.ENVIRONMENT_DONE)
            self.over.set()
        return result

    def _limit(self) -> tuple[float, bool]:
        """Seconds that are left, and whether it is the run's budget that ends them."""
        spent = time.monotonic() - self.started
        own: float = self.harness.parameters.timeout_s - spent
        wall = self.episode.budgets.wall_time_s
        left = own if wall is None else wall - MARGIN_S - spent
        return max(0.1, min(own, left)), wall is not None and left <= own


def opening(items: Sequence[Item], instructions: str | None) -> tuple[str, str | None]:
    """A prompt, and what goes with the system prompt. A conversation that has begun is told as one. Raises RolloutFailure."""
    system = [instructions] if instructions else []
    said: list[tuple[str, str]] = []
    for item in items:
        if item.get("type", "message") != "message":
            raise RolloutFailure(
                FailureKind.HARNESS_ERROR, f"the task's input has a {item['type']!r}, which cannot be told it"
            )
        text = _text(item)
        if item.get("role") in ("system", "developer"):
            system.append(text)
        else:
            said.append((str(item.get("role")), text))
    told = said if any(role == "assistant" for role, _ in said) else []
    texts = [f"{role.capitalize()}: {text}" for role, text in told] or [text for _, text in said]
    return "\n\n".join(texts), "\n\n".join(system) or None


def _text(item: Item) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = content or []
    if images := [part for part in parts if part.get("type") not in ("input_text", "output_text", "text")]:
        kind = images[0].get("type")
        raise RolloutFailure(FailureKind.HARNESS_ERROR, f"the task's input has an {kind!r}, which cannot be told it")
    return "\n".join(part.get("text") or "" for part in parts)
