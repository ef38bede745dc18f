"""A query that must return the rows of the reference query.

    row:    {"database": "CREATE TABLE t(a INT); INSERT INTO t VALUES (1), (2);", "expected_sql": "SELECT max(a) FROM t"}
    answer: ```sql
            SELECT a FROM t ORDER BY a DESC LIMIT 1
            ```

Both queries run in sandboxes of their own, each on a fresh copy of the database, which they can only read; the rows are compared
out here.
"""

import json
import math
import re
from pathlib import Path
from typing import Any, Literal

from gymflow.verifiers._code import fenced
from pydantic import AliasChoices, BaseModel, Field, model_validator

from gymflow.sandboxes import SandboxLimits, SandboxSpec, run_once
from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier, VerifierError

Row = list[Any]
KEEP_BYTES = 32 << 20
RUNNER = Path(__file__).with_name("_sql_runner.py")

_STATEMENT = re.compile(
    r"^\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(?:SELECT|WITH|VALUES|FROM|TABLE)\b", re.IGNORECASE | re.DOTALL
)
_ORDER = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)


class SqlResultTask(BaseModel):
    """`database`: a script that makes the tables. `ordered`: whether the order of rows counts; default: whether the
    reference orders its outermost result."""

    database: str = Field(validation_alias=AliasChoices("database", "sql_context"))
    dialect: Literal["sqlite", "duckdb"] = "sqlite"
    expected_sql: str | None = Field(None, validation_alias=AliasChoices("expected_sql", "gt_sql"))
    expected_rows: list[Row] | None = None
    ordered: bool | None = None

    @model_validator(mode="after")
    def _one_reference(self) -> "SqlResultTask":
        if (self.expected_sql is None) == (self.expected_rows is None):
            raise ValueError("a task has either `expected_sql` or `expected_rows`")
        return self


class Result(BaseModel):
    """What a query came to."""

    columns: list[str] = Field(default_factory=list)
    rows: list[Row] = Field(default_factory=list)
    complete: bool = True
    error: str | None = None


class SqlResult(Verifier[SqlResultTask]):
    """Reward 1.0 when the result sets are equal, else 0.0. Names of columns do not count, their order does."""

    needs = frozenset({"response", "sandbox"})
    extracts = True
    includes = ("_code.py", "_sql_runner.py")
    distributions = ("duckdb",)

    class Parameters(BaseParameters):
        """`tolerance` is for numbers with a fraction: absolute below 1, relative above. Whole numbers are equal or not."""

        time_limit_s: float = Field(10.0, gt=0)
        memory_mib: int = Field(512, ge=64)
        max_rows: int = Field(10_000, ge=1)
        tolerance: float = Field(1e-6, ge=0)

    def __init__(self, parameters: BaseModel | None = None) -> None:
        super().__init__(parameters)
        self._references: dict[tuple[str, str, str], Result] = {}

    async def verify(self, task: SqlResultTask, evidence: Evidence) -> Verdict:
        sql = extract_sql(evidence.final_text)
        if sql is None:
            return Verdict(reward=0.0, reason="no query in the answer")
        expected = await self._expected(task)
        result = await self._run(task, sql)
        ordered = task.ordered if task.ordered is not None else orders(task.expected_sql or "")
        reason = result.error or difference(result, expected, ordered=ordered, tolerance=self.parameters.tolerance)
        return Verdict(reward=float(reason is None), extracted_answer=sql, reason=reason)

    async def _expected(self, task: SqlResultTask) -> Result:
        if task.expected_sql is None:
            return Result(rows=task.expected_rows or [])
        key = (task.dialect, task.database, task.expected_sql)
        if key not in self._references:
            result = await self._run(task, task.expected_sql)
            if result.error or not result.complete:
                raise VerifierError(f"the reference query fails: {result.error or 'too many rows'}")
            self._references[key] = result
        return self._references[key]

    async def _run(self, task: SqlResultTask, sql: str) -> Result:
        job = {"dialect": task.dialect, "database": task.database, "sql": sql, "max_rows": self.parameters.max_rows}
        limits = SandboxLimits(memory_mib=self.parameters.memory_mib, processes=64, disk_mib=256)
        ran = await run_once(
            SandboxSpec(limits=limits),
            ["python3", "-I", "-S", "/opt/gymflow/runner.py", "/work/job.json"],
            files={"/opt/gymflow/runner.py": RUNNER.read_bytes(), "/work/job.json": json.dumps(job).encode()},
            timeout_s=self.parameters.time_limit_s,
            keep_bytes=KEEP_BYTES,
        )
        match ran.outcome:
            case "timeout":
                return Result(error=f"not done within {self.parameters.time_limit_s:g} s")
            case "oom":
                return Result(error="the query used more memory than allowed")
        if not ran.ok or ran.truncated:
            if ran.outcome == "exited" and not ran.truncated:
                raise VerifierError(f"the query runner failed: {ran.text().strip()[-500:]}")
            return Result(error=f"the query's process ended: {ran.outcome}")
        return Result.model_validate_json(ran.stdout)


def extract_sql(text: str) -> str | None:
    """The query of an answer: its last SQL block, else the whole text where it is a query."""
    code = fenced(text, ("sql", "sqlite", "duckdb", "postgresql", "mysql"))
    if code is None and _STATEMENT.match(text):
        code = text
    return code.strip().rstrip(";").strip() if code and code.strip() else None


def orders(sql: str) -> bool:
    """Whether a query orders its outermost result.

    >>> orders("SELECT a FROM t ORDER BY a"), orders("SELECT * FROM (SELECT a FROM t ORDER BY a)"), orders("SELECT ') ORDER BY'")
    (True, False, False)
    """
    bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", "''", sql, flags=re.DOTALL)
    depth, outermost = 0, []
    for character in bare:
        depth += (character == "(") - (character == ")")
        outermost.append(character if depth == 0 else " ")
    return _ORDER.search("".join(outermost)) is not None


def difference(result: Result, expected: Result, *, ordered: bool, tolerance: float) -> str | None:
    """In what a result differs from the expected one; None where they are equal."""
    if not result.complete:
        return "too many rows"
    if len(result.rows) != len(expected.rows):
        return f"{len(result.rows)} rows, expected {len(expected.rows)}"
    ours_wide, theirs_wide = _width(result), _width(expected)
    if theirs_wide is not None and ours_wide != theirs_wide:
        return f"{ours_wide or 0} columns, expected {theirs_wide}"
    ours, theirs = result.rows, expected.rows
    if not ordered:
        ours, theirs = sorted(ours, key=_sort_key), sorted(theirs, key=_sort_key)
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if not all(_same(a, b, tolerance) for a, b in zip(one, other, strict=True)):
            return f"row {number + 1} is {one!r:.200}, expected {other!r:.200}"
    return None


def _width(result: Result) -> int | None:
    """How many columns; None where rows that are none came without their columns."""
    return len(result.columns) or (len(result.rows[0]) if result.rows else None)


def _same(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        if a == b or not (math.isfinite(a) and math.isfinite(b)):
            return a == b
        if isinstance(b, int) and (isinstance(a, int) or round(a) != b):
            return False
        if isinstance(a, int) and round(b) != a:
            return False
        if _whole(a) and _whole(b):
            return False
        return abs(a - b) <= tolerance * max(1.0, abs(b))
    return type(a) is type(b) and bool(a == b)


def _whole(value: float) -> bool:
    """Whether it stands for one whole number: above 2^53 a float stands for several."""
    return value == int(value) and abs(value) < 1 << 53


def _sort_key(row: Row) -> list[tuple[int, float, str]]:
    """An order in which numbers that are almost equal come to lie side by side, and whole ones in their own."""
    near = [(0, float(f"{v:.6g}"), "") if _number(v) else (1, 0.0, json.dumps(v)) for v in row]
    return near + [(0, v if isinstance(v, int) or _whole(v) else 0.0, "") for v in row if _number(v)]


def _number(value: Any) -> bool:
    return isinstance(value, int | float)
