"""What there is to ask of a store: its views, their columns, and what these mean. The columns themselves are the views' own."""

from dataclasses import dataclass
from tempfile import TemporaryDirectory

from gymflow.store import connect

VIEWS = {
    "runs": "A run: what it was asked for and how much of it there is. Newest first.",
    "outcomes": "A planned rollout in one verdict set: what it contributes to a score. Start here.",
    "rollouts": "A rollout that is stored: how it ended, and its totals.",
    "verdicts": "What a verifier said of a rollout, in one verdict set.",
    "verdict_sets": "A complete scoring of a run; the last one is current.",
    "turns": "A turn of the agent: one model call, the tools that it asked for, the environment's answer.",
    "tool_calls": "A tool call of a turn.",
    "judge_calls": "What the judge model was asked about a rollout, in the set that it was asked for.",
    "model_calls": "A model call, of the agent or another role. A history is the path over `parent`.",
    "tokens": "A training sequence: whole token ids with log-probabilities and loss mask, of equal length.",
    "attempts": "A try of a rollout that infrastructure failed.",
    "evidence": "What a verifier may read of a rollout, as JSON.",
    "tasks": "A task as the run uses it.",
    "plan": "A rollout that the run consists of, sampled or not.",
    "task_scores": "A task as one agent played it, in one verdict set: what scores are means of.",
    "flips": "A rollout that passes in one verdict set of its run and not in a later one, or the other way round.",
    "findings": "A line of a health report.",
    "decisions": "An intervention that was chosen from the ranked list of a diagnosis.",
}

COLUMNS = {
    "run_id": "the run",
    "rollout_id": "the rollout: run id and plan index",
    "rollout_key": "digest of what was asked of the rollout; equal keys may be reused across runs",
    "plan_index": "row of the plan",
    "task_index": "row of `tasks`",
    "task_key": "digest of what the agent sees of the task; pairs tasks across runs",
    "task_id": "the task's id in its dataset",
    "row_digest": "digest of the whole dataset row",
    "repeat": "number of the attempt at the task, from 0",
    "environment": "environment, as the run names it",
    "split": "split of the dataset",
    "agent": "agent: a harness on a model",
    "model": "model, as the run names it",
    "seed": "sampling seed; null: none was sent",
    "chunk": "part of the plan that is one step of the flow",
    "seq": "order in which the store got it",
    "flags": "oddities of the values, such as surrogate or non_finite",
    "status": "completed or failed",
    "stop_reason": "why a completed rollout ended: finished, max_turns, …",
    "failure": "kind of infrastructure failure: model_unreachable, …",
    "failure_message": "its message",
    "started_at": "seconds since the epoch",
    "ended_at": "seconds since the epoch",
    "duration_s": "seconds",
    "turns": "number of turns",
    "prompt_tokens": "tokens of the prompts; null: not reported",
    "completion_tokens": "tokens generated, reasoning included",
    "reasoning_tokens": "tokens of reasoning",
    "cached_tokens": "prompt tokens read from the endpoint's cache",
    "cache_write_tokens": "prompt tokens written to it",
    "cost_usd": "US dollars; null: no price is known",
    "attempts": "number of attempts",
    "sampled_in": "run in which it was sampled; another run's where it was reused",
    "weight_version": "version of the weights, where a trainer said so",
    "verdict_set": "name of the verdict set, from what judged",
    "extracted_answer": "what the verifier took for the answer",
    "reason": "why the verifier gave this reward",
    "components": "JSON: parts of the reward by name",
    "is_current": "whether the set is the run's current one",
    "outcome": "scored, unverified, failed or missing",
    "reward": "the verifier's reward; null: none",
    "passed": "reward >= the environment's pass threshold",
    "masked": "kept for evaluation, left out of training",
    "role": "policy (the agent), judge, user",
    "invocation": "loop of the agent: 0 is the main one",
    "turn": "number of the turn, from 0",
    "call": "number of the model call within the rollout, from 0",
    "parent": "call whose history this one continues",
    "message": "what happened",
    "artifacts": "JSON: file name to content digest",
    "tags": "slices that the task belongs to",
    "judge": "JSON: identity of the judge model",
}

SPECIAL = {
    "runs": {
        "name": "name of the run, by default its environments'",
        "created_at": "time",
        "environments": "environments",
        "agents": "agents",
        "models": "models, as the run names them",
        "current_verdict_set": "the verdict set in force",
        "being_written": "whether a process works on the run now",
        "sampling_fingerprint": "digests of what was sampled with: model, harness, prompt, …",
        "scoring_fingerprint": "digests of what was scored with: verifier, judge",
        "versions": "gymflow, Python, platform and distributions",
        "config": "JSON: the run configuration",
        "planned": "rollouts planned",
        "completed": "of these completed",
        "failed": "of these failed",
        "missing": "of these with nothing stored",
    },
    "outcomes": {"verdict_failure": "why a completed rollout has no reward: verifier_error, verifier_timeout, …"},
    "rollouts": {
        "model_calls": "number of model calls",
        "tool_calls": "number of tool calls",
        "evidence_digest": "digest of the evidence; part of every verdict's key",
    },
    "verdicts": {
        "verdict_key": "what the verdict depends on: equal keys, equal verdicts",
        "anchors": "JSON: places in the evidence that the verdict rests on",
        "details": "JSON: the verifier's own further findings",
        "failure": "why there is no reward: verifier_error, verifier_timeout, judge_error, …",
        "verifier": "name of the verifier",
        "verifier_version": "its version",
        "code_digest": "digest of its code",
        "calls": "JSON: what the judge model was asked",
        "parameter_digest": "digest of its parameters",
        "judged_in": "the set that it was given in, where this one took it over",
    },
    "verdict_sets": {
        "position": "order in which the sets were last scored into",
        "created_at": "seconds since the epoch",
        "refers_to": "set whose untouched verdicts it takes over",
    },
    "turns": {
        "call": "the turn's model call",
        "tool_calls": "number of tool calls",
        "step_reward": "reward of the environment's step",
        "done": "whether the environment ended the episode",
        "truncated": "whether it cut the episode short",
        "step_messages": "JSON: what the environment said",
    },
    "tool_calls": {
        "position": "number of the call within the turn",
        "call_id": "id that the model gave the call",
        "name": "the tool",
        "arguments": "as the model wrote them",
        "output": "what the model got to see",
        "status": "ok, error, malformed, unknown_tool or not_executed",
        "timing": "who saw start and end: executor, harness_event or gateway",
    },
    "model_calls": {
        "new_input": "JSON: items that are new since the parent call",
        "instructions": "system prompt, at the start of a history",
        "tools_digest": "digest of the tools on offer",
        "parameters": "JSON: sampling parameters as sent",
        "output": "JSON: items of the answer",
        "model": "name that was asked for",
        "reported_model": "name that the endpoint gave",
        "response_id": "id that the endpoint gave",
        "status": "ok or error",
        "http_status": "of the last attempt that failed",
        "error_kind": "kind of failure, as in rollouts.failure",
        "error_message": "the endpoint's own words",
        "finish_reason": "stop, tool_calls, length, content_filter or refusal",
        "queue_s": "seconds of waiting for a slot",
        "first_token_s": "seconds to the first token",
    },
    "tokens": {
        "sequence": "number of the sequence within the rollout: its last call",
        "token_ids": "prompt and completion ids of all its calls",
        "logprobs": "nats, one per token id; null where nothing was sampled",
        "loss_mask": "1: sampled by the policy, and in no other sequence",
        "calls": "its model calls",
    },
    "attempts": {"attempt": "number of the try, from 0"},
    "evidence": {
        "trajectory": "JSON: turns, tool calls, steps, gaps",
        "response": "JSON: output items of the last call",
        "snapshot": "JSON: the session's state at the end",
    },
    "tasks": {"cluster": "tasks that share a passage or a repository", "task": "JSON: the row, its input rendered"},
    "task_scores": {
        "reward": "mean over the scored rollouts",
        "scored": "rollouts with a reward",
        "passed": "rollouts that passed",
        "planned": "rollouts planned",
        "variance": "of the reward over the scored rollouts (ddof 1); null for fewer than two",
    },
    "flips": {
        "old_set": "the earlier verdict set",
        "old_passed": "whether it passed there; null: it had no reward",
        "old_reward": "the reward there",
        "old_reason": "the reason there",
        "new_set": "the later verdict set",
        "new_passed": "whether it passed there; null: it had no reward",
        "new_reward": "the reward there",
        "new_reason": "the reason there",
    },
    "findings": {
        "check": "the health check",
        "severity": "info, warning or error",
        "locator": "where in the evidence",
        "message": "what was seen",
    },
    "decisions": {
        "decision_id": "the decision; `gym eval run --decision` names it",
        "intervention": "what was chosen: model_training, harness_work, prompt_change, …",
        "rank": "its place in the ranked list; 1 promised most",
        "choices": "length of that list",
        "gain": "the prediction: the most that it could add to the score",
        "score": "the score when it was decided",
        "rollouts": "number of rollouts that speak for it",
        "supported_by": "their ids, the first few",
        "decided_at": "seconds since the epoch",
        "decided_by": "who decided",
        "reason": "why",
        "tested_by": "runs that name it as the decision that they test",
    },
}

SPECIAL["judge_calls"] = SPECIAL["model_calls"] | {
    "question_key": "digest of the question: the same question is asked once",
    "reused": "whether the answer was given before; its tokens, cost and times are those of then",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a view."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class View:
    """One view."""

    name: str
    description: str
    columns: list[Column]


def views() -> list[View]:
    """The views with their columns, as every store has them."""
    with TemporaryDirectory() as nowhere, connect(nowhere) as connection:
        found = []
        for name, description in VIEWS.items():
            rows = connection.execute(f"describe {name}").fetchall()
            columns = [Column(row[0], row[1], SPECIAL.get(name, {}).get(row[0]) or COLUMNS[row[0]]) for row in rows]
            found.append(View(name, description, columns))
    return found
