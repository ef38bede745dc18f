"""What happened in a rollout: invocations, turns, model calls, tool calls, and what could not be observed.

`ModelCall` is the truth about a call and stores only what is new since the call before it in the same invocation
(`new_input`), so that bytes per turn do not grow with the turn number; the history a call saw is the concatenation over
its `parent` chain of new_input + output. `Trajectory` refers to calls by index.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gymflow.contracts.outcome import FailureKind, StopReason

TRAJECTORY_VERSION = 1


class Record(BaseModel):
    """Rows that the engine builds by the thousand: strict in shape, mutable while the rollout runs."""

    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="null")


class Usage(Record):
    """Tokens of one call or one rollout; None is *not reported*, which is not zero."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class CallTokens(Record):
    """Exact token ids of a call. `prompt_token_ids` holds what follows the parent call's prompt + completion when
    `chained`, else the whole prompt; `break_at` is then the first position that differed, if there was a parent, and the texts
    are what the ids say around it, where the endpoint can tell: those that were seen and sampled, and those of this prompt."""

    chained: bool
    prompt_token_ids: list[int]
    completion_token_ids: list[int]
    logprobs: list[float | None]
    logprobs_mode: str = "processed"
    break_at: int | None = None
    break_before: str | None = None
    break_after: str | None = None
    tokenizer_digest: str | None = None
    weight_version: str | None = None


class ModelCall(Record):
    """One model call of one rollout. Times are seconds: `started_at` since the epoch, the others durations."""

    index: int
    role: str = "policy"
    invocation: int = 0
    turn: int | None = None
    parent: int | None = Field(None, description="Index of the call whose history this one extends.")
    new_input: list[dict[str, Any]]
    instructions: str | None = Field(
        None, description="Stored at the start of a history; a call with a parent has its."
    )
    tools_digest: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    output: list[dict[str, Any]] = Field(default_factory=list)
    model: str
    reported_model: str | None = None
    response_id: str | None = None
    status: Literal["ok", "error"] = "ok"
    http_status: int | None = None
    error_kind: FailureKind | None = None
    error_message: str | None = None
    finish_reason: str | None = None
    attempts: int = 1
    started_at: float
    queue_s: float = 0.0
    duration_s: float = 0.0
    first_token_s: float | None = None
    usage: Usage = Field(default_factory=Usage)
    cost_usd: float | None = None
    tokens: CallTokens | None = None


class ToolCall(Record):
    """One tool call. `timing` names who saw start and end."""

    call_id: str
    name: str
    arguments: str = Field(description="As the model wrote them.")
    output: str | None = None
    status: Literal["ok", "error", "malformed", "unknown_tool", "not_executed"] = "ok"
    started_at: float | None = None
    ended_at: float | None = None
    timing: Literal["executor", "harness_event", "gateway"] = "executor"


class Step(Record):
    """What the environment answered: messages, a step reward, and whether it ended the episode."""

    messages: list[dict[str, Any]] = Field(default_factory=list)
    reward: float | None = None
    done: bool = False
    truncated: bool = False


class Turn(Record):
    """One model call by the agent, with the tool calls it asked for and the environment's answer to it."""

    index: int
    invocation: int = 0
    model_call: int | None = Field(None, description="Index into the rollout's model calls.")
    tool_calls: list[ToolCall] = Field(default_factory=list)
    step: Step | None = None


class Invocation(Record):
    """One loop of an agent: the main one, a subagent, or what follows a compaction of the history."""

    index: int = 0
    kind: Literal["main", "subagent", "compaction"] = "main"
    parent_turn: int | None = None


class SandboxUse(Record):
    """One command in the sandbox."""

    command: str
    outcome: str
    exit_code: int | None = None
    started_at: float
    duration_s: float
    cpu_s: float | None = None
    peak_memory_bytes: int | None = None


class Gap(Record):
    """Something that this rollout's evidence cannot show, by a closed code."""

    code: Literal[
        "no_model_calls",
        "no_tool_call",
        "no_tool_timing",
        "no_usage",
        "no_token_ids",
        "no_history",
        "no_turns",
        "no_snapshot",
        "no_sandbox_use",
        "no_workspace",
        "imported",
    ]
    detail: str = ""


class Trajectory(Record):
    """The structure of a rollout over its model calls."""

    version: int = TRAJECTORY_VERSION
    invocations: list[Invocation] = Field(default_factory=lambda: [Invocation()])
    start: Step | None = Field(None, description="The observation that the session started with, where it has one.")
    turns: list[Turn] = Field(default_factory=list)
    sandbox: list[SandboxUse] = Field(default_factory=list)
    gaps: list[Gap] = Field(default_factory=list)
    stop_reason: StopReason | None = None
    stop_detail: str | None = None
