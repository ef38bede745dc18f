"""The model calls of one rollout: made within its budgets, and recorded one by one.

    client = gateway.client("policy", seed=rollout.seed, budgets=config.budgets)
    response = await client.create(ModelRequest(input=[{"role": "user", "content": "2 + 2?"}]))
    client.calls[0].usage

The seed of a call is `derived_seed(rollout seed, call index)`, so that the calls of a rollout differ and a rollout repeats; a
rollout without a seed sends none.
"""

import logging
import time
from collections.abc import Mapping
from functools import lru_cache
from itertools import count
from typing import Any

from gymflow.contracts.outcome import FailureKind, StopReason
from gymflow.contracts.run import Budgets, RunBudget
from gymflow.contracts.trajectory import CallTokens, ModelCall
from gymflow.errors import InputError, RolloutFailure, RunIncomplete, StopEpisode
from gymflow.keys import derived_seed, digest
from gymflow.models import wire
from gymflow.models.base import (
    ContextOverflow,
    Dialect,
    Item,
    ModelError,
    ModelRequest,
    ModelResponse,
    Sink,
    SinkClosed,
)
from gymflow.models.history import History, Place
from gymflow.models.spending import Spending, Uncounted
from gymflow.models.upstream import Upstream
from gymflow.secrets import Redactor

log = logging.getLogger(__name__)

_numbers = count()
BREAK_BEFORE, BREAK_AFTER = 16, 32
"""How many token ids before and behind a break in a chain its texts show."""
AGENT_ROLE = "policy"
"""The role whose calls and tokens the budgets count; what any role costs counts as cost."""
JUDGE_ROLE = "judge"
"""The role of a verifier's calls, which the run's budget counts but does not refuse."""


class ModelClient:
    """Bound to one rollout. `calls` grows by one record per call, in the order in which they began; a record says `error` until
    its answer is there."""

    def __init__(
        self,
        upstreams: Mapping[str, Upstream],
        *,
        seed: int | None,
        budgets: Budgets,
        redactor: Redactor,
        spending: Spending | None = None,
    ) -> None:
        """`upstreams`: by role; the agent's own is `policy`. `spending`: what the run's rollouts count in together."""
        self.calls: list[ModelCall] = []
        self.cost_usd: float | None = 0.0
        self._upstreams = upstreams
        self._seed = seed
        self._budgets = budgets
        self._redactor = redactor
        self._spending = spending or Spending(RunBudget())
        self._histories: dict[str, History] = {}
        self._agent_calls = 0
        self._agent_tokens = 0
        self._affinity = next(_numbers)

    async def create(
        self,
        request: ModelRequest,
        *,
        role: str = AGENT_ROLE,
        invocation: int = 0,
        turn: int | None = None,
        sink: Sink | None = None,
    ) -> ModelResponse:
        """One call with its retries. Where the request leaves them open, the seed and the exact prefix are filled in.

        Raises StopEpisode when a budget is used up or the history outgrew the context, RolloutFailure when the call failed for
        good, and RunIncomplete when the run has to end.
        """
        self._within_budgets(role)
        self._spending.begin(bounded=role != JUDGE_ROLE)
        upstream = self._upstreams[role]
        history = self._histories.setdefault(role, History())
        place = history.place(request.input, request.instructions)
        seed = request.seed
        if seed is None and self._seed is not None:
            seed = derived_seed(self._seed, len(self.calls))
        request = request.of_rollout(seed, self._affinity)
        if place.altered and request.native is None:
            request.input = place.restore(request.input)
        record = self._begin(request, upstream, place, role, invocation, turn)
        if request.exact_prefix is None and (prefix := self._exact_prefix(record)) is not None:
            request.exact_prefix, request.prefix_items = prefix, place.covered
        try:
            response = await upstream.call(request, record, self, sink)
            self._finish(record, response, upstream)
            history.add(
                record.index, place.parent, request.input[place.covered :], response.output, request.instructions
            )
        except ContextOverflow as overflow:
            words = record.error_message = self._redactor.text(str(overflow))
            raise StopEpisode(StopReason.CONTEXT_OVERFLOW, words) from overflow
        except ModelError as error:
            record.error_message = self._redactor.text(error.message)
            raise RolloutFailure(error.kind, error.message, cause=error) from error
        except (StopEpisode, RolloutFailure, RunIncomplete, InputError, SinkClosed):
            raise
        except Exception as error:
            # A fault of ours: the call has failed, and neither the agent nor its harness has done anything wrong.
            words = self._redactor.text(
                f"model {record.model!r}: the call broke the gateway: {type(error).__name__}: {error}"
            )
            log.error("%s", words, exc_info=error)
            record.status, record.error_kind, record.error_message = "error", FailureKind.MODEL_ERROR, words
            raise RolloutFailure(FailureKind.MODEL_ERROR, words, cause=error) from error
        if record.tokens is not None and record.tokens.break_at is not None:
            await self._tell_break(record, record.tokens.break_at, upstream)
        self._require_counts(record)
        return response

    def continues(self, request: ModelRequest, role: str = AGENT_ROLE) -> Place:
        """Which earlier call a request continues, and how many of its leading items that one saw and said."""
        history = self._histories.get(role)
        return Place(None, 0) if history is None else history.place(request.input, request.instructions)

    def dialect(self, role: str = AGENT_ROLE) -> Dialect | None:
        """The dialect in which requests of a role can be passed on as they are."""
        return self._upstreams[role].provider.dialect

    def served_name(self, role: str = AGENT_ROLE) -> str:
        """The name by which a role's endpoint knows its model; its provider's where it has none."""
        spec = self._upstreams[role].spec
        return spec.model or spec.provider

    def _within_budgets(self, role: str) -> None:
        budgets = self._budgets
        if budgets.max_cost_usd is not None and (self.cost_usd or 0.0) >= budgets.max_cost_usd:
            raise StopEpisode(
                StopReason.COST_BUDGET, f"{self.cost_usd:.4f} of {budgets.max_cost_usd:g} US dollars spent"
            )
        if role != AGENT_ROLE:
            return
        if budgets.max_calls is not None and self._agent_calls >= budgets.max_calls:
            raise StopEpisode(StopReason.CALL_BUDGET, f"{budgets.max_calls} model calls made")
        if budgets.max_tokens is not None and self._agent_tokens >= budgets.max_tokens:
            raise StopEpisode(StopReason.TOKEN_BUDGET, f"{self._agent_tokens} of {budgets.max_tokens} tokens used")
        self._agent_calls += 1

    def _begin(
        self, request: ModelRequest, upstream: Upstream, place: Place, role: str, invocation: int, turn: int | None
    ) -> ModelCall:
        parent = None if place.parent is None else place.parent.index
        record = ModelCall(
            index=len(self.calls),
            role=role,
            invocation=invocation,
            turn=turn,
            parent=parent,
            new_input=self._redactor.json(request.input[place.covered :]),
            instructions=self._redactor.json(request.instructions) if parent is None else None,
            tools_digest=tools_digest(request.tools),
            parameters=self._redactor.json(call_parameters(request)),
            model=upstream.spec.model,
            status="error",
            error_message="the call had not been answered when the rollout ended",
            started_at=time.time(),
        )
        self.calls.append(record)
        return record

    def _finish(self, record: ModelCall, response: ModelResponse, upstream: Upstream) -> None:
        record.output = self._redactor.json(response.output)
        record.finish_reason = response.finish_reason
        record.usage = response.usage
        record.reported_model = self._redactor.json(response.reported_model)
        record.response_id = self._redactor.json(response.response_id)
        record.first_token_s = response.first_token_s
        record.cost_usd = upstream.price.cost(response.usage) if upstream.price is not None else None
        if record.cost_usd is None or self.cost_usd is None:
            self.cost_usd = None
        else:
            self.cost_usd += record.cost_usd
        self._spending.add(response.usage, record.cost_usd)
        if record.role == AGENT_ROLE:
            self._agent_tokens += (response.usage.prompt_tokens or 0) + (response.usage.completion_tokens or 0)
        if response.tokens is not None:
            record.tokens = self._chain(response, record.parent)

    def _require_counts(self, record: ModelCall) -> None:
        """A budget on what nobody can count would be none, for this call and all after it. Raises Uncounted, RolloutFailure for
        a judge's."""
        bounds = (self._budgets, self._spending.budget)
        if record.finish_reason == "content_filter" and not record.output:
            return  # the prompt was refused, and nothing counted
        uncounted = record.usage.prompt_tokens is None or record.usage.completion_tokens is None
        if uncounted and any(bound.max_tokens is not None for bound in bounds):
            words = "the endpoint does not report usage, so a budget on tokens cannot be kept"
        elif record.cost_usd is None and any(bound.max_cost_usd is not None for bound in bounds):
            words = "what the call cost is not known, so a budget on cost cannot be kept"
        else:
            return
        words = f"model {record.model!r}: {words}; leave that budget out, and bound calls or time instead"
        if record.role == JUDGE_ROLE:
            raise RolloutFailure(FailureKind.MODEL_ERROR, words)  # what was paid for is judged again later
        raise Uncounted(words)

    def _chain(self, response: ModelResponse, parent: int | None) -> CallTokens:
        tokens = response.tokens
        assert tokens is not None
        before = None if parent is None else self.token_ids(parent)
        chained = before is not None and tokens.prompt[: len(before)] == before
        return CallTokens(
            chained=chained,
            prompt_token_ids=tokens.prompt[len(before) :] if chained and before else tokens.prompt,
            completion_token_ids=tokens.completion,
            logprobs=tokens.logprobs,
            logprobs_mode=tokens.logprobs_mode,
            break_at=None if chained or before is None else first_difference(before, tokens.prompt),
            tokenizer_digest=tokens.tokenizer_digest,
            weight_version=self._redactor.json(tokens.weight_version),
        )

    async def _tell_break(self, record: ModelCall, at: int, upstream: Upstream) -> None:
        """Note what the ids on both sides of a break say around it."""
        assert record.tokens is not None and record.parent is not None
        around = slice(max(0, at - BREAK_BEFORE), at + BREAK_AFTER)
        before = self.token_ids(record.parent) or []
        one = await upstream.provider.text_of(before[around])
        other = await upstream.provider.text_of(record.tokens.prompt_token_ids[around])
        record.tokens.break_before, record.tokens.break_after = self._redactor.json(one), self._redactor.json(other)

    def _exact_prefix(self, record: ModelCall) -> list[int] | None:
        """Ids to continue from. Other tools render another prompt, which has to be tokenised anew."""
        if record.parent is None or self.calls[record.parent].tools_digest != record.tools_digest:
            return None
        return self.token_ids(record.parent)

    def token_ids(self, index: int) -> list[int] | None:
        """Prompt + completion ids of a call with its whole history, or None where the endpoint gave no ids."""
        parts: list[list[int]] = []
        at: int | None = index
        while at is not None:
            tokens = self.calls[at].tokens
            if tokens is None:
                return None
            parts += [tokens.completion_token_ids, tokens.prompt_token_ids]
            at = self.calls[at].parent if tokens.chained else None
        return [token for part in reversed(parts) for token in part]


def first_difference(one: list[int], other: list[int]) -> int:
    """The first position at which two sequences differ; the shorter length when one begins with the other."""
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return position
    return min(len(one), len(other))


def tools_digest(tools: list[Item]) -> str | None:
    """Digest of the tool definitions of a call; None without tools."""
    return _tools_digest(wire.dumps(tools)) if tools else None


@lru_cache(maxsize=1024)
def _tools_digest(tools: bytes) -> str:
    return digest(wire.loads(tools))


def call_parameters(request: ModelRequest) -> dict[str, Any]:
    """What a call's record holds of how it was asked to be answered: sampling, seed, tool choice, output format."""
    parameters = request.sampling.given
    for name, value in (
        ("seed", request.seed),
        ("tool_choice", request.tool_choice),
        ("parallel_tool_calls", request.parallel_tool_calls),
        ("text", request.text),
        ("reasoning", request.reasoning),
    ):
        if value is not None:
            parameters[name] = value
    if request.extra:
        parameters["extra"] = request.extra
    return parameters
