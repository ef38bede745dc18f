"""`gym eval health`: what is printed, and when the gate fails."""

import json
from pathlib import Path

import pytest

from cli.health import check_run
from gymflow.analysis.health import LIST, REPORT, affected_share, current_report, examine, last_report, worse
from gymflow.analysis.listing import write_listing
from gymflow.contracts.outcome import FailureKind
from gymflow.errors import GateFailed, InputError
from gymflow.store import query

from .conftest import Planter, Said, Sample, answering, tool


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


def test_thresholds_of_ones_own_are_shown_and_change_nothing_that_is_stored(
    planter: Planter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looping = Sample([*[Said(tools=[tool()])] * 3, Said("The answer is (A).")])
    planter.run("r", [[looping], [answering("B")]])
    check(planter, "r")
    stored = (planter.store.layout.run("r").reports / "health.json").read_bytes()
    loose = tmp_path / "loose.yaml"
    loose.write_text("same_call_times: 9\n")
    capsys.readouterr()
    check(planter, "r", thresholds=loose, fail_on="warning")
    assert "2 of 2 rollouts healthy; 0.0% of what applies could not be observed; not stored, for thresholds differ" in (
        out := capsys.readouterr().out
    )
    assert "same_call_times 9 (shipped: 3)" in out
    assert (planter.store.layout.run("r").reports / "health.json").read_bytes() == stored
    assert query(planter.store.root, 'select "check" from findings').objects() == [{"check": "repeated_tool_call"}]
    with pytest.raises(GateFailed, match="repeated_tool_call"):
        check(planter, "r", fail_on="warning")


def test_the_run_that_another_is_held_against_is_not_written_to(planter: Planter, tmp_path: Path) -> None:
    planter.run("before", [[answering("A")], [Sample(failed=FailureKind.MODEL_ERROR)]])
    planter.run("after", [[answering("A")], [Sample(failed=FailureKind.MODEL_ERROR)]])
    reports = planter.store.layout.run("before").reports
    own = tmp_path / "own.yaml"
    own.write_text("identical_chars: 7\n")
    check(planter, "after", against="before", fail_on="error")
    check(planter, "after", against="before", fail_on="error", thresholds=own)
    assert not reports.exists() or not list(reports.iterdir())
    check(planter, "before")
    stored = (reports / "health.json").read_bytes()
    check(planter, "after", against="before", fail_on="error", thresholds=own)
    assert (reports / "health.json").read_bytes() == stored


def test_a_report_by_other_thresholds_or_checks_is_not_current(planter: Planter) -> None:
    reader = planter.store.run(planter.run("r", [[answering("A")]]))
    report = examine(planter.store, "r")
    assert current_report(planter.store, reader) == report
    for change in (
        {"thresholds": report.thresholds | {"same_call_times": 9}},
        {"checks": report.checks[1:]},
    ):
        write_listing(reader, REPORT, report.model_copy(update=change), LIST, [])
        assert current_report(planter.store, reader) == report == last_report(reader)
