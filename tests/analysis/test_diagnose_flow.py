"""The diagnose flow on a run that was really played: its report lies with the run, and says what there is to say."""

import asyncio
import json
from pathlib import Path

import pytest

from cli.diagnose import diagnose_run
from flows.diagnose import diagnose
from flows.evaluate import evaluate
from gymflow.analysis.diagnose import last_diagnosis
from gymflow.analysis.health import last_report
from gymflow.store import Store
from tests.support.runs import scripted


async def test_a_played_run_is_checked_and_diagnosed(store: Path) -> None:
    await evaluate(scripted(repeats=2), "answers")
    health = last_report(Store(store).run("answers"))
    assert health is not None
    # The scripted endpoint reports no tokens, so that what is said of tokens cannot be checked.
    assert (health.rollouts, health.unhealthy, health.unobserved) == (8, 0, 8)
    assert {check.check for check in health.checks if check.findings} == {"missing_usage"}

    report = await diagnose("answers")
    assert report == last_diagnosis(Store(store).run("answers"))
    assert {cause.cause for cause in report.causes} <= {"never_right"}
    assert report.passed + report.labelled == 8
    text = (store / "runs" / "answers" / "reports" / "diagnosis.md").read_text()
    for proposal in report.proposals:
        assert proposal.supported_by[0] in text


async def test_without_health_there_is_no_report(store: Path) -> None:
    await evaluate(scripted(), "quick", health=False)
    assert last_report(Store(store).run("quick")) is None


def test_the_command_prints_tables_or_json(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(evaluate(scripted(), "answers"))
    diagnose_run("answers", against=None, store=None, inline=True, json=False)
    out = capsys.readouterr().out
    assert "look first" in out and "root causes" in out and "diagnosis.md" in out
    diagnose_run("latest", against="answers", store=None, inline=True, json=True)
    found = json.loads(capsys.readouterr().out)
    assert [change["by_label"] for change in found["changes"]] == [[]]
