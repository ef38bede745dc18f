"""What an import or an export did."""

from pydantic import Field

from gymflow.contracts.base import Contract


class ImportReport(Contract):
    """The run that a file of another tool became."""

    run_id: str
    format: str
    environment: str
    verifier: str = Field(description="What `gym eval reverify` would score with.")
    verdict_set: str | None = Field(description="The set with the file's own rewards; null: it has none.")
    tasks: int
    rollouts: int
    completed: int
    failed: int
    scored: int
    gaps: dict[str, int] = Field(description="What the file does not show, by gap code: in how many rollouts.")
    repeated: int = Field(0, description="Rollouts that stand in the file again, and are equal: counted once.")
    conflicts: list[str] = Field(
        default_factory=list,
        description="Rollouts that stand in the file again under the same id, and differ: where, and which one counts.",
    )
    misfits: int = Field(0, description="Tasks whose row does not fit the verifier.")
    notes: list[str] = Field(default_factory=list)


class ExportReport(Contract):
    """The files that a run was written to."""

    run_id: str
    format: str
    verdict_set: str | None
    files: list[str]
    rollouts: int
    without_reward: int = Field(description="Of them, failed or not scored.")
    missing: int = Field(description="Planned rollouts of which nothing is stored; they are not exported.")
    left_out: dict[str, int] = Field(
        default_factory=dict,
        description="What the format has no place for, in how many rollouts; kept under `gymflow`.",
    )
