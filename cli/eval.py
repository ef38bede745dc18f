"""`gym eval`: run, score and report evaluations."""

from pathlib import Path
from typing import Annotated

import typer

from cli.options import RunOptions

app = typer.Typer(no_args_is_help=True)
group = typer.Typer(no_args_is_help=True, help="Run, score and report evaluations.")
app.add_typer(group, name="eval")

Store = Annotated[
    str | None, typer.Option(metavar="PATH", help="The store; default $GYMFLOW_STORE, else ./gymflow-store.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Inline = Annotated[bool, typer.Option("--inline", help="Run here, even if a Prefect server is configured.")]
SearchDir = Annotated[
    list[Path] | None, typer.Option("--search-dir", help="A folder with environments, harnesses or verifiers of yours.")
]


@group.command("run")
def run(
    environments: Annotated[
        list[str] | None, typer.Argument(help="Names or folders; see `gym list environments`.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A run configuration (YAML); flags win over it.")] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Go on with a run: what is durable is kept.")
    ] = None,
    benchmark: Annotated[str | None, typer.Option(help="The protocol to follow; see `gym list benchmarks`.")] = None,
    split: Annotated[str | None, typer.Option(help="Default: the benchmark's, else test.")] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Only the first N tasks.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task id (repeatable).")] = None,
    harness: Annotated[str | None, typer.Option(help="Explicit harness; see `gym list harnesses --for ENV`.")] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="`embedded`, a served name, or `provider:name` (repeatable).")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="An OpenAI-compatible endpoint, such as http://127.0.0.1:8000/v1.")
    ] = None,
    api: Annotated[str | None, typer.Option(help="Dialect of the endpoint: chat or responses.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the key.")] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Rollouts per task; default: the benchmark's, else 1.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Sampling seeds derive from it.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0)] = None,
    top_p: Annotated[float | None, typer.Option()] = None,
    top_k: Annotated[int | None, typer.Option()] = None,
    max_output_tokens: Annotated[int | None, typer.Option(min=1)] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Rollouts in flight; default 64.")] = None,
    reuse: Annotated[str | None, typer.Option(help="run (default), store, or none.")] = None,
    shard: Annotated[str | None, typer.Option(metavar="I/N", help="Only the i-th of n parts of the plan.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any field, such as budgets.max_turns=8.")
    ] = None,
    vary: Annotated[list[str] | None, typer.Option(metavar="KEY=A,B", help="One run for each value.")] = None,
    strict_routing: Annotated[
        bool, typer.Option("--strict-routing", help="Refuse tasks that refer to an unknown agent.")
    ] = False,
    skip_bad_rows: Annotated[bool, typer.Option("--skip-bad-rows", help="Leave unreadable rows out, counted.")] = False,
    allow_drift: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help="On resume: accept and record this difference.")
    ] = None,
    store: Store = None,
    search_dir: SearchDir = None,
    inline: Inline = False,
    json: Json = False,
) -> None:
    """Run environments against models; print the scorecard. Exit code 3 when rollouts are missing or failed."""
    from cli.running import run_evaluations

    options = RunOptions(
        environments=environments or [],
        benchmark=benchmark,
        split=split,
        limit=limit,
        tasks=task or [],
        harness=harness,
        models=model or [],
        base_url=base_url,
        api=api,
        api_key_env=api_key_env,
        repeats=repeats,
        seed=seed,
        sampling={"temperature": temperature, "top_p": top_p, "top_k": top_k, "max_output_tokens": max_output_tokens},
        concurrency=concurrency,
        reuse=reuse,
        shard=shard,
        strict_routing=strict_routing,
        skip_bad_rows=skip_bad_rows,
        assignments=set_ or [],
        vary=vary or [],
    )
    run_evaluations(
        options,
        config,
        resume=resume,
        allow_drift=allow_drift or [],
        store=store,
        search_dirs=search_dir or [],
        inline=inline,
        json=json,
    )


@group.command("reverify")
def reverify(
    run: Annotated[str, typer.Argument(help="Run id, a unique beginning of one, or latest.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="verifier.PARAM=VALUE", help="A verifier parameter to change.")
    ] = None,
    store: Store = None,
    search_dir: SearchDir = None,
    inline: Inline = False,
    json: Json = False,
) -> None:
    """Score a run's rollouts again into a new verdict set; no model is called."""
    from cli.rescoring import reverify_run

    reverify_run(run, set_ or [], store=store, search_dirs=search_dir or [], inline=inline, json=json)


@group.command("profile")
def profile(
    runs: Annotated[list[str], typer.Argument(help="Run ids, unique beginnings of them, or latest.")],
    by: Annotated[
        list[str] | None, typer.Option(metavar="NAME,…", help="Slices: tag, cluster, split, or a field of the tasks.")
    ] = None,
    k: Annotated[list[int] | None, typer.Option("-k", "--k", min=1, help="A further k of pass@k (repeatable).")] = None,
    verdicts: Annotated[
        str | None, typer.Option(metavar="SET", help="A verdict set; default: the current one.")
    ] = None,
    plots: Annotated[bool, typer.Option("--plots", help="Draw plots as PNG, too; needs matplotlib.")] = False,
    store: Store = None,
    inline: Inline = False,
    json: Json = False,
) -> None:
    """How good, how sure, how even and at what cost: every number of stored runs. No model is called."""
    from cli.profile import profile_runs

    profile_runs(runs, by=by or [], k=k or [], verdicts=verdicts, plots=plots, store=store, inline=inline, json=json)
