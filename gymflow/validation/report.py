"""What validating an environment found."""

from dataclasses import dataclass, field

from gymflow.errors import InputError

SHOWN = 10


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that stops a run: the file and line it stands in, where it stands in one, the field, and what to do."""

    message: str
    source: str | None = None
    line: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}: " if self.line else f"{self.source}: " if self.source else ""
        return f"{place}{f'{self.field}: ' if self.field else ''}{self.message}"


@dataclass(slots=True)
class SplitReport:
    """One split. All faults are counted, the first ones kept; `cached` says that its unchanged file was not read again."""

    split: str
    source: str
    rows: int = 0
    bad_rows: int = 0
    digest: str = ""
    fault_count: int = 0
    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    cached: bool = False


@dataclass(frozen=True, slots=True)
class FixtureReport:
    """One fixture: the reward it has to get and the one it got. With `swapped` the gold answer was a wrong one, in the fields
    of `gold`."""

    line: int
    kind: str
    task_id: str
    expected: float
    reward: float | None
    passed: bool
    swapped: bool = False
    message: str = ""
    gold: tuple[str, ...] = ()


@dataclass(slots=True)
class ValidationReport:
    """Everything about one environment, as it would be run. `faults` are those of the manifest and what it refers to."""

    environment: str
    place: str
    version: str = ""
    splits: list[SplitReport] = field(default_factory=list)
    fixtures: list[FixtureReport] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    fixture_faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def fault_count(self) -> int:
        """All faults, those of rows included."""
        return len(self.faults) + len(self.fixture_faults) + sum(split.fault_count for split in self.splits)

    @property
    def ok(self) -> bool:
        """Whether a run may start."""
        return self.fault_count == 0

    @property
    def all_warnings(self) -> list[str]:
        """The environment's, and what is odd about the rows of its splits, which says nothing about a run."""
        return [*self.warnings, *(f"{one.split}: {warning}" for one in self.splits for warning in one.warnings)]

    @property
    def shown_faults(self) -> list[Fault]:
        """Those of the manifest, the first ones of each split, those of the fixtures and the verifier."""
        return [*self.faults, *(fault for split in self.splits for fault in split.faults), *self.fixture_faults]

    def require(self, skip_bad_rows: bool = False) -> None:
        """InputError with the faults, if there are any. With `skip_bad_rows` those of rows do not count."""
        without_rows = [*self.faults, *self.fixture_faults]
        faults, count = (without_rows, len(without_rows)) if skip_bad_rows else (self.shown_faults, self.fault_count)
        if not count:
            return
        lines = [str(fault) for fault in faults[:SHOWN]]
        if count > len(lines):
            lines.append(f"… {count} faults in all; `gym env validate {self.environment}` lists them")
        raise InputError(f"{self.environment} cannot be run:\n" + "\n".join(lines))
