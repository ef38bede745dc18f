"""What a finished run deserves a look at, below its scorecard: its health, and what the diagnosis says to open first."""

from rich.console import Console

from cli.terminal import one_line
from gymflow.analysis.diagnose import last_diagnosis
from gymflow.analysis.health import last_report
from gymflow.analysis.health.sheets import health_line
from gymflow.contracts.report import Scorecard
from gymflow.store import Store


def put_attention(console: Console, card: Scorecard, *, health: bool, diagnosis: bool) -> None:
    """Lines of the last reports of a run; nothing where there is none, or nothing to look at."""
    reader = Store(card.store).run(card.run_id)
    if health and (report := last_report(reader)) is not None:
        style = "yellow" if report.unhealthy else ""
        console.print(f"health  {health_line(report)}", style=style, soft_wrap=True)
    if diagnosis and (found := last_diagnosis(reader)) is not None and found.look_first:
        console.print("look first")
        for line in found.look_first:
            console.print(f"  {one_line(line)}", soft_wrap=True)
