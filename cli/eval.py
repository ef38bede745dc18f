"""`gym eval`: run, score and report evaluations."""

import os
from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import Api, ApiKeyEnv, Inline, Json, Run, SearchDir, Store
from cli.options import RunOptions
from gymflow.errors import InputError

app = typer.Typer(no_args_is_help=True)
group = typer.Typer(no_args_is_help=True, help="Run, score and report evaluations.")
app.add_typer(group, name="eval")


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
    api: Api = None,
    api_key_env: ApiKeyEnv = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Rollouts per task; default: the benchmark's, else 1.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Sampling seeds derive from it.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0)] = None,
    top_p: Annotated[float | None, typer.Option()] = None,
    top_k: Annotated[int | None, typer.Option()] = None,
    max_output_tokens: Annotated[int | None, typer.Option(min=1)] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Rollouts in flight; default 64.")] = None,
    budget_calls: Annotated[
        int | None, typer.Option(min=1, help="End the run after N model calls, incomplete.")
    ] = None,
    budget_tokens: Annotated[int | None, typer.Option(min=1, help="… after N tokens, prompts included.")] = None,
    budget_cost: Annotated[float | None, typer.Option(metavar="USD", help="… after so many US dollars.")] = None,
    budget_time: Annotated[float | None, typer.Option(metavar="SECONDS", help="… after so many seconds.")] = None,
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Prices (YAML), laid out as data/prices.yaml.")
    ] = None,
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
    unsafe_host: Annotated[
        bool,
        typer.Option("--unsafe-host", help="Where nothing can be isolated, let agents work as you on this machine."),
    ] = False,
    allow_drift: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help="On resume: accept and record this difference.")
    ] = None,
    decision: Annotated[
        str | None, typer.Option(metavar="ID", help="The decision that this run tests; see `gym eval decide`.")
    ] = None,
    no_health: Annotated[bool, typer.Option("--no-health", help="Leave out the health checks at the end.")] = False,
    no_diagnosis: Annotated[bool, typer.Option("--no-diagnosis", help="Leave out the diagnosis at the end.")] = False,
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
        run_budget={
            "max_calls": budget_calls,
            "max_tokens": budget_tokens,
            "max_cost_usd": budget_cost,
            "wall_time_s": budget_time,
        },
        prices=prices,
        reuse=reuse,
        shard=shard,
        strict_routing=strict_routing,
        skip_bad_rows=skip_bad_rows,
        assignments=set_ or [],
        vary=vary or [],
    )
    if unsafe_host:
        from gymflow.sandboxes.registry import ISOLATION

        os.environ[ISOLATION] = "none"
    run_evaluations(
        options,
        config,
        resume=resume,
        allow_drift=allow_drift or [],
        decision=decision,
        store=store,
        search_dirs=search_dir or [],
        inline=inline,
        health=not no_health,
        diagnosis=not no_diagnosis,
        json=json,
    )


@group.command("health")
def health(
    run: Run,
    against: Annotated[
        str | None, typer.Option(metavar="RUN", help="Another run: the gate is on what got worse.")
    ] = None,
    fail_on: Annotated[
        str | None, typer.Option(metavar="SEVERITY", help="info, warning or error: exit code 4 if there is one.")
    ] = None,
    thresholds: Annotated[
        Path | None, typer.Option(help="A file (YAML) with thresholds that differ; what they find is not stored.")
    ] = None,
    store: Store = None,
    inline: Inline = False,
    json: Json = False,
) -> None:
    """Check a run's evidence: what is odd in it, and how much could not be observed."""
    from cli.health import check_run

    check_run(run, against=against, fail_on=fail_on, thresholds=thresholds, store=store, inline=inline, json=json)


@group.command("diagnose")
def diagnose(
    run: Run,
    against: Annotated[
        str | None, typer.Option(metavar="RUN", help="An earlier run: what explains the change.")
    ] = None,
    llm: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A model that reads rollouts: a served name, or provider:name.")
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Its OpenAI-compatible endpoint.")] = None,
    api: Api = None,
    api_key_env: ApiKeyEnv = None,
    store: Store = None,
    search_dir: SearchDir = None,
    inline: Inline = False,
    json: Json = False,
) -> None:
    """Say why rollouts did not pass, with evidence, and what could be gained by what.

    No model is called, unless one is named with --llm: it reads rollouts, and of what it says only that is kept which the store bears
    out.
    """
    from cli.diagnose import diagnose_run
    from cli.options import one_model
    from cli.running import add_search_dirs

    add_search_dirs(search_dir or [])
    if llm is None and (base_url or api or api_key_env):
        raise InputError("--base-url, --api and --api-key-env are about the model that reads: name it with --llm")
    reader = one_model(llm, RunOptions(base_url=base_url, api=api, api_key_env=api_key_env)) if llm else None
    diagnose_run(run, against=against, reader=reader, store=store, inline=inline, json=json)


@group.command("decide")
def decide(
    run: Run,
    choose: Annotated[
        str | None, typer.Option(metavar="N|NAME", help="Rank or name of the intervention; asked for if left out.")
    ] = None,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who decides; default: you.")] = None,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; asked for if left out.")] = None,
    store: Store = None,
    inline: Inline = False,
    json: Json = False,
) -> None:
    """Record which of the proposed interventions was chosen, by whom and why. `gym eval run --decision` then tests it."""
    from cli.decide import decide_run

    decide_run(run, choose=choose, decided_by=by, reason=reason, store=store, inline=inline, json=json)


@group.command("report")
def report(
    run: Run,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: reports/report.html of the run.")
    ] = None,
    store: Store = None,
    search_dir: SearchDir = None,
    inline: Inline = False,
    json: Json = False,
) -> None:
    """Write a run as one HTML file that needs nothing else: scores, plots, findings, diagnosis and every trajectory."""
    from cli.report import report_run
    from cli.running import add_search_dirs

    add_search_dirs(search_dir or [])
    report_run(run, output=output, store=store, inline=inline, json=json)


@group.command("reverify")
def reverify(
    run: Run,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="verifier.PARAM, or judge.FIELD of the judge model, to change."
        ),
    ] = None,
    verifier: Annotated[str | None, typer.Option(help="Another verifier; see `gym list verifiers`.")] = None,
    failed_only: Annotated[
        bool, typer.Option("--failed-only", help="Only rollouts without a reward; the other verdicts are taken over.")
    ] = False,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="People's labels (JSON Lines), to say how far they agree.")
    ] = None,
    store: Store = None,
    search_dir: SearchDir = None,
    inline: Inline = False,
    json: Json = False,
) -> None:
    """Score a run's rollouts again into a new verdict set, and say what changed. Nothing is sampled."""
    from cli.rescoring import reverify_run

    reverify_run(
        run,
        set_ or [],
        verifier=verifier,
        failed_only=failed_only,
        labels=labels,
        store=store,
        search_dirs=search_dir or [],
        inline=inline,
        json=json,
    )


@group.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="The file, or the folder, of the other tool.")],
    format: Annotated[str, typer.Option(help="nemo-gym, ng-trajectory, atif or inspect.")],
    inputs: Annotated[
        Path | None, typer.Option(help="The rows that were asked, where the format keeps them apart.")
    ] = None,
    environment: Annotated[
        str | None, typer.Option(help="Environment whose tasks these are: its verifier can score them again.")
    ] = None,
    verifier: Annotated[str | None, typer.Option(help="Verifier that can score them again.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="verifier.PARAM=VALUE", help="A parameter of the verifier.")
    ] = None,
    run_id: Annotated[str | None, typer.Option("--run-id", help="Id of the new run.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the new run; default: the file's.")] = None,
    store: Store = None,
    search_dir: SearchDir = None,
    json: Json = False,
) -> None:
    """Make a run of another tool's rollouts, so that they can be profiled, compared and reverified."""
    from cli.exchange import import_rollouts

    import_rollouts(
        file,
        format,
        inputs=inputs,
        environment=environment,
        verifier=verifier,
        assignments=set_ or [],
        run_id=run_id,
        name=name,
        store=store,
        search_dirs=search_dir or [],
        json=json,
    )


@group.command("export")
def export(
    run: Run,
    format: Annotated[str, typer.Option(help="nemo-gym, ng-trajectory, atif or inspect.")],
    output: Annotated[Path, typer.Option(help="File (atif: folder) to write; it must not exist.")],
    verdicts: Annotated[
        str | None, typer.Option(metavar="SET", help="Verdict set whose rewards are written; default: the current one.")
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Write a run's rollouts in another tool's format. What the format has no place for is kept beside it."""
    from cli.exchange import export_rollouts

    export_rollouts(run, format, output, verdicts=verdicts, store=store, json=json)


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


@group.command("compare")
def compare(
    base: Annotated[str, typer.Argument(help="The run to compare with, or RUN:AGENT.")],
    candidates: Annotated[
        list[str] | None,
        typer.Argument(help="Runs that are compared with it, or RUN:AGENT; default: the other agents of the run."),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help='Such as "score >= -0.01", "cost_usd <= +10%" (repeatable).'),
    ] = None,
    gates: Annotated[str | None, typer.Option(metavar="FILE", help="Conditions in a YAML file.")] = None,
    by: Annotated[
        list[str] | None, typer.Option(metavar="NAME,…", help="Slices: tag, cluster, split, or a field of the tasks.")
    ] = None,
    effect: Annotated[
        float | None, typer.Option(min=1e-6, help="The difference that should be found; default 0.02.")
    ] = None,
    verdicts: Annotated[
        str | None, typer.Option(metavar="SET", help="A verdict set that all runs have; default: each one's current.")
    ] = None,
    store: Store = None,
    inline: Inline = False,
    json: Json = False,
) -> None:
    """Compare runs task by task: what differs, by how much, how surely. Exit code 4 when a gate does not hold."""
    from cli.compare import compare_runs

    compare_runs(
        base,
        candidates or [],
        by=by or [],
        gates=gate or [],
        gates_file=gates,
        effect=effect,
        verdicts=verdicts,
        store=store,
        inline=inline,
        json=json,
    )


@group.command("aggregate")
def aggregate(
    runs: Annotated[list[str], typer.Argument(help="Runs of one configuration, such as the shards of a plan.")],
    into: Annotated[str, typer.Option(metavar="RUN", help="Id of the merged run: a new one, or one merged before.")],
    store: Store = None,
    inline: Inline = False,
    json: Json = False,
) -> None:
    """Put runs together, offline: equal rollouts once, conflicting ones reported, missing ones listed. The order of the runs does
    not matter, and neither does doing it twice. Exit code 3 when rollouts are missing or failed."""
    from cli.aggregate import aggregate_runs

    aggregate_runs(runs, into=into, store=store, inline=inline, json=json)
