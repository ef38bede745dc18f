"""From rules to one label for each rollout that did not pass."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import get_args

import duckdb

from gymflow.analysis.diagnose.citations import check_citations
from gymflow.analysis.diagnose.limits import Limits
from gymflow.contracts.diagnosis import Intervention, RootCause
from gymflow.store.memory import release

_FIELD = re.compile(r"-- (root_cause|intervention|rank): (.+)")

_TABLES = """
create table facts.rules (cause varchar, about varchar, root_cause varchar, intervention varchar, rank bigint);
create table facts.citations (
    rollout_id varchar, cause varchar, rank bigint, cited varchar, locator varchar, shown varchar
);
"""
# Agents agree with themselves where they know, and where they are wrong for a reason: only the first kind tells of a wrong gold.
_UNANIMOUS = """
create table facts.unanimous as
with agreed as (
    select task_index, any_value(task_key) as task_key, environment, agent, any_value(extracted_answer) as answer,
           bool_or(passed) as solved, count(*) as repeats
    from facts.rollouts
    where outcome = 'scored'
    group by task_index, environment, agent
    having count(*) >= $suspect_repeats and count(extracted_answer) = count(*) and count(distinct extracted_answer) = 1
)
select
    *,
    not solved
    and count(*) filter (solved) over agents >= $suspect_repeats
    and count(*) filter (solved) over agents >= $suspect_reliability * count(*) over agents as suspect
from agreed
window agents as (partition by environment, agent)
"""
# Rollouts that did not pass and have no extracted answer, whose last message says that the agent cannot, with its words.
_GIVING_UP = """
create table facts.giving_up as
with suspected as (
    select f.rollout_id, from_json(e.response -> '$.output', '[{"type": "VARCHAR", "content": "JSON"}]') as items
    from facts.rollouts f
    join evidence e using (rollout_id)
    where f.extracted_answer is null and not coalesce(f.passed, false) and regexp_matches(e.response, $giving_up, 'i')
),
said as (
    select
        rollout_id,
        array_to_string(
            list_transform(
                list_filter(items, lambda i: coalesce(i.type, 'message') = 'message'),
                lambda i: if(
                    json_type(i.content) = 'VARCHAR', i.content ->> '$',
                    array_to_string(json_extract_string(i.content, '$[*].text'), ' ')
                )
            ), ' '
        ) as text
    from suspected
)
select rollout_id, regexp_extract(text, $giving_up, 0, 'i') as words from said where regexp_matches(text, $giving_up, 'i')
"""
_LABELS = """
create table facts.labels as
select c.rollout_id, min_by(r.cause, r.rank) as cause, min(r.rank) as rank
from (select distinct rollout_id, cause from facts.checked group by rollout_id, cause having bool_and(holds)) c
join facts.rules r using (cause)
group by c.rollout_id
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """One file of `rules/`."""

    cause: str
    about: str
    root_cause: RootCause
    intervention: Intervention
    rank: int
    query: str


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, the one that wins first."""
    found = [
        _parsed(entry.name.removesuffix(".sql"), entry.read_text())
        for entry in files(__package__).joinpath("rules").iterdir()
        if entry.name.endswith(".sql")
    ]
    return tuple(sorted(found, key=lambda rule: rule.rank))


def apply_rules(connection: duckdb.DuckDBPyConnection, run_id: str, verdict_set: str | None, limits: Limits) -> None:
    """Fill `facts.rules`, `facts.suspects`, `facts.giving_up` and `facts.citations`: what the rules say of which rollout, and where that stands. The
    tables `facts.lenient` and `facts.loops` are there already."""
    connection.execute(_TABLES)
    values = limits.model_dump() | {"run_id": run_id, "verdict_set": verdict_set}
    _execute(connection, _UNANIMOUS, values)
    _execute(connection, _GIVING_UP, values)
    for rule in rules():
        connection.execute(
            "insert into facts.rules values (?, ?, ?, ?, ?)",
            [rule.cause, rule.about, rule.root_cause, rule.intervention, rule.rank],
        )
        _execute(
            connection,
            f"""
            insert into facts.citations
            select distinct q.rollout_id, '{rule.cause}', {rule.rank}, q.cited, q.locator, q.shown
            from ({rule.query}
            ) q join facts.rollouts r on r.rollout_id = q.rollout_id
            where r.status is not null and not coalesce(r.passed, false)
            """,
            values,
        )
    suspects = files(__package__).joinpath("suspects.sql").read_text()
    for statement in duckdb.extract_statements(suspects):
        _execute(connection, statement.query, values)
    connection.execute("checkpoint facts")


def settle(connection: duckdb.DuckDBPyConnection, run_id: str, verdict_set: str | None) -> None:
    """Check what was cited (`facts.checked`, instead of `facts.citations`) and give each rollout its label (`facts.labels`:
    rollout_id, cause). A rule speaks of a rollout only if everything that it cites for it holds."""
    check_citations(connection, run_id, verdict_set)
    connection.execute("drop table facts.citations")
    connection.execute(_LABELS)
    release(connection)


def _execute(connection: duckdb.DuckDBPyConnection, query: str, values: dict[str, object]) -> None:
    [statement] = duckdb.extract_statements(query)
    connection.execute(statement, {name: values[name] for name in statement.named_parameters})
    release(connection)


def _parsed(cause: str, text: str) -> Rule:
    fields = dict(_FIELD.findall(text))
    assert fields["root_cause"] in get_args(RootCause) and fields["intervention"] in get_args(Intervention), cause
    return Rule(
        cause=cause,
        about=text.partition("\n")[0].removeprefix("-- "),
        root_cause=fields["root_cause"],
        intervention=fields["intervention"],
        rank=int(fields["rank"]),
        query=text,
    )
