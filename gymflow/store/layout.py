"""Where things lie in a store folder, and the names of runs and rollouts."""

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from gymflow.errors import InputError

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def rollout_id(run_id: str, plan_index: int) -> str:
    """The name of the one sample that a run holds for a row of its plan."""
    return f"{run_id}-{plan_index}"


def plan_index_of(rollout: str) -> int:
    """The plan index within a rollout id."""
    return int(rollout.rpartition("-")[2])


def leftover(folder: Path) -> Path:
    """Where what lies in a run's folder is kept when the run goes on without it: a name that is no run's, and not taken yet."""
    numbered = (folder.with_name(f".leftover-{folder.name}.{number}") for number in itertools.count())
    return next(kept for kept in numbered if not kept.exists())


def check_run_id(run_id: str) -> str:
    """The run id itself. Raises InputError where it could not be the name of a folder."""
    if not _RUN_ID.fullmatch(run_id):
        raise InputError(
            f"run id {run_id!r}: use letters, digits, '.', '_' and '-', at most 128, no leading punctuation"
        )
    return run_id


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The paths of one run."""

    folder: Path

    @property
    def document(self) -> Path:
        return self.folder / "run.json"

    @property
    def plan(self) -> Path:
        return self.folder / "plan.parquet"

    @property
    def tasks(self) -> Path:
        return self.folder / "tasks.parquet"

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def lease(self) -> Path:
        return self.folder / "writer.lock"

    @property
    def journal(self) -> Path:
        return self.folder / "journal"

    @property
    def reports(self) -> Path:
        return self.folder / "reports"

    @property
    def decisions(self) -> Path:
        return self.folder / "decisions"

    def segment(self, number: int) -> Path:
        """A journal segment."""
        return self.journal / f"{number:06d}.jsonl"

    def part(self, table: str, file: str) -> Path:
        """A Parquet part by the name that the manifest has for it."""
        return self.folder / "parts" / table / file


@dataclass(frozen=True, slots=True)
class StoreLayout:
    """The paths of a store."""

    root: Path

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def judgements(self) -> Path:
        return self.root / "judgements"

    def run(self, run_id: str) -> RunLayout:
        return RunLayout(self.runs / run_id)
