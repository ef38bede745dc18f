"""A small database that is made up from a seed, and the questions about it."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

Difficulty = Literal["easy", "medium", "hard"]
Value = int | str | None
Rows = Sequence[tuple[Value, ...]]

T = TypeVar("T")

FIRST_NAMES = (
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eva",
    "Finn",
    "Gita",
    "Hugo",
    "Iris",
    "Jon",
    "Kira",
    "Leo",
    "Mona",
    "Nils",
    "Olga",
    "Paul",
)
LAST_NAMES = ("Abel", "Brook", "Cole", "Dietz", "Evans", "Fuchs", "Grant", "Holm", "Iqbal", "Jansen", "Kim", "Lopez")


class Draw:
    """Seeded random choices. Only `random()` is asked for, which is the same in every version of Python."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def __call__(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices."""
        return choices[self(0, len(choices) - 1)]

    def some(self, choices: Sequence[T], count: int) -> list[T]:
        """`count` different choices in random order."""
        rest = list(choices)
        return [rest.pop(self(0, len(rest) - 1)) for _ in range(count)]

    def people(self, count: int) -> list[str]:
        """Different full names."""
        return self.some([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES], count)

    def day(self, year: int) -> str:
        """A date of a year as YYYY-MM-DD."""
        return f"{year}-{self(1, 12):02d}-{self(1, 28):02d}"


@dataclass(frozen=True)
class Question:
    """A question with the query that answers it. `ordered`: it asks for the rows in an order."""

    name: str
    difficulty: Difficulty
    text: str
    sql: str
    ordered: bool = False


@dataclass(frozen=True)
class Domain:
    """Tables, a function that fills them, and questions about them."""

    name: str
    tables: Mapping[str, str]
    """Table -> what stands between the brackets of CREATE TABLE, one column a line."""
    fill: Callable[[Draw], Mapping[str, Rows]]
    questions: Sequence[Question]
    seed: int
    """Chosen so that a query with a typical slip gets another result than the right one; the tests try such slips."""

    def ddl(self) -> str:
        """The CREATE TABLE statements."""
        return "\n".join(f"CREATE TABLE {name} (\n{_indented(columns)}\n);" for name, columns in self.tables.items())

    def rows(self, seed: int | None = None) -> Mapping[str, Rows]:
        """Table -> rows; another seed gives other rows."""
        return self.fill(Draw(f"text_to_sql {self.name} {self.seed if seed is None else seed}"))

    def script(self, seed: int | None = None) -> str:
        """The whole database as SQL."""
        rows = self.rows(seed)
        inserts = [
            f"INSERT INTO {table} VALUES\n"
            + ",\n".join(f"({', '.join(map(literal, row))})" for row in rows[table])
            + ";"
            for table in self.tables
        ]
        return "\n".join([self.ddl(), *inserts])


def literal(value: Any) -> str:
    """A value as SQL."""
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _indented(columns: str) -> str:
    return "\n".join(f"  {line.strip()}" for line in columns.strip().splitlines())
