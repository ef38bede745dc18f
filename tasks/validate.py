"""Validate: everything that can be known to be wrong before a model is called."""

import logging

from gymflow.contracts.run import RunConfig
from gymflow.registry import Registry
from gymflow.validation import validate_run
from tasks import step

log = logging.getLogger(__name__)


@step(task_run_name="validate")
async def validate(config: RunConfig) -> list[str]:
    """Check every environment of the run against its data, its harnesses and its verifier's fixtures. Returns warnings."""
    reports = await validate_run(config, Registry())
    warnings = [f"{report.environment}: {warning}" for report in reports for warning in report.warnings]
    for warning in warnings:
        log.warning("%s", warning)
    return warnings
