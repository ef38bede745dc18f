"""A pytest plugin that writes down each test's outcome and that the session came to its end. Runs in the sandbox."""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, check-untyped-defs=False

import json
import os

_PLACE = os.environ.pop("GYMFLOW_REPORT")
_OUT = open(int(_PLACE) if _PLACE.isdigit() else _PLACE, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def _tell(**line):
    _OUT.write(json.dumps(line) + "\n")
    _OUT.flush()


def pytest_collectreport(report):
    if report.outcome != "passed":
        _tell(id=report.nodeid, when="collect", outcome=report.outcome)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        crash = getattr(report.longrepr, "reprcrash", None)
        error = getattr(crash, "message", "")[:300]
        _tell(id=report.nodeid, when=report.when, outcome=report.outcome, error=error)


def pytest_sessionfinish(session, exitstatus):
    _tell(end=int(exitstatus))
