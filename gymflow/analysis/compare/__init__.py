"""Compare: candidates against a base, task by task, and gates on the result.

comparison = compare(store, "nightly-0411", ["nightly-0412"], gates=[parse_gate("score >= -0.01")])
comparison.candidates[0].score.difference, comparison.failed_gates
"""

from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from gymflow.analysis.compare.alone import alone
from gymflow.analysis.compare.differences import Differences, Settings
from gymflow.analysis.compare.gates import Gate, parse_gate, read_gates
from gymflow.analysis.compare.pairing import pair
from gymflow.analysis.compare.sides import Side, load_side, sides_of
from gymflow.analysis.compare.varying import details, headline, varies
from gymflow.analysis.decide.predicting import judged_otherwise, prediction
from gymflow.analysis.reports import write_report, write_table
from gymflow.contracts.comparison import CandidateLine, Comparison
from gymflow.errors import InputError
from gymflow.metrics.paired import holm
from gymflow.metrics.profile import reward_bounds
from gymflow.metrics.slices import wanted
from gymflow.store import Store, connect
from gymflow.store.decisions import find_decision

__all__ = ["Gate", "Settings", "compare", "headline", "parse_gate", "read_gates"]


def compare(
    store: Store,
    base: str,
    candidates: Sequence[str] = (),
    *,
    by: Sequence[str] = (),
    gates: Sequence[Gate] = (),
    settings: Settings | None = None,
    verdict_set: str | None = None,
) -> Comparison:
    """Compare runs, each named `RUN` or `RUN:AGENT`, in a verdict set (default: the current one of each), and put the report beside
    every candidate. Without candidates the agents of the base's run are compared with its first.

    Nothing is refused for being different: what differs is named. Raises InputError where two sides have no task in common.
    """
    base, candidates = sides_of(store, base, candidates)
    settings = settings or Settings()
    # Slices that a gate names are cut, too; environments always are.
    names = list(dict.fromkeys([*wanted(by), *(gate.slice[0] for gate in gates if gate.slice)]))
    names = [name for name in names if name != "environment"]
    of_itself = list(dict.fromkeys(gate.slice[0] for gate in gates if gate.absolute and gate.slice))
    of_itself = [name for name in of_itself if name != "environment"]
    lines, tables = [], []
    with connect(store.root, runs=[selector.partition(":")[0] for selector in (base, *candidates)]) as connection:
        first = load_side(connection, store, base, names, verdict_set)
        for selector in candidates:
            line, table = _line(
                store, connection, first, load_side(connection, store, selector, of_itself, verdict_set), settings
            )
            lines.append(line)
            tables.append(table)
    adjusted = holm([line.test.p for line in lines])
    lines = [
        line.model_copy(update={"test": line.test.model_copy(update={"p_holm": p})})
        for line, p in zip(lines, adjusted, strict=True)
    ]
    report = Comparison(
        base_run_id=first.run_id,
        base_name=first.document.name,
        base_agent=first.agent,
        base_verdict_set=first.verdict_set.name if first.verdict_set else None,
        store=store.address,
        confidence=settings.confidence,
        seed=settings.seed,
        candidates=lines,
        gates=[gate.judge(line) for gate in gates for line in lines],
    )
    name = f"comparison-{first.run_id}"
    for run_id in dict.fromkeys(line.run_id for line in lines):
        write_report(store, run_id, name, report)
        of_run = [table for line, table in zip(lines, tables, strict=True) if line.run_id == run_id]
        write_table(store, run_id, name, pa.concat_tables(of_run))
    return report


def _line(
    store: Store, connection: duckdb.DuckDBPyConnection, base: Side, candidate: Side, settings: Settings
) -> tuple[CandidateLine, pa.Table]:
    pairs = pair(connection, base, candidate)
    if not pairs.overlap.tasks:
        raise InputError(
            f"{base.run_id} and {candidate.run_id} have no task in common: what the agent sees differs in every task"
        )
    found = Differences(pairs, _width(base), settings)
    warnings = _warnings(base, candidate, pairs.overlap.shared_samples, pairs.overlap.other_row)
    promised = None
    if tested := candidate.document.tests_decision:
        try:
            decision = find_decision(store, tested)
        except InputError as error:
            warnings.append(f"{candidate.run_id} tests a decision that cannot be read: {error}")
        else:
            within = pc.equal(pairs.base["environment"], decision.environment).to_numpy()
            difference = found.score(within) if within.any() else None
            otherwise = judged_otherwise(decision, base.verdict_sets, base.verdict_set, candidate.verdict_set)
            promised = prediction(decision, base.run_id, base.agent, difference, otherwise)
    line = CandidateLine(
        run_id=candidate.run_id,
        name=candidate.document.name,
        agent=candidate.agent,
        verdict_set=candidate.verdict_set.name if candidate.verdict_set else None,
        varies=varies(base, candidate),
        details=details(base, candidate),
        overlap=pairs.overlap,
        score=found.score(),
        pass_rate=found.pass_rate(),
        unpaired_error=found.unpaired_error(),
        correlation=found.correlation(),
        test=found.exact_test(),
        power=found.power(),
        flips=found.flips(),
        costs=found.costs(),
        slices=found.slices(base.masks),
        alone=alone(candidate),
        warnings=warnings,
        prediction=promised,
    )
    agents = pa.array([candidate.agent] * len(pairs.base), pa.string())
    return line, found.table().append_column("candidate_agent", agents)


def _width(base: Side) -> float | None:
    """Span of the rewards, where all environments declare the same."""
    bounds = {reward_bounds(base.document, name) for name in base.tasks["environment"].unique().to_pylist()}
    only = bounds.pop() if len(bounds) == 1 else None
    return None if only is None else only[1] - only[0]


def _warnings(base: Side, candidate: Side, shared: int, other_rows: int) -> list[str]:
    warnings = []
    if shared:
        warnings.append(f"{shared} rollouts are the same samples on both sides: their difference is 0 by construction")
    if other_rows:
        warnings.append(
            f"{other_rows} tasks look the same to the agent but their dataset rows differ (the gold answer, or another field)"
        )
    common = [name for name in base.verdict_sets if name in candidate.verdict_sets]
    if common and base.verdict_set != candidate.verdict_set and "verifier" in varies(base, candidate):
        warnings.append(
            f"they were judged otherwise; both were in verdict set {common[-1]}, too: --verdicts {common[-1]}"
        )
    for side in (base, candidate):
        without = int((side.tasks["scored"].to_numpy() == 0).sum())
        if without:
            warnings.append(f"{side.run_id}: {without} tasks have no scored rollout and are left out")
    return warnings
