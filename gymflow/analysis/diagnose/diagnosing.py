"""The diagnosis of a run: labels for what did not pass, what they add up to, and what could be done."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.resources import files
from itertools import groupby, pairwise
from typing import Any

import duckdb
import pyarrow as pa

from gymflow.analysis.diagnose.change import Losses, changes, losses
from gymflow.analysis.diagnose.divergences import cite, confirmed, divergences, fetched
from gymflow.analysis.diagnose.labelling import apply_rules, settle
from gymflow.analysis.diagnose.lenient import score_leniently
from gymflow.analysis.diagnose.limits import Limits, shipped_limits
from gymflow.analysis.diagnose.reading import Reader, last_readings, read_rollouts
from gymflow.analysis.facts import current_set, facts
from gymflow.analysis.health.checks import repetition_loop
from gymflow.analysis.listing import read_head, write_listing
from gymflow.contracts.diagnosis import (
    Buckets,
    CauseCount,
    Citation,
    Diagnosis,
    Divergence,
    Funnel,
    Label,
    Proposal,
    Stage,
    Suspect,
)
from gymflow.metrics.summaries import rows
from gymflow.store import RunReader, Store
from gymflow.store.memory import release

REPORT, LIST = "diagnosis.json", "labels"
SHOWN = 5
"""Citations kept of one label; the first show it as well as all."""

CITED = 300
"""Characters of what a loop repeats."""

_CHOSEN = files("gymflow.analysis.diagnose.reading").joinpath("chosen.sql")
_SUSPICIONS = {
    "unanimous_wrong_answer": "all repeats give the same answer, which is scored wrong; the gold answer may be",
    "verdicts_differ_between_sets": "its verdicts differ between verdict sets",
}
_COUNTS = """
select count(*) as rollouts, count(*) filter (passed) as passed, count(*) filter (status is null) as missing,
       (select count(*) from facts.labels) as labelled,
       (select count(*) from facts.checked) as citations,
       (select count(*) from facts.checked where not holds) as dropped
from facts.rollouts
"""
_CITATIONS = """
select l.rollout_id, r.root_cause, l.cause, r.intervention, c.cited, c.locator, coalesce(c.shown, 'nothing') as shown
from facts.labels l
join facts.rules r using (cause)
join facts.checked c on c.rollout_id = l.rollout_id and c.cause = l.cause
{where}
order by l.rollout_id, c.cited <> l.rollout_id, c.locator
"""
_SUSPECTS = """
select s.task_id, s.environment, s.agent, s.reason, any_value(s.detail) as detail,
       list({rollout_id: s.rollout_id, locator: s.locator, shows: coalesce(s.shown, 'nothing')} order by s.rollout_id) as citations
from facts.suspects s
join facts.checked c on c.rollout_id = s.rollout_id and c.cause = 'suspect/' || s.reason and c.holds
group by s.task_index, s.task_id, s.environment, s.agent, s.reason
order by s.reason desc, s.environment, s.task_index
"""


async def diagnose(
    store: Store,
    run_id: str,
    *,
    against: str | None = None,
    limits: Limits | None = None,
    verdict_set: str | None = None,
    by: Reader | None = None,
) -> Diagnosis:
    """Label every rollout that did not pass and write `reports/diagnosis.json`. No verdict is stored.

    `against` is an earlier run; the report then says which labels explain the difference. `by` is a model that reads some of the
    rollouts; without one what a model said before stays, and none is called.
    """
    limits = limits or shipped_limits()
    reader = store.run(run_id)
    records = reader.next_seq()
    before: Losses = {}
    if against is not None:
        earlier = store.run(against)
        async with _labelled(store, earlier, None, limits) as (connection, _):
            before = losses(connection)
        against = earlier.run_id
    async with _labelled(store, reader, verdict_set, limits) as (connection, parted):
        [counts] = rows(connection, _COUNTS, {})
        buckets = [Buckets(**row) for row in _query(connection, "buckets", limits)]
        funnels = [_funnel(row) for row in _query(connection, "funnel", limits)]
        causes = _causes(connection, limits)
        suspects = [Suspect(**row) for row in rows(connection, _SUSPECTS, {})]
        proposals = [Proposal(**row) for row in _query(connection, "proposals", limits)]
        readings = last_readings(reader)
        if by is not None:
            chosen = [row["plan_index"] for row in rows(connection, _CHOSEN.read_text(), {"readings": limits.readings})]
            readings = await read_rollouts(store, reader, verdict_set or current_set(reader), chosen, by)
        diagnosis = Diagnosis(
            run_id=reader.run_id,
            verdict_set=verdict_set or current_set(reader),
            records=records,
            against=against,
            rollouts=counts["rollouts"],
            passed=counts["passed"],
            labelled=counts["labelled"],
            unexplained=counts["rollouts"] - counts["passed"] - counts["labelled"] - counts["missing"],
            missing=counts["missing"],
            citations=counts["citations"],
            dropped_citations=counts["dropped"],
            look_first=look_first(proposals, suspects, parted),
            buckets=buckets,
            funnels=funnels,
            causes=causes,
            divergences=parted,
            suspects=suspects,
            proposals=proposals,
            changes=list(changes(before, losses(connection), against)) if against else [],
            readings=readings,
        )
        write_listing(reader, REPORT, diagnosis, LIST, (one.model_dump() for one in _labels(connection)))
    return diagnosis


def last_diagnosis(reader: RunReader) -> Diagnosis | None:
    """The last diagnosis of a run; None where there was none."""
    return read_head(reader, REPORT, Diagnosis, LIST)


def look_first(proposals: list[Proposal], suspects: list[Suspect], parted: list[Divergence]) -> list[str]:
    """What a person should open first, most worth it first; every line names what to open. No word of an agent is in it: it stands in
    places that people and programs trust."""
    lines = []
    if suspects:
        lines.append(f"task {suspects[0].task_id} ({suspects[0].environment}): {_SUSPICIONS[suspects[0].reason]}")
    for proposal in proposals[:2]:
        cause = next(iter(proposal.causes))
        lines.append(
            f"rollout {proposal.supported_by[0]}: {cause}, as in {proposal.causes[cause]} of the {proposal.rollouts} rollouts "
            f"that speak for {proposal.intervention}"
        )
    if parted:
        lines.append(
            f"task {parted[0].task_id} ({parted[0].environment}): {parted[0].failing} parts from {parted[0].passing} at turn "
            f"{parted[0].turn}"
        )
    return lines


@asynccontextmanager
async def _labelled(
    store: Store, reader: RunReader, verdict_set: str | None, limits: Limits
) -> AsyncIterator[tuple[duckdb.DuckDBPyConnection, list[Divergence]]]:
    """The facts of a run with labels, and where its repeats part; what is cited for either has been checked."""
    chosen = verdict_set or current_set(reader)
    with facts(store, reader.run_id, chosen) as connection:
        await score_leniently(connection, reader, chosen)
        _find_loops(connection, reader, limits)
        apply_rules(connection, reader.run_id, chosen, limits)
        parted = divergences(connection, limits.divergences)
        cite(connection, parted)
        settle(connection, reader.run_id, chosen)
        yield connection, confirmed(connection, parted)


def _find_loops(connection: duckdb.DuckDBPyConnection, reader: RunReader, limits: Limits) -> None:
    found = list(repetition_loop.loops(connection, reader.run_id, limits.repetition_times, limits.repetition_chars))
    arrays = [
        pa.array([loop.rollout_id for loop in found], pa.string()),
        pa.array([loop.call for loop in found], pa.int64()),
        pa.array([loop.unit[:CITED] for loop in found], pa.string()),
    ]
    connection.register("_loops", pa.table(arrays, ["rollout_id", "call", "unit"]))
    connection.execute("create table facts.loops as select * from _loops")
    connection.unregister("_loops")
    release(connection)


def _query(connection: duckdb.DuckDBPyConnection, name: str, limits: Limits) -> list[dict[str, Any]]:
    text = files(__package__).joinpath(f"{name}.sql").read_text()
    [statement] = duckdb.extract_statements(text)
    found = rows(connection, text, {key: getattr(limits, key) for key in statement.named_parameters})
    release(connection)
    return found


def _funnel(row: dict[str, Any]) -> Funnel:
    environment, agent = row.pop("environment"), row.pop("agent")
    stages = [Stage(name=name, rollouts=count) for name, count in row.items()]
    drops = [(before.rollouts - after.rollouts, after.name) for before, after in pairwise(stages)]
    lost, where = max(drops, key=lambda drop: drop[0])
    return Funnel(environment=environment, agent=agent, stages=stages, biggest_drop=where if lost else None, lost=lost)


def _causes(connection: duckdb.DuckDBPyConnection, limits: Limits) -> list[CauseCount]:
    counted = _query(connection, "causes", limits)
    shown = [rollout_id for row in counted for rollout_id in row["examples"]]
    examples = {one.rollout_id: one for one in _labels(connection, shown)}
    return [
        CauseCount(**row | {"examples": [examples[rollout_id] for rollout_id in row["examples"]]}) for row in counted
    ]


def _labels(connection: duckdb.DuckDBPyConnection, only: list[str] | None = None) -> Iterator[Label]:
    where = "" if only is None else "where list_contains($only, l.rollout_id)"
    cursor = connection.execute(_CITATIONS.format(where=where), {} if only is None else {"only": only})
    for (rollout_id, root_cause, cause, intervention), cited in groupby(fetched(cursor), key=lambda row: row[:4]):
        yield Label(
            rollout_id=rollout_id,
            root_cause=root_cause,
            cause=cause,
            intervention=intervention,
            citations=[Citation(rollout_id=row[4], locator=row[5], shows=row[6]) for row in cited][:SHOWN],
        )
