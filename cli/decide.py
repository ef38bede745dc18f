"""`gym eval decide`: choose what to do about a run, and keep the choice."""

import asyncio
import getpass
import sys

import typer

from cli.choosing import existing_store, store_option
from cli.recording import recording
from cli.sheets import put_sheets
from cli.tables import put_table
from cli.terminal import command, print_json, results
from gymflow.analysis.decide import choice_of, choices, ranked
from gymflow.analysis.decide.sheets import choice_sheets, decision_sheets
from gymflow.contracts.decision import Decision
from gymflow.contracts.diagnosis import Diagnosis
from gymflow.errors import InputError
from gymflow.store import Store


def decide_run(
    run: str,
    *,
    choose: str | None,
    decided_by: str | None,
    reason: str | None,
    store: str | None,
    inline: bool,
    json: bool,
) -> None:
    """Record a decision and print it. What was not said is asked for on a terminal; in a pipe it is an error."""
    place = existing_store(store)
    run_id = place.resolve_run_id(run)
    with recording(inline):
        from flows.decide import decide

        if choose is None or reason is None:
            choose, reason = _ask(place, run_id, choose, reason)
        by = decided_by or getpass.getuser()
        decision: Decision = asyncio.run(decide(run_id, choose, by, reason, place.address))
    if json:
        print_json(decision.model_dump(mode="json"))
        return
    console = results()
    for sheet in decision_sheets(decision):
        console.print(sheet.title, style="bold")
        put_table(console, sheet.columns, sheet.rows)
    agents = {agent for named in place.run(run_id).document.agents.values() for agent in named}
    base = f"{run_id}:{decision.agent}" if len(agents) > 1 else run_id
    where = store_option(place)
    console.print(f"\nnext   {command()} eval run … --decision {decision.decision_id}{where}", soft_wrap=True)
    console.print(f"       {command()} eval compare {base} latest{where}   says whether the gain came", soft_wrap=True)


def _ask(place: Store, run_id: str, choose: str | None, reason: str | None) -> tuple[str, str]:
    diagnosis: Diagnosis = asyncio.run(ranked(place, run_id))
    rank = choice_of(diagnosis, choose or "1")
    if not sys.stdin.isatty():
        missing = "--choose" if choose is None else "--reason"
        raise InputError(
            f"{missing} is needed where nobody can be asked. To choose from: {'; '.join(choices(diagnosis))}"
        )
    put_sheets(results(), choice_sheets(diagnosis))
    chosen = choose or typer.prompt("rank or name of what to do", default=str(rank), err=True)
    choice_of(diagnosis, chosen)
    return chosen, reason or typer.prompt("why", err=True)
