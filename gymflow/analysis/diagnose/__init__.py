"""Diagnosis: why rollouts failed, from the store alone.

    diagnosis = await diagnose(Store("gymflow-store"), run_id)
    diagnosis.look_first

Each rule is a file in `rules/` that names rollouts, what is wrong with them, and where that stands; `citations` reads it back.
"""

from gymflow.analysis.diagnose.diagnosing import LIST, REPORT, diagnose, last_diagnosis
from gymflow.analysis.diagnose.limits import Limits, shipped_limits
from gymflow.analysis.diagnose.reading import READINGS, Reader, last_readings

__all__ = [
    "LIST",
    "READINGS",
    "REPORT",
    "Limits",
    "Reader",
    "diagnose",
    "last_diagnosis",
    "last_readings",
    "shipped_limits",
]
