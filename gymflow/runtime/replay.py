"""Plays what an agent did into a fresh session: fixtures before a run, stored rollouts when a verifier reads state.

The session meets the same `Episode` as in a run, so its trajectory and snapshot are what a run would have recorded; only
the model is missing, its outputs are given.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from gymflow.contracts.outcome import StopReason
from gymflow.contracts.rollout import EvidenceRecord
from gymflow.contracts.run import Budgets
from gymflow.contracts.trajectory import Turn, Usage
from gymflow.environments import Session
from gymflow.errors import InputError
from gymflow.items import function_calls, output_text
from gymflow.models.base import Item, ModelRequest, ModelResponse
from gymflow.models.client import ModelClient
from gymflow.runtime.episode import Episode, asked
from gymflow.secrets import Redactor


async def play(
    session: Session,
    outputs: Sequence[list[Item]],
    *,
    put_artifact: Callable[[bytes], str] = lambda content: hashlib.sha256(content).hexdigest(),
    timeout_s: float = 120.0,
) -> EvidenceRecord:
    """The evidence of an agent whose model gave these outputs, one list of Responses items a turn.

    Function calls are executed, a message is given to `respond`, as the harness `simple` does; a session without tools of its own
    leaves calls unexecuted, as `single_turn` does. InputError when the environment ends the episode before the last output;
    RolloutFailure when the session fails. The session is closed.
    """
    create = session.task.responses_create_params
    episode = Episode(
        task=session.task,
        session=session,
        client=ModelClient({}, seed=None, budgets=Budgets(), redactor=Redactor()),
        request=ModelRequest(
            input=list(create.input) if isinstance(create.input, list) else [], tools=list(create.tools or [])
        ),
        budgets=Budgets(),
        environment_timeout_s=timeout_s,
    )
    try:
        await episode.start()
        for position, items in enumerate(outputs):
            if episode.done:
                raise InputError(f"the environment ended the episode after {position} of {len(outputs)} actions")
            await _take(episode, items)
        episode.stop(StopReason.FINISHED)
        snapshot = await asked(session.snapshot(), "snapshot", timeout_s)
    finally:
        await session.close()
    return EvidenceRecord(
        trajectory=episode.trajectory,
        response={"output": outputs[-1] if outputs else []},
        snapshot=snapshot.state if snapshot else None,
        artifacts={name: put_artifact(content) for name, content in snapshot.artifacts.items()} if snapshot else {},
    )


def message_item(text: str) -> Item:
    """An assistant message as an output item."""
    return {
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }


def action_items(action: dict[str, Any], index: int) -> list[Item]:
    """The output items of a fixture's action: `{name, arguments}` is a tool call, `{message}` a reply. `arguments` may be
    text, which need not be JSON."""
    if set(action) == {"message"}:
        return [message_item(str(action["message"]))]
    if "name" not in action or set(action) - {"name", "arguments"}:
        raise InputError(f"action {index}: write {{name, arguments}} or {{message}}, not {{{', '.join(action)}}}")
    arguments = action.get("arguments", {})
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return [{"type": "function_call", "call_id": f"call_{index}", "name": action["name"], "arguments": text}]


async def _take(episode: Episode, items: list[Item]) -> None:
    calls = function_calls(items)
    response = ModelResponse(output=items, finish_reason="tool_calls" if calls else "stop", usage=Usage())
    episode.trajectory.turns.append(Turn(index=len(episode.trajectory.turns)))
    episode.history.extend(items)
    episode.last = response
    if not calls:
        await episode.respond(output_text(items))
    elif type(episode.session) is not Session:
        await episode.call_tools(response)
