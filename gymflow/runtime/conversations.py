"""Model calls that come from anywhere, told apart as conversations: `gym serve` stores each as a rollout.

    conversations = Conversations(gateway)
    server.admit(conversations, lasting=True)
    ...
    await captured.keep(conversations.due(idle_s=20, at_most_s=60))

A call belongs to the conversation that it continues; any other one begins a conversation. A conversation stays open for as long as
this object lives, or until more than `OPEN` others have been used since.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from gymflow.contracts.trajectory import ModelCall
from gymflow.errors import RunIncomplete
from gymflow.models.base import Dialect, Item, ModelRequest, ModelResponse, Sink
from gymflow.models.client import ModelClient
from gymflow.models.gateway import Gateway
from gymflow.models.history import opening

OPEN = 2000
"""Conversations that can still be continued; their calls are held in memory."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Conversation:
    """Calls of which each, but for the first, continues an earlier one. `used_at`, `due_at`: by the monotonic clock, when a call of it
    last ended, and since when it has something that is not stored."""

    client: ModelClient
    key: Hashable
    tools: list[Item]
    began: float = field(default_factory=time.time)
    running: int = 0
    used_at: float = 0.0
    due_at: float | None = None
    continued: Counter[int] = field(default_factory=Counter)
    """By index, how many calls have continued a call, those under way included."""

    @property
    def calls(self) -> list[ModelCall]:
        """Its calls, in the order in which they began."""
        return self.client.calls


class Conversations:
    """Takes the gateway server's calls. `down` is set to the reason when the model has gone away for good."""

    def __init__(self, gateway: Gateway, model: str = "policy") -> None:
        self.idle = asyncio.Event()
        """Set while no call is under way."""
        self.idle.set()
        self.down: asyncio.Future[RunIncomplete] = asyncio.get_running_loop().create_future()
        self._gateway, self._model = gateway, model
        self._running = 0
        self._alike: dict[Hashable, list[Conversation]] = {}
        self._open: dict[Conversation, None] = {}

    def dialect(self) -> Dialect | None:
        """The dialect in which the model can be asked as it is."""
        return self._gateway[self._model].provider.dialect

    async def create(self, request: ModelRequest, *, sink: Sink | None = None) -> ModelResponse:
        """One call. Raises as `ModelClient.create` does."""
        conversation, parent = self._of(request)
        conversation.running += 1
        self.idle.clear()
        self._running += 1
        try:
            return await conversation.client.create(request, sink=sink)
        except BaseException as error:
            if parent is not None:
                conversation.continued[parent] -= 1  # whoever asks again continues the same call
            if isinstance(error, RunIncomplete) and not self.down.done():
                self.down.set_result(error)
            raise
        finally:
            conversation.running -= 1
            self._running -= 1
            if not self._running:
                self.idle.set()
            self._used(conversation)

    def due(self, idle_s: float = 0.0, at_most_s: float = 0.0) -> list[Conversation]:
        """The conversations with something that is not stored, once nobody has continued them for `idle_s` seconds or it has waited for
        `at_most_s` seconds; they count as stored then."""
        now = time.monotonic()
        due = [
            one
            for one in self._open
            if one.due_at is not None
            and ((not one.running and now - one.used_at >= idle_s) or now - one.due_at >= at_most_s)
        ]
        for conversation in due:
            conversation.due_at = time.monotonic() if conversation.running else None
        for conversation in [one for one in self._open if not one.running and one.due_at is None][:-OPEN]:
            self._forget(conversation)
        return due

    def _used(self, conversation: Conversation) -> None:
        """A call of it has ended."""
        self._open.pop(conversation, None)
        if not conversation.calls:  # it never began
            return self._forget(conversation)
        self._open[conversation] = None
        conversation.used_at = time.monotonic()
        if conversation.due_at is None:
            conversation.due_at = conversation.used_at

    def _forget(self, conversation: Conversation) -> None:
        """A later call begins a new one."""
        self._open.pop(conversation, None)
        same = self._alike[conversation.key]
        same.remove(conversation)
        if not same:
            del self._alike[conversation.key]

    def _of(self, request: ModelRequest) -> tuple[Conversation, int | None]:
        """The conversation that a call belongs to, and the index of the call that it continues. Where several were told the same so
        far, it is one in which nobody has gone on from there: two callers whose conversations begin alike have one each."""
        key = opening(request.input, request.instructions)
        found: tuple[int, int, Conversation, int] | None = None
        for one in self._alike.get(key, ()):
            place = one.client.continues(request)
            if place.parent is None or not place.covered:
                continue
            taken = min(1, one.continued[place.parent.index])
            if found is None or (place.covered, -taken) > found[:2]:
                found = place.covered, -taken, one, place.parent.index
        if found is None:
            conversation = Conversation(self._gateway.client(self._model), key, request.tools)
            self._alike.setdefault(key, []).append(conversation)
            return conversation, None
        _, _, conversation, parent = found
        conversation.continued[parent] += 1
        return conversation, parent
