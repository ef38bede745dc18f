"""Running the checks over a run, and keeping what they found."""

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa

from gymflow.analysis.facts import current_set, facts
from gymflow.analysis.health.catalog import Check, Found, checks
from gymflow.analysis.health.thresholds import Thresholds, load_thresholds
from gymflow.analysis.listing import read_head, write_listing
from gymflow.contracts.finding import Finding
from gymflow.contracts.health import CheckResult, HealthReport
from gymflow.store import RunReader, Store
from gymflow.store.memory import release

EXAMPLES = 3
REPORT, LIST = "health.json", "findings"
_BATCH = 2000
_FOUND = pa.schema([(name, pa.string()) for name in ("rollout_id", "task_key", "locator", "message")])

_TABLES = """
create table facts.findings (
    check_name varchar, severity varchar, rollout_id varchar, task_key varchar, locator varchar, message varchar
);
create table facts.unobserved (rollout_id varchar, checks bigint);
"""
_TALLY = """
select
    count(*) filter (status is null) as missing,
    count(*) filter (status is not null and unhealthy) as unhealthy,
    count(*) filter (status is not null and unhealthy is null and u.checks > 0) as unobserved,
    count(*) as rollouts,
    count(distinct task_key) as tasks
from facts.rollouts
left join (
    select distinct rollout_id, true as unhealthy from facts.findings where severity <> 'info' and rollout_id is not null
) using (rollout_id)
left join (select rollout_id, sum(checks) as checks from facts.unobserved group by rollout_id) u using (rollout_id)
"""
_FINDINGS = """
select check_name, severity, rollout_id, task_key, locator, message from facts.findings
order by case severity when 'error' then 0 when 'warning' then 1 else 2 end, check_name, rollout_id, locator
"""


def examine(
    store: Store,
    run_id: str,
    thresholds: Thresholds | None = None,
    verdict_set: str | None = None,
    *,
    keep: bool = True,
) -> HealthReport:
    """Run all checks and write `reports/health.json`; the view `findings` shows what they found.

    What is found with other thresholds than the shipped ones, or without `keep`, is returned and not written: a look at a run does
    not change what is known of it.
    """
    shipped = load_thresholds()
    limits = thresholds or shipped
    reader = store.run(run_id)
    records = reader.next_seq()
    with facts(store, reader.run_id, verdict_set) as connection:
        connection.execute(_TABLES)
        results = [_run(connection, reader, check, limits) for check in checks()]
        missing, unhealthy, unobserved, rollouts, tasks = _one(connection, _TALLY)
        evaluated = sum(result.evaluated for result in results)
        blind = sum(result.unobserved for result in results)
        report = HealthReport(
            run_id=reader.run_id,
            verdict_set=verdict_set or current_set(reader),
            records=records,
            rollouts=rollouts,
            tasks=tasks,
            healthy=rollouts - missing - unhealthy - unobserved,
            unhealthy=unhealthy,
            unobserved=unobserved,
            missing=missing,
            unobserved_share=blind / (evaluated + blind) if evaluated + blind else 0.0,
            thresholds=limits.model_dump(),
            checks=results,
        )
        if keep and limits == shipped:
            write_listing(reader, REPORT, report, LIST, _findings(connection, reader.run_id))
    return report


def last_report(reader: RunReader) -> HealthReport | None:
    """The report of the last examination; None where there was none."""
    return read_head(reader, REPORT, HealthReport, LIST)


def current_report(store: Store, reader: RunReader, *, keep: bool = True) -> HealthReport:
    """The last report if it is of what the run holds now, by today's checks and thresholds; else a new one."""
    report = last_report(reader)
    if report is not None and _current(report, reader):
        return report
    return examine(store, reader.run_id, keep=keep)


def _current(report: HealthReport, reader: RunReader) -> bool:
    made_of = (report.verdict_set, report.rollouts, report.records)
    made_by = (report.thresholds, {check.check for check in report.checks})
    return made_of == (current_set(reader), reader.planned(), reader.next_seq()) and made_by == (
        load_thresholds().model_dump(),
        {check.name for check in checks()},
    )


def _run(connection: duckdb.DuckDBPyConnection, reader: RunReader, check: Check, limits: Thresholds) -> CheckResult:
    if check.query is not None:
        [statement] = duckdb.extract_statements(check.query)
        _insert(connection, check, check.query, {name: getattr(limits, name) for name in statement.named_parameters})
    else:
        assert check.find is not None
        if rows := list(check.find(connection, reader, limits)):
            connection.register("_found", _table(rows))
            _insert(connection, check, "select * from _found")
            connection.unregister("_found")
    findings, affected = _one(
        connection,
        "select count(*), count(distinct coalesce(rollout_id, task_key, locator)) from facts.findings where check_name = ?",
        check.name,
    )
    evaluated, not_applicable, unobserved = _coverage(connection, check) if check.scope == "rollout" else (0, 0, 0)
    release(connection)
    return CheckResult(
        check=check.name,
        severity=check.severity,
        about=check.about,
        scope=check.scope,
        findings=findings,
        affected=affected,
        evaluated=evaluated,
        not_applicable=not_applicable,
        unobserved=unobserved,
        examples=_examples(connection, reader.run_id, check) if findings else [],
    )


def _insert(
    connection: duckdb.DuckDBPyConnection, check: Check, query: str, parameters: dict[str, Any] | None = None
) -> None:
    of_rollout = check.scope == "rollout"
    connection.execute(
        f"""
        insert into facts.findings
        select $check_name, $severity, q.rollout_id, {"f" if of_rollout else "q"}.task_key, q.locator, q.message
        from ({query}
        ) q {"left join facts.rollouts f on f.rollout_id = q.rollout_id" if of_rollout else ""}
        """,
        {"check_name": check.name, "severity": check.severity} | (parameters or {}),
    )


def _coverage(connection: duckdb.DuckDBPyConnection, check: Check) -> tuple[int, int, int]:
    """Stored rollouts in which the check could be made, had nothing to look at, could not be made."""
    blind = f"status is not null and ({check.applies}) and not ({check.observed})"
    connection.execute(f"insert into facts.unobserved select rollout_id, 1 from facts.rollouts where {blind}")
    stored, applies, unobserved = _one(
        connection,
        f"""
        select count(*), count(*) filter ({check.applies}), count(*) filter (({check.applies}) and not ({check.observed}))
        from facts.rollouts where status is not null
        """,
    )
    return applies - unobserved, stored - applies, unobserved


def _examples(connection: duckdb.DuckDBPyConnection, run_id: str, check: Check) -> list[Finding]:
    rows = connection.execute(
        "select rollout_id, task_key, locator, message from facts.findings where check_name = ? "
        "order by rollout_id, locator limit ?",
        [check.name, EXAMPLES],
    ).fetchall()
    return [
        Finding(
            run_id=run_id, check=check.name, severity=check.severity, rollout_id=a, task_key=b, locator=c, message=d
        )
        for a, b, c, d in rows
    ]


def _table(rows: list[Found]) -> pa.Table:
    return pa.table([pa.array(column, pa.string()) for column in zip(*rows, strict=True)], _FOUND)


def _findings(connection: duckdb.DuckDBPyConnection, run_id: str) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(_FINDINGS)
    while batch := cursor.fetchmany(_BATCH):
        for check, severity, *further in batch:
            yield {"run_id": run_id, "check": check, "severity": severity} | dict(
                zip(_FOUND.names, further, strict=True)
            )


def _one(connection: duckdb.DuckDBPyConnection, query: str, *parameters: Any) -> tuple[Any, ...]:
    [row] = connection.execute(query, list(parameters)).fetchall()
    return tuple(row)
