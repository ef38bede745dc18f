"""All that the page says of a run, from the store."""

from dataclasses import dataclass
from importlib.resources import files

import pyarrow as pa

from gymflow.analysis import diagnose
from gymflow.analysis.decide import ranked
from gymflow.analysis.facts import current_set
from gymflow.analysis.health import current_report
from gymflow.analysis.listing import read_items
from gymflow.analysis.marks import Mark, marks_of
from gymflow.contracts.decision import Decision
from gymflow.contracts.diagnosis import Diagnosis
from gymflow.contracts.health import HealthReport
from gymflow.contracts.profile import Profile
from gymflow.metrics.profile import profile_with_tasks, reward_bounds
from gymflow.metrics.quality import Options
from gymflow.metrics.summaries import rows
from gymflow.store import RunReader, Store, connect
from gymflow.store.decisions import decisions_of


@dataclass(frozen=True, slots=True)
class Line:
    """One planned rollout. `kind`: how the grid colours it."""

    rollout_id: str
    plan_index: int
    task_index: int
    task_id: str
    environment: str
    agent: str
    repeat: int
    outcome: str
    reward: float | None
    passed: bool | None
    stop_reason: str | None
    failure: str | None
    failure_message: str | None
    extracted_answer: str | None
    reason: str | None
    turns: int | None
    tool_calls: int | None
    completion_tokens: int | None
    duration_s: float | None
    least: float

    @property
    def kind(self) -> str:
        if self.outcome != "scored":
            return self.outcome
        if self.passed:
            return "passed"
        return "partial" if self.reward is not None and self.reward > self.least else "not-passed"


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything, in one verdict set. `lines` are in the order of the page: by environment and agent, the worst tasks first."""

    reader: RunReader
    verdict_set: str | None
    profile: Profile
    tasks: pa.Table
    health: HealthReport
    diagnosis: Diagnosis
    labels: dict[str, str]
    marks: dict[str, list[Mark]]
    decisions: list[Decision]
    lines: list[Line]


async def gather(store: Store, run_id: str) -> Contents:
    """Of a run in its current verdict set; health and diagnosis are made anew where they are not of what the run holds."""
    reader = store.run(run_id)
    verdict_set = current_set(reader)
    diagnosis = await ranked(store, reader.run_id)
    health = current_report(store, reader)
    profile, tasks = profile_with_tasks(store, reader.run_id, verdict_set, Options())
    query = files(__package__).joinpath("rollouts.sql").read_text()
    with connect(store.root, runs=[reader.run_id]) as connection:
        found = rows(connection, query, {"run_id": reader.run_id, "verdict_set": verdict_set})
    least = {
        name: (reward_bounds(reader.document, name) or (0.0, 1.0))[0] for name in {r["environment"] for r in found}
    }
    lines = [Line(**row, least=least[row["environment"]]) for row in found]
    labels = {
        item["rollout_id"]: f"{item['root_cause']}: {item['cause']}"
        for item in read_items(reader, diagnose.REPORT, diagnose.LIST)
    }
    return Contents(
        reader=reader,
        verdict_set=verdict_set,
        profile=profile,
        tasks=tasks,
        health=health,
        diagnosis=diagnosis,
        labels=labels,
        marks=marks_of(reader, verdict_set),
        decisions=list(decisions_of(reader.layout)),
        lines=lines,
    )
