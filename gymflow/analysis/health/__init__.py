"""Health: what the evidence of a run says about itself.

    report = examine(Store("gymflow-store"), run_id)
    report.healthy, report.unhealthy, report.unobserved

Each check is a file in `checks/`; `catalog` says how they are written.
"""

from gymflow.analysis.health.catalog import Check, checks
from gymflow.analysis.health.examining import LIST, REPORT, current_report, examine, last_report
from gymflow.analysis.health.gate import SEVERITIES, affected_share, hold_gate, worse
from gymflow.analysis.health.thresholds import Thresholds, load_thresholds

__all__ = [
    "LIST",
    "REPORT",
    "SEVERITIES",
    "Check",
    "Thresholds",
    "affected_share",
    "checks",
    "current_report",
    "examine",
    "hold_gate",
    "last_report",
    "load_thresholds",
    "worse",
]
