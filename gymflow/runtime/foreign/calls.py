"""The model calls of a foreign agent: each is a turn, counted and bounded here, since the agent's own loop is not ours to stop."""

from dataclasses import dataclass, field, replace
from uuid import uuid4

from gymflow.contracts.outcome import StopReason
from gymflow.contracts.trajectory import Turn
from gymflow.errors import StopEpisode
from gymflow.models.base import Dialect, ModelRequest, ModelResponse, Sink
from gymflow.runtime.episode import Episode


@dataclass(slots=True)
class TurnCalls:
    """Stands between the gateway's server and the rollout's client. `offered`: the names of the tools that each call was given;
    `answered`: the call behind each response id; `overflowed`: whether the last call did not fit the model's context;
    `unanswered`: how many calls failed, or were given up by the agent."""

    episode: Episode
    offered: dict[int, frozenset[str]] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)
    overflowed: str | None = None
    unanswered: int = 0

    async def create(self, request: ModelRequest, *, sink: Sink | None = None) -> ModelResponse:
        """One call as one turn. Raises StopEpisode beyond the turns that the run allows; a call without an answer counts as one, so
        that an agent that asks again and again has an end, too."""
        episode, turns = self.episode, self.episode.trajectory.turns
        limit = episode.budgets.max_turns
        if limit is not None and len(turns) + self.unanswered >= limit:
            raise StopEpisode(StopReason.MAX_TURNS, f"{limit} turns")
        if request.native is None and episode.sampling.reasoning_effort is None:
            # An effort that the agent asks of its maker's models says nothing to others, and many refuse it.
            request = replace(request, sampling=request.sampling.model_copy(update={"reasoning_effort": None}))
        calls, made = episode.client.calls, len(episode.client.calls)
        turn = Turn(index=len(turns), model_call=made)
        turns.append(turn)  # before the call: a subagent's may be made meanwhile
        self.offered[made] = frozenset(str(tool.get("name")) for tool in request.tools)
        try:
            response = await episode.client.create(request, turn=turn.index, sink=sink)
        except BaseException as error:
            turns.remove(turn)  # as everywhere, a turn is a call that was answered
            self.unanswered += 1
            stop = error if isinstance(error, StopEpisode) else None
            self.overflowed = str(stop) if stop and stop.reason is StopReason.CONTEXT_OVERFLOW else None
            raise
        self.overflowed = None
        if response.response_id is None:
            response = replace(response, response_id=f"gym_{uuid4().hex}")
        assert response.response_id is not None
        self.answered[response.response_id] = made
        calls[made].response_id = response.response_id
        episode.last = response
        return response

    def dialect(self) -> Dialect | None:
        """The dialect in which the rollout's model can be asked as it is."""
        return self.episode.client.dialect()
