"""Candidates against a base, task by task. Differences are candidate - base; undefined numbers are null with a reason."""

from typing import Literal

from pydantic import Field

from gymflow.contracts.base import Contract
from gymflow.contracts.decision import Prediction
from gymflow.contracts.estimate import Interval


class Difference(Contract):
    """One metric over the tasks that both sides have a value for."""

    base: float | None
    candidate: float | None
    difference: float | None
    standard_error: float | None = Field(None, description="Paired; clustered where the tasks have clusters.")
    paired_error: float | None = Field(None, description="Paired, each task its own.")
    interval: Interval | None = None
    p: float | None = Field(None, description="Of the paired t test, two-sided.")
    tasks: int
    groups: int
    reason: str | None = None


class ExactTest(Contract):
    """A test that needs no distribution."""

    name: Literal["mcnemar", "permutation"]
    p: float | None
    p_holm: float | None = Field(None, description="Adjusted for the number of candidates (Holm).")
    exhaustive: bool = Field(description="Every exchange was gone through; otherwise a seeded sample of them.")
    gained: int = Field(
        description="Tasks that pass more often in the candidate; one rollout each: that pass only there."
    )
    lost: int


class PowerReport(Contract):
    """At a two-sided level of 5 % and a power of 80 %. Null, with the reason, where the differences have no spread."""

    detectable: float | None = Field(description="Least difference of the score that the present size would find.")
    effect: float = Field(description="The wanted effect.")
    tasks_needed: int | None = Field(description="To find it, at the present repeats.")
    repeats_needed: int | None = Field(
        description="To find it on the present tasks; null: no number of them is enough."
    )
    reason: str | None = None


class TaskFlip(Contract):
    """A task that one side passes more often than not, and the other does not."""

    environment: str
    task_id: str
    task_key: str
    direction: Literal["gained", "lost"]
    base: float = Field(description="Pass rate.")
    candidate: float


class Flips(Contract):
    """Both ways."""

    gained: int
    lost: int
    listed: list[TaskFlip] = Field(description="The first of them, the widest first; all are in the Parquet table.")


class SliceDifference(Contract):
    """The tasks that share a value."""

    by: str
    value: str
    score: Difference
    pass_rate: Difference


class Alone(Contract):
    """A candidate's own values over all of its tasks, or those of a slice, whether or not the base has them."""

    by: str | None = None
    value: str | None = None
    tasks: int = Field(description="With a scored rollout.")
    score: float | None
    pass_rate: float | None
    costs: dict[str, float | None] = Field(description="Mean per rollout: tokens, US dollars, turns, seconds.")
    coverage: float | None = Field(description="Share of the planned rollouts that are scored.")


class Overlap(Contract):
    """What the two sides have in common, by what the agent sees of a task, never by its position."""

    tasks: int = Field(description="Tasks on both sides.")
    scored: int = Field(description="Of them, with a scored rollout on both sides: only these are compared.")
    only_base: int
    only_candidate: int
    only_base_ids: list[str] = Field(description="The first of them.")
    only_candidate_ids: list[str]
    other_row: int = Field(
        description="Tasks that look the same to the agent, and whose dataset rows differ: the gold answer, or another field."
    )
    other_row_ids: list[str]
    shared_samples: int = Field(description="Rollouts that are the same sample on both sides.")


class CandidateLine(Contract):
    """One candidate against the base."""

    run_id: str
    name: str
    agent: str
    verdict_set: str | None
    varies: list[str] = Field(
        description="What differs: model, harness, prompt, sampling, dataset, …, verifier, judge."
    )
    details: list[str] = Field(description="The same in words, where the run says it.")
    overlap: Overlap
    score: Difference
    pass_rate: Difference
    unpaired_error: float | None = Field(description="Of the score's difference, had the tasks not been paired.")
    correlation: float | None = Field(description="Of the two sides' task means.")
    test: ExactTest
    power: PowerReport
    flips: Flips
    costs: dict[str, Difference] = Field(description="Mean per rollout: tokens, US dollars, turns, seconds.")
    slices: list[SliceDifference]
    alone: list[Alone] = Field(description="The candidate by itself: all of it first, then by slices.")
    warnings: list[str]
    prediction: Prediction | None = Field(None, description="Where the candidate's run tests a decision.")


class GateResult(Contract):
    """One gate on one candidate."""

    gate: str
    run_id: str
    observed: float | None
    passed: bool
    reason: str | None = None


class Comparison(Contract):
    """`reports/comparison-<base>.json` of every candidate's run."""

    base_run_id: str
    base_name: str
    base_agent: str
    base_verdict_set: str | None
    store: str
    confidence: float
    seed: int = Field(description="Of the permutations.")
    candidates: list[CandidateLine]
    gates: list[GateResult]

    def label(self, line: CandidateLine) -> str:
        """What tells a candidate apart: its name, its agent where it is the base's own run, or else its run."""
        if line.run_id == self.base_run_id:
            return line.agent
        others = [self.base_name, *(one.name for one in self.candidates if one.run_id != line.run_id)]
        name = line.run_id if line.name in others else line.name
        several = sum(one.run_id == line.run_id for one in self.candidates) > 1
        return f"{name}, {line.agent}" if several else name

    @property
    def failed_gates(self) -> list[GateResult]:
        """Those that did not hold."""
        return [gate for gate in self.gates if not gate.passed]
