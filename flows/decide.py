"""Decide: a person chooses what to do about a run. Without a choice in its parameters the flow run waits for one in the UI."""

from typing import Any, Literal

from gymflow.analysis.decide import choice_of, choices
from gymflow.contracts.decision import Decision
from gymflow.contracts.diagnosis import Diagnosis
from gymflow.errors import InputError
from tasks import flow, in_flow_run
from tasks.decide import rank, record_decision

PATIENCE_S = 30 * 24 * 3600
"""How long a flow run waits for a person. It is suspended meanwhile and holds no process."""


@flow(name="decide", flow_run_name="decide {run_id}")
async def decide(
    run_id: str = "latest",
    choice: str | None = None,
    decided_by: str | None = None,
    reason: str | None = None,
    store: str | None = None,
) -> Decision:
    """Record which of the proposed interventions was chosen (`choice`: its rank or name), by whom and why. What is not given is asked
    for in the UI."""
    diagnosis: Diagnosis = await rank(run_id, store)
    if choice is None:
        choice, decided_by, reason = await ask(diagnosis, decided_by, reason)
    return await record_decision(diagnosis, choice, decided_by or "", reason or "", store)


async def ask(diagnosis: Diagnosis, decided_by: str | None, reason: str | None) -> tuple[str, str, str]:
    """Suspend the flow run until a person has filled in the form: choice, name and reason. After Resume the flow function starts
    anew, and gets the answer here. InputError where there is nothing to choose from, or no UI to choose in."""
    listed = choices(diagnosis)
    if not listed:
        choice_of(diagnosis, "1")
    if not in_flow_run():
        raise InputError(f"run {diagnosis.run_id}: choose one of: {'; '.join(listed)}")
    from prefect.flow_runs import asuspend_flow_run

    form = await asuspend_flow_run(
        wait_for_input=_form(diagnosis, listed, decided_by, reason), timeout=PATIENCE_S, key="decision"
    )
    return form.intervention, form.decided_by, form.reason


def _form(diagnosis: Diagnosis, listed: list[str], decided_by: str | None, reason: str | None) -> Any:
    """The form that the UI shows, with the ranked list as its choices."""
    from prefect.input import RunInput
    from pydantic import Field, create_model

    def selectable(schema: dict[str, Any]) -> None:
        # Of a single value pydantic makes a constant, which Prefect's form neither fills in nor lets anyone fill in.
        schema.pop("const", None)
        schema["enum"] = listed

    offered: Any = Literal[tuple(listed)]
    what = Field(title="What to do", description="The first promises most.", json_schema_extra=selectable)
    form = create_model(
        "Decide",
        __base__=RunInput,
        intervention=(offered, what),
        decided_by=(str, Field(min_length=1, title="Who decides")),
        reason=(str, Field(min_length=1, title="Why")),
    )
    first = "\n".join(f"* {line}" for line in diagnosis.look_first)
    initial = {"decided_by": decided_by, "reason": reason}
    return form.with_initial_data(
        description=f"What to do about run `{diagnosis.run_id}`?\n\nTo look at first:\n\n{first}",
        **{name: value for name, value in initial.items() if value is not None},
    )
