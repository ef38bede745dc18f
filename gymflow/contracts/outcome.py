"""How a rollout and its scoring can end. These words are stored; scripts may rely on them."""

from enum import StrEnum


class Status(StrEnum):
    """Stored status of a rollout. A planned rollout with nothing durable is *missing*, which is never stored."""

    COMPLETED = "completed"
    FAILED = "failed"


class FailureKind(StrEnum):
    """Why infrastructure failed a rollout."""

    MODEL_UNREACHABLE = "model_unreachable"
    MODEL_RATE_LIMITED = "model_rate_limited"
    MODEL_ERROR = "model_error"
    MODEL_TIMEOUT = "model_timeout"
    SANDBOX_UNAVAILABLE = "sandbox_unavailable"
    SANDBOX_ERROR = "sandbox_error"
    HARNESS_ERROR = "harness_error"
    HARNESS_STALLED = "harness_stalled"
    ENVIRONMENT_ERROR = "environment_error"


RETRYABLE = frozenset(
    {
        FailureKind.MODEL_UNREACHABLE,
        FailureKind.MODEL_RATE_LIMITED,
        FailureKind.MODEL_ERROR,
        FailureKind.MODEL_TIMEOUT,
        FailureKind.SANDBOX_UNAVAILABLE,
        FailureKind.SANDBOX_ERROR,
        FailureKind.HARNESS_STALLED,
    }
)
"""Kinds that another attempt of the whole rollout may cure; a bug in a harness or an environment is not among them."""


class StopReason(StrEnum):
    """Why a completed rollout ended. Everything but `finished` and `environment_done` is a budget or the agent's doing."""

    FINISHED = "finished"
    ENVIRONMENT_DONE = "environment_done"
    ENVIRONMENT_TRUNCATED = "environment_truncated"
    MAX_TURNS = "max_turns"
    MAX_OUTPUT_TOKENS = "max_output_tokens"
    TOKEN_BUDGET = "token_budget"
    CALL_BUDGET = "call_budget"
    COST_BUDGET = "cost_budget"
    WALL_TIME = "wall_time"
    CONTEXT_OVERFLOW = "context_overflow"
    REFUSAL = "refusal"
    MALFORMED_TOOL_CALLS = "malformed_tool_calls"
    AGENT_CRASH = "agent_crash"
    OUT_OF_MEMORY = "out_of_memory"


class Outcome(StrEnum):
    """Per verdict set, derived by a view: what a planned rollout contributes to a score."""

    SCORED = "scored"
    UNVERIFIED = "unverified"
    FAILED = "failed"
    MISSING = "missing"


class VerdictFailure(StrEnum):
    """Why a completed rollout has no reward in a verdict set."""

    VERIFIER_ERROR = "verifier_error"
    VERIFIER_TIMEOUT = "verifier_timeout"
    JUDGE_ERROR = "judge_error"
    JUDGE_UNPARSEABLE = "judge_unparseable"
    JUDGE_REFUSED = "judge_refused"
