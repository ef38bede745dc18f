"""A run's profile, made and put beside the run: JSON for programs, Parquet for queries, PNG where plots are asked for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from gymflow.analysis.plots import plot_profile, require_matplotlib
from gymflow.analysis.reports import write_report, write_table
from gymflow.contracts.estimate import Estimate
from gymflow.contracts.profile import Profile, ProfileLine
from gymflow.metrics.profile import profile_with_tasks
from gymflow.metrics.quality import Options
from gymflow.store import Store

ESTIMATES = pa.schema(
    [
        ("run_id", pa.string()),
        ("verdict_set", pa.string()),
        ("environment", pa.string()),
        ("agent", pa.string()),
        ("slice", pa.string()),
        ("metric", pa.string()),
        ("k", pa.int64()),
        ("value", pa.float64()),
        ("standard_error", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("method", pa.string()),
        ("tasks", pa.int64()),
        ("groups", pa.int64()),
        ("reason", pa.string()),
    ]
)


def profile_run(
    store: Store, run_id: str, verdict_set: str | None, options: Options, *, plots: bool = False
) -> tuple[Profile, list[Path]]:
    """The profile, stored as `profile-<verdict set>.json`, `.parquet` (every estimate a row) and `-tasks.parquet`; and the plots."""
    if plots:
        require_matplotlib()
    report, tasks = profile_with_tasks(store, run_id, verdict_set, options)
    name = f"profile-{report.verdict_set or 'none'}"
    write_report(store, run_id, name, report)
    write_table(store, run_id, name, pa.Table.from_pylist(list(_rows(report)), ESTIMATES))
    write_table(store, run_id, f"{name}-tasks", tasks)
    drawn = plot_profile(report, tasks, store.layout.run(run_id).reports) if plots else []
    return report, drawn


def _rows(report: Profile) -> Iterator[dict[str, Any]]:
    for line in report.lines:
        about = {
            "run_id": report.run_id,
            "verdict_set": report.verdict_set,
            "environment": line.environment,
            "agent": line.agent,
        }
        for metric, k, cut, estimate in estimates_of(line):
            interval = estimate.interval.model_dump() if estimate.interval else {}
            found = estimate.model_dump(exclude={"interval"})
            yield about | {"slice": cut, "metric": metric, "k": k} | found | interval


def estimates_of(line: ProfileLine) -> Iterator[tuple[str, int | None, str | None, Estimate]]:
    """(metric, k, slice, estimate) for every estimate of a line."""
    yield "score", None, None, line.score
    yield "pass_rate", None, None, line.pass_rate
    for metric in ("pass_at", "pass_hat", "majority_at", "average_of"):
        for one in getattr(line, metric):
            yield metric, one.k, None, one.estimate
    for name, estimate in line.components.items():
        yield f"component {name}", None, None, estimate
    for cut in line.slices:
        yield "score", None, f"{cut.by}={cut.value}", cut.score
        yield "pass_rate", None, f"{cut.by}={cut.value}", cut.pass_rate
