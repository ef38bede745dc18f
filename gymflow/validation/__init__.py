"""Validation: what can be known to be wrong before anything is sampled."""

from gymflow.validation.cache import SplitCache
from gymflow.validation.environment import check_harness, unfit, validate_environment, validate_run
from gymflow.validation.licences import licence_fault
from gymflow.validation.report import Fault, FixtureReport, SplitReport, ValidationReport

__all__ = [
    "Fault",
    "FixtureReport",
    "SplitCache",
    "SplitReport",
    "ValidationReport",
    "check_harness",
    "licence_fault",
    "unfit",
    "validate_environment",
    "validate_run",
]
