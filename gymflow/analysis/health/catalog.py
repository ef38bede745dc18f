"""The checks: one file each in `checks/`, an SQL query or a Python function.

A query begins with comments: what it finds, then `severity`, `scope` (default: rollout) and, over the columns of facts.rollouts,
`applies` (is there anything to look at?) and `observed` (does the evidence show it?). It yields `rollout_id`, `locator` and
`message`, of another scope also `task_key`; thresholds are its parameters.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import duckdb

from gymflow.analysis.health.checks import damaged_record, repetition_loop
from gymflow.analysis.health.thresholds import Thresholds
from gymflow.contracts.finding import Severity
from gymflow.store import RunReader

Scope = Literal["run", "task", "rollout"]
Found = tuple[str | None, str | None, str | None, str]
"""rollout_id, task_key, locator, message."""

_FIELD = re.compile(r"-- (severity|scope|applies|observed): (.+)")


@dataclass(frozen=True, slots=True)
class Check:
    """One check. Either `query` or `find`."""

    name: str
    about: str
    severity: Severity
    scope: Scope = "rollout"
    applies: str = "true"
    observed: str = "true"
    query: str | None = None
    find: Callable[[duckdb.DuckDBPyConnection, RunReader, Thresholds], Iterable[Found]] | None = None


@cache
def checks() -> tuple[Check, ...]:
    """All checks by name; those of tasks come last, since they stand on the others' findings."""
    found = [
        _parsed(entry.name.removesuffix(".sql"), entry.read_text())
        for entry in files(__package__).joinpath("checks").iterdir()
        if entry.name.endswith(".sql")
    ]
    for module in (damaged_record, repetition_loop):
        about, _, fields = (module.__doc__ or "").partition("\n\n")
        header = "\n".join(f"-- {line}" for line in (about, *fields.strip().splitlines()))
        name = module.__name__.rpartition(".")[2]
        found.append(_parsed(name, header, module.find))
    return tuple(sorted(found, key=lambda check: (check.scope == "task", check.name)))


def _parsed(
    name: str,
    text: str,
    find: Callable[[duckdb.DuckDBPyConnection, RunReader, Thresholds], Iterable[Found]] | None = None,
) -> Check:
    about = text.partition("\n")[0].removeprefix("-- ")
    fields = dict(_FIELD.findall(text))
    severity, scope = fields["severity"], fields.get("scope", "rollout")
    assert severity in get_args(Severity) and scope in get_args(Scope), name
    return Check(
        name=name,
        about=about,
        severity=severity,
        scope=scope,
        applies=fields.get("applies", "true"),
        observed=fields.get("observed", "true"),
        query=None if find else text,
        find=find,
    )
