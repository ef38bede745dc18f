"""Continuous batching: requests join and leave the running batch between two tokens.

`Engine` is synchronous and belongs to one thread. Each request has its own random numbers and `Transformer` keeps rows apart,
so the tokens of a seeded request are the same alone and in any batch.
"""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gymflow.models.embedded.checkpoint import ModelConfig
from gymflow.models.embedded.sampling import choose
from gymflow.models.embedded.transformer import CachePool, Transformer


class ContextOverflow(ValueError):
    """The prompt leaves no room in the model's context."""

    def __init__(self, prompt_tokens: int, context: int) -> None:
        super().__init__(
            f"the prompt has {prompt_tokens} tokens; the model's context of {context} has no room to answer"
        )
        self.prompt_tokens = prompt_tokens
        self.context = context


@dataclass(frozen=True)
class GenerationRequest:
    """What to continue, and how to sample.

    `max_tokens` None means: until the context is full. `seed` None draws from the operating system. Generation ends after any
    of `stop_token_ids`, which is part of the completion.
    """

    prompt_token_ids: Sequence[int]
    max_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    stop_token_ids: Sequence[int] = ()


@dataclass(frozen=True)
class Generation:
    """A completion: token ids, the log-probability of each, and why it ended."""

    token_ids: list[int]
    logprobs: list[float]
    finish_reason: Literal["stop", "length"]


class ActiveRequest:
    """A request that waits or runs; `finish_reason` is None until it is done."""

    def __init__(self, request: GenerationRequest, limit: int) -> None:
        self.request = request
        self.limit = limit
        self.length = len(request.prompt_token_ids)
        """Tokens in the cache."""
        self.slot = -1
        self.token_ids: list[int] = []
        self.logprobs: list[float] = []
        self.finish_reason: Literal["stop", "length"] | None = None
        # From text: as a number, -1 would give the same draws as 1.
        self._rng = random.Random(None if request.seed is None else str(request.seed))

    def uniform(self) -> float:
        """This request's next random number in [0, 1)."""
        return self._rng.random()

    def accept(self, token_id: int, logprob: float) -> None:
        """Append a chosen token and see whether it is the last."""
        self.token_ids.append(token_id)
        self.logprobs.append(logprob)
        if token_id in self.request.stop_token_ids:
            self.finish_reason = "stop"
        elif len(self.token_ids) >= self.limit:
            self.finish_reason = "length"

    def result(self) -> Generation:
        """The completion of a finished request."""
        assert self.finish_reason is not None
        return Generation(self.token_ids, self.logprobs, self.finish_reason)


class Engine:
    """Runs requests together, token by token; call `step` until `idle`."""

    def __init__(self, transformer: Transformer, *, max_batch: int = 64, prefill_budget: int = 512) -> None:
        """At most `max_batch` requests run at once; a step admits new ones until it has read `prefill_budget` prompt tokens."""
        self._transformer = transformer
        self._max_batch = max_batch
        self._prefill_budget = prefill_budget
        self._waiting: deque[ActiveRequest] = deque()
        self._groups: dict[int, _Group] = {}

    @property
    def idle(self) -> bool:
        """True if no request waits or runs."""
        return not self._waiting and self._running == 0

    @property
    def _running(self) -> int:
        return sum(len(group.members) for group in self._groups.values())

    def submit(self, request: GenerationRequest) -> ActiveRequest:
        """Queue a request; raises `ContextOverflow`, or `ValueError` for parameters that make no sense."""
        check_request(request, self._transformer.config)
        room = self._transformer.config.max_position_embeddings - len(request.prompt_token_ids)
        active = ActiveRequest(request, room if request.max_tokens is None else min(room, request.max_tokens))
        self._waiting.append(active)
        return active

    def cancel(self, active: ActiveRequest) -> None:
        """Forget a request; its slot is free for the next step."""
        if active in self._waiting:
            self._waiting.remove(active)
        for group in self._groups.values():
            if active in group.members:
                group.remove(active)

    def step(self) -> list[ActiveRequest]:
        """Admit what fits, add one token to every running request, and return the requests that are done."""
        # exp of a large number is infinity on purpose: the gate it stands for is then zero.
        with np.errstate(over="ignore"):
            return self._admit() + self._decode()

    def _admit(self) -> list[ActiveRequest]:
        done = []
        budget = self._prefill_budget
        while self._waiting and budget > 0 and self._running < self._max_batch:
            active = self._waiting.popleft()
            budget -= active.length
            group = self._group_for(active.length + 1)
            group.add(active)
            logits = self._transformer.prefill(active.request.prompt_token_ids, group.pool, active.slot)
            _choose_next([active], logits[None])
            if active.finish_reason:
                group.remove(active)
                done.append(active)
        return done

    def _decode(self) -> list[ActiveRequest]:
        for group in list(self._groups.values()):
            for active in [a for a in group.members if a.length == group.pool.capacity]:
                group.move(active, self._group_for(active.length + 1))
        groups = [group for group in self._groups.values() if group.members]
        running = [active for group in groups for active in group.members]
        if not running:
            return []
        last_tokens = np.array([active.token_ids[-1] for active in running])
        positions = np.array([active.length for active in running])
        logits = self._transformer.decode(last_tokens, positions, [group.pool for group in groups])
        for active in running:
            active.length += 1
        _choose_next(running, logits)
        for group in groups:
            for active in [a for a in group.members if a.finish_reason]:
                group.remove(active)
        return [active for active in running if active.finish_reason]

    def _group_for(self, length: int) -> "_Group":
        capacity = self._transformer.capacity(length)
        if capacity not in self._groups:
            self._groups[capacity] = _Group(self._transformer.new_pool(capacity))
        return self._groups[capacity]


class _Group:
    """The running requests whose caches have one capacity; a member's place in the list is its slot."""

    def __init__(self, pool: CachePool) -> None:
        self.pool = pool
        self.members: list[ActiveRequest] = []

    def add(self, active: ActiveRequest) -> None:
        active.slot = self.pool.add()
        self.members.append(active)

    def remove(self, active: ActiveRequest) -> None:
        self.pool.remove(active.slot)
        last = self.members.pop()
        if last is not active:
            self.members[active.slot] = last
            last.slot = active.slot

    def move(self, active: ActiveRequest, other: "_Group") -> None:
        """Copy a request's cache into a group of a larger capacity."""
        old = active.slot
        other.add(active)
        new, active.slot = active.slot, old
        other.pool.keys[:, new, :, : self.pool.capacity] = self.pool.keys[:, old]
        other.pool.values[:, new, :, : self.pool.capacity] = self.pool.values[:, old]
        self.remove(active)
        active.slot = new


def check_request(request: GenerationRequest, config: ModelConfig) -> None:
    """Raise for a request that cannot be run as it stands: `ContextOverflow` or `ValueError`."""
    prompt = request.prompt_token_ids
    if len(prompt) >= config.max_position_embeddings:
        raise ContextOverflow(len(prompt), config.max_position_embeddings)
    if not prompt:
        raise ValueError("prompt_token_ids is empty")
    if min(prompt) < 0 or max(prompt) >= config.vocab_size:
        raise ValueError(f"prompt_token_ids has an id outside 0..{config.vocab_size - 1}")
    if request.max_tokens is not None and request.max_tokens < 1:
        raise ValueError(f"max_tokens must be at least 1, not {request.max_tokens}")
    if not 0 <= request.temperature < float("inf"):
        raise ValueError(f"temperature must be 0 or a positive number, not {request.temperature}")
    if not 0 < request.top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, not {request.top_p}")


def _choose_next(running: Sequence[ActiveRequest], logits: np.ndarray) -> None:
    ids, logprobs = choose(
        logits,
        temperature=np.array([active.request.temperature for active in running], float),
        top_p=np.array([active.request.top_p for active in running], float),
        uniform=np.array([active.uniform() for active in running]),
    )
    for active, token_id, logprob in zip(running, ids.tolist(), logprobs.tolist(), strict=True):
        active.accept(token_id, logprob)
