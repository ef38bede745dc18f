"""Why rollouts failed: labels with evidence, and what could be done about it."""

from typing import Literal

from pydantic import Field

from gymflow.contracts.base import SCHEMA_VERSION, Contract

RootCause = Literal[
    "infrastructure",
    "data_artifact",
    "verifier_issue",
    "format",
    "truncation",
    "behaviour",
    "unreliable_knowledge",
    "knowledge_gap",
]
Intervention = Literal[
    "infrastructure_repair",
    "data_repair",
    "verifier_repair",
    "prompt_change",
    "harness_work",
    "skill_improvement",
    "model_training",
]


class Citation(Contract):
    """A place in the store and what stands there: every citation of a report was read back and compared."""

    rollout_id: str
    locator: str = Field(
        description="Such as `rollout/stop_reason`, `calls/3/finish_reason`, `turns/2/tool_calls/0/status`."
    )
    shows: str


class Label(Contract):
    """The root cause of one rollout that did not pass; `cause` is its kind, such as behaviour: looped."""

    rollout_id: str
    root_cause: RootCause
    cause: str
    intervention: Intervention
    citations: list[Citation] = Field(min_length=1)


class Buckets(Contract):
    """Tasks by how many of their scored repeats passed; missing: none was scored."""

    environment: str
    agent: str
    tasks: int
    always: int
    sometimes: int
    never: int
    missing: int
    sometimes_tasks: list[str] = Field(description="Task ids, the first few.")
    never_tasks: list[str]


class Stage(Contract):
    """How many rollouts came to this stage and through all before it."""

    name: Literal["planned", "started", "acted", "completed", "answered", "verified", "passed"]
    rollouts: int


class Funnel(Contract):
    """The way of the rollouts of one environment and agent."""

    environment: str
    agent: str
    stages: list[Stage]
    biggest_drop: str | None = Field(description="The stage before which most rollouts were lost; None: none was.")
    lost: int


class CauseCount(Contract):
    """One kind of cause in one environment and agent."""

    environment: str
    agent: str
    root_cause: RootCause
    cause: str
    about: str
    intervention: Intervention
    rollouts: int
    tasks: int
    examples: list[Label]


class Divergence(Contract):
    """The first turn at which a failing rollout of a task did something else than a passing one; the closest such pair."""

    task_id: str
    environment: str
    agent: str
    passing: str
    failing: str
    turn: int
    passing_move: str
    failing_move: str
    citations: list[Citation] = Field(min_length=2)


class Suspect(Contract):
    """A task whose gold answer or verifier a person should look at."""

    task_id: str
    environment: str
    agent: str
    reason: Literal["unanimous_wrong_answer", "verdicts_differ_between_sets"]
    detail: str
    citations: list[Citation] = Field(min_length=1)


class Proposal(Contract):
    """An intervention, with the rollouts that speak for it and the most that it could add to the score."""

    intervention: Intervention
    environment: str
    agent: str
    rollouts: int
    tasks: int
    causes: dict[str, int]
    gain: float | None = Field(
        description="Upper bound: score if all these rollouts had the top reward, minus the score."
    )
    supported_by: list[str] = Field(description="Rollout ids, the first few.")


class LabelShift(Contract):
    """What one label adds to a difference of scores (see Change)."""

    label: str
    contribution: float


class Flip(Contract):
    """A shared task whose mean reward changed, with the label that explains most of that."""

    task_id: str
    before: float
    after: float
    label: str


class Change(Contract):
    """Against an earlier run, over the tasks that both scored. The contributions add up to `after` minus `before`."""

    against: str
    environment: str
    agent: str
    tasks: int
    before: float
    after: float
    by_label: list[LabelShift]
    flips: list[Flip]


class Sentence(Contract):
    """One sentence of a model about one rollout; every citation was read back and holds."""

    rollout_id: str
    text: str
    citations: list[Citation] = Field(min_length=1)


class Readings(Contract):
    """`reports/readings.json` without its list `labels`. A model's labels stand beside those of the rules and change no number."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    verdict_set: str | None
    stored: int = Field(description="Rollouts that the run held then.")
    model: str = Field(description="`provider:name@revision`.")
    rollouts: int = Field(description="That it was given to read.")
    unread: dict[str, int] = Field(description="Why it came to nothing for some of them: judge_error, …")
    labelled: int = Field(description="Rollouts with a label that holds.")
    label_count: int
    sentences: list[Sentence]
    dropped_labels: int
    dropped_sentences: int
    dropped_because: dict[str, int] = Field(description="Reason -> labels and sentences.")
    prompt_tokens: int
    completion_tokens: int


class Diagnosis(Contract):
    """`reports/diagnosis.json` without its list `labels`."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    verdict_set: str | None
    records: int | None = Field(
        None, description="How far it read: records of the run with smaller sequence numbers. Others came later."
    )
    against: str | None = Field(None, description="The earlier run that `changes` is about.")
    rollouts: int
    passed: int
    labelled: int
    unexplained: int = Field(description="Neither passed nor missing, and no label whose evidence held.")
    missing: int
    citations: int
    dropped_citations: int = Field(description="Did not show what they were cited for; their labels were dropped.")
    look_first: list[str]
    buckets: list[Buckets]
    funnels: list[Funnel]
    causes: list[CauseCount]
    divergences: list[Divergence]
    suspects: list[Suspect]
    proposals: list[Proposal]
    changes: list[Change]
    readings: Readings | None = Field(None, description="What a model said that read some of the rollouts.")
