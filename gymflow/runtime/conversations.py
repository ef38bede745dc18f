"""Model calls that come from anywhere, told apart as conversations: `gym serve` stores each as a rollout.

    conversations = Conversations(gateway)
    server.admit(conversations)
    ...
    await captured.keep(conversations.over(idle_s=20))

A call belongs to the conversation that it continues; any other one begins a conversation.
"""

import asyncio
import time
from collections.abc import Hashable
from dataclasses import dataclass, field

from gymflow.contracts.trajectory import ModelCall
from gymflow.errors import RunIncomplete
from gymflow.models.base import Dialect, Item, ModelRequest, ModelResponse, Sink
from gymflow.models.client import ModelClient
from gymflow.models.gateway import Gateway
from gymflow.models.history import opening


@dataclass(slots=True, eq=False)
class Conversation:
    """Calls of which each, but for the first, continues an earlier one."""

    client: ModelClient
    key: Hashable
    tools: list[Item]
    began: float = field(default_factory=time.time)
    running: int = 0
    used_at: float = 0.0

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
        self._live: dict[Hashable, list[Conversation]] = {}

    def dialect(self) -> Dialect | None:
        """The dialect in which the model can be asked as it is."""
        return self._gateway[self._model].provider.dialect

    async def create(self, request: ModelRequest, *, sink: Sink | None = None) -> ModelResponse:
        """One call. Raises as `ModelClient.create` does."""
        conversation = self._of(request)
        conversation.running += 1
        self.idle.clear()
        self._running += 1
        try:
            return await conversation.client.create(request, sink=sink)
        except RunIncomplete as error:
            if not self.down.done():
                self.down.set_result(error)
            raise
        finally:
            conversation.running -= 1
            self._running -= 1
            if not self._running:
                self.idle.set()
            conversation.used_at = time.monotonic()

    def over(self, idle_s: float = 0.0) -> list[Conversation]:
        """Take out the conversations that nobody has continued for `idle_s` seconds; a later call begins a new one."""
        now = time.monotonic()
        over = [
            one
            for conversations in self._live.values()
            for one in conversations
            if not one.running and now - one.used_at >= idle_s
        ]
        for conversation in over:
            same = self._live[conversation.key]
            same.remove(conversation)
            if not same:
                del self._live[conversation.key]
        return over

    def _of(self, request: ModelRequest) -> Conversation:
        key = opening(request.input, request.instructions)
        alike = self._live.setdefault(key, [])
        covered, found = max(
            ((one.client.continues(request), one) for one in alike), key=lambda pair: pair[0], default=(0, None)
        )
        if found is None or not covered:
            found = Conversation(self._gateway.client(self._model), key, request.tools)
            alike.append(found)
        return found
