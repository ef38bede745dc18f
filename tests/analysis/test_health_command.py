"""`gym eval health`: what is printed, and when the gate fails."""

import json

import pytest

from cli.health import check_run
from gymflow.analysis.health import affected_share, examine, last_report, worse
from gymflow.contracts.outcome import FailureKind
from gymflow.errors import GateFailed, InputError

from .conftest import Planter, Sample, answering


def check(planter: Planter, run: str, **options: object) -> None:
    defaults: dict[str, object] = {
        "against": None,
        "fail_on": None,
        "thresholds": None,
        "store": str(planter.store.root),
    }
    defaults |= {"inline": True, "json": False}
    check_run(run, **(defaults | options))  # type: ignore[arg-type]


def test_a_gate_fails_on_its_severity_and_above(planter: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    planter.run("bad", [[answering("A")], [Sample(failed=FailureKind.MODEL_ERROR)], [Sample(missing=True)]])
    planter.run("good", [[answering("A")], [answering("B")]])
    with pytest.raises(GateFailed, match=r"failed_rollout \(1\)$"):
        check(planter, "bad", fail_on="error")
    with pytest.raises(GateFailed, match=r"failed_rollout \(1\), missing_rollout \(1\)$"):
        check(planter, "bad", fail_on="warning")
    out = capsys.readouterr().out
    assert "1 of 3 rollouts healthy, 1 unhealthy (1 errors, 1 warnings), 1 missing; 0.0% of what applies" in out
    assert "bad-1 rollout/failure: model_error after 0 attempts: connection refused" in out
    check(planter, "good", fail_on="info")
    with pytest.raises(InputError, match="warning"):
        check(planter, "good", fail_on="warnings")


def test_against_another_run_the_gate_is_on_what_got_worse(planter: Planter) -> None:
    planter.run("before", [[answering("A")], [Sample(failed=FailureKind.MODEL_ERROR)]])
    planter.run("after", [[answering("A")], [Sample(failed=FailureKind.MODEL_ERROR)]])
    planter.run("worse", [[Sample(failed=FailureKind.MODEL_ERROR)], [Sample(failed=FailureKind.MODEL_ERROR)]])
    check(planter, "after", against="before", fail_on="error")
    with pytest.raises(GateFailed, match="failed_rollout"):
        check(planter, "worse", against="before", fail_on="error")


def test_shares_of_tasks_are_of_tasks_and_more_repeats_do_not_thin_them(planter: Planter) -> None:
    down = Sample(failed=FailureKind.MODEL_ERROR)
    planter.run("before", [[down] * 2, *[[answering("A"), answering("B")]] * 3])
    planter.run("after", [[down] * 6, [down] * 6, *[[answering("A"), answering("B")] * 3] * 6])
    planter.run("worse", [[down] * 4, [down] * 4, *[[answering("A"), answering("B")] * 2] * 2])
    reports = {run: examine(planter.store, run) for run in ("before", "after", "worse")}
    shares = {}
    for run, report in reports.items():
        [found] = [check for check in report.checks if check.check == "always_unhealthy"]
        shares[run] = affected_share(found, report)
    assert shares == {"before": 1 / 4, "after": 2 / 8, "worse": 2 / 4}
    assert "always_unhealthy" in {check.check for check in worse(reports["worse"], reports["before"])}
    assert "always_unhealthy" not in {check.check for check in worse(reports["after"], reports["before"])}


def test_json_is_the_stored_report(planter: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    planter.run("bad", [[answering("A")], [Sample(missing=True)]])
    check(planter, "bad", json=True)
    report = last_report(planter.store.run("bad"))
    assert report is not None
    assert json.loads(capsys.readouterr().out) == report.model_dump(mode="json")
    assert report.missing == 1
    stored = json.loads((planter.store.layout.run("bad").reports / "health.json").read_bytes())
    assert [finding["check"] for finding in stored["findings"]] == ["missing_rollout"]
