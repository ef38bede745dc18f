"""A finding about the evidence: which check, on which rollout, where, and what was seen."""

from typing import Literal

from gymflow.contracts.base import Contract

Severity = Literal["info", "warning", "error"]


class Finding(Contract):
    """One line of a health report."""

    run_id: str
    check: str
    severity: Severity
    rollout_id: str | None = None
    task_key: str | None = None
    locator: str | None = None
    message: str
