"""`gym runs`, `gym show` and `gym sql`: looking at what a store holds."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.arguments import Json, Run, Store
from gymflow.errors import InputError

if TYPE_CHECKING:
    from gymflow.contracts.report import RunSummary

app = typer.Typer(no_args_is_help=True)


@app.command("runs")
def runs(store: Store = None, json: Json = False) -> None:
    """List the runs of a store, newest first: coverage, score, and what they were sampled and scored with.

    Standard errors are clustered by task, and by cluster where the tasks have one.
    """
    from cli.choosing import existing_store
    from cli.tables import print_table
    from cli.terminal import print_json
    from gymflow.metrics.summaries import run_summaries

    found = run_summaries(existing_store(store))
    if json:
        print_json([one.model_dump(mode="json") for one in found])
        return
    columns = (
        "run",
        "state",
        "created",
        "environments",
        "models",
        "coverage",
        "score ± clustered SE",
        "fingerprint",
        "verdicts",
    )
    print_table(columns, [_row(one) for one in found], stack=True)


@app.command("show")
def show(
    run: Run,
    task: Annotated[str | None, typer.Argument(help="Task id, a unique beginning of one, or a rollout id.")] = None,
    repeat: Annotated[int | None, typer.Argument(help="A repeat of the task: its whole trajectory.", min=0)] = None,
    agent: Annotated[str | None, typer.Option(help="Whose repeat, where several agents played the task.")] = None,
    compare: Annotated[
        tuple[int, int] | None,
        typer.Option(metavar="A B", help="Two repeats of the task side by side, at the turn where they part."),
    ] = None,
    turns: Annotated[str | None, typer.Option(metavar="N|N-M", help="Only these turns of the trajectory.")] = None,
    verdicts: Annotated[
        str | None, typer.Option(metavar="SET", help="The verdict set; default: the run's current one.")
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show a run, a task of it, or one rollout (a rollout id says its run)."""
    from cli import choosing
    from cli.abreast import show_pair
    from cli.looking import show_rollout, show_run, show_task

    place = choosing.existing_store(store)
    reader, task = choosing.run_and_task(place, run, task)
    chosen = choosing.verdict_set(reader, verdicts)
    plan_index = None if task is None else choosing.plan_index(reader, task)
    if compare is not None:
        if task is None or repeat is not None or plan_index is not None:
            raise InputError("--compare goes with a task: gym show RUN TASK --compare 0 3")
        first, second = (choosing.repeat(place, reader, task, one, agent) for one in compare)
        show_pair(reader, (first, second), chosen, choosing.turns(turns), json=json)
        return
    if repeat is None and plan_index is None and (agent is not None or turns is not None):
        raise InputError(
            f"{'--agent' if agent is not None else '--turns'} goes with a repeat: gym show RUN TASK REPEAT"
        )
    if json and turns is not None:
        raise InputError("--turns goes with the printed trajectory; --json is the whole of it")
    if task is None:
        show_run(place, reader, chosen, json=json)
        return
    if plan_index is None and repeat is None:
        show_task(place, reader, chosen, task, json=json)
        return
    if plan_index is None:
        plan_index = choosing.repeat(place, reader, task, repeat, agent)
    show_rollout(reader, plan_index, chosen, choosing.turns(turns), json=json)


@app.command("sql")
def sql(
    query: Annotated[str | None, typer.Argument(help="One SELECT over the store's views.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the views and their columns instead.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Query the store with SQL (DuckDB), read-only.

    In a pipe rows are lines of tab-separated values below a line with the names of the columns.
    """
    from cli.choosing import existing_store
    from cli.querying import print_query, print_schema

    if schema == (query is not None):
        raise InputError('give either a query, such as gym sql "select * from runs", or --schema')
    if csv and json:
        raise InputError("--csv or --json, not both")
    if query is None:
        print_schema(csv=csv, json=json)
    else:
        print_query(existing_store(store).root, query, csv=csv, json=json)


def _row(one: "RunSummary") -> list[str]:
    return [
        one.run_id,
        _state(one),
        f"{one.created_at.astimezone():%Y-%m-%d %H:%M}",
        ", ".join(one.environments),
        ", ".join(_short(model) for model in one.models),
        _coverage(one),
        ", ".join(_score(one)),
        one.fingerprint[:8],
        one.verdict_set or "none",
    ]


def _state(one: "RunSummary") -> str:
    if one.being_written:
        return "being written"
    return "incomplete" if one.missing or one.failed else "complete"


def _coverage(one: "RunSummary") -> str:
    further = (("unverified", one.unverified), ("failed", one.failed), ("missing", one.missing))
    return ", ".join([f"{one.scored}/{one.planned} scored", *(f"{count} {kind}" for kind, count in further if count)])


def _score(one: "RunSummary") -> list[str]:
    from cli.scorecard import mean_and_error

    if one.score is not None:
        return [mean_and_error(one.score.score, one.score.standard_error)]
    environments = {score.environment for score in one.scores}
    agents = {score.agent for score in one.scores}
    return [
        " ".join(
            [
                *([score.environment] if len(environments) > 1 else []),
                *([score.agent] if len(agents) > 1 else []),
                mean_and_error(score.score, score.standard_error),
            ]
        )
        for score in one.scores
    ]


def _short(model: str) -> str:
    """A model's name with a revision that is a digest cut short."""
    name, at, revision = model.rpartition("@")
    revision = revision.removeprefix("sha256:")
    return f"{name}@{revision[:8]}" if at and len(revision) >= 40 else model
