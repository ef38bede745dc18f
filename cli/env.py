"""`gym env`: make, check and print environments."""

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.arguments import Json, SearchDir
from cli.terminal import plain, print_json
from gymflow.errors import InputError

if TYPE_CHECKING:
    from gymflow.contracts.run import RunConfig
    from gymflow.registry import Registry
    from gymflow.validation import ValidationReport

EXIT_INPUT = 2

app = typer.Typer(no_args_is_help=True)
group = typer.Typer(no_args_is_help=True, help="Make, check and print environments.")
app.add_typer(group, name="env")

Name = Annotated[str, typer.Argument(metavar="NAME|PATH", help="An environment's name or folder.")]
Harness = Annotated[str | None, typer.Option(help="The harness it is to be played with; default: its own.")]
Benchmark = Annotated[str | None, typer.Option(help="The benchmark whose protocol is put over it.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any field of a run, such as verifier.mode=strict."),
]


@group.command("validate")
def validate(
    name: Name,
    harness: Harness = None,
    benchmark: Benchmark = None,
    set_: Set = None,
    search_dir: SearchDir = None,
    json: Json = False,
) -> None:
    """Check an environment without starting a model: manifest, rows, harness fit, and the verifier against its fixtures.

    Exit code 2 when a run could not start.
    """
    from gymflow.registry import Registry
    from gymflow.sandboxes import close_providers
    from gymflow.validation import validate_environment

    registry = Registry(search_dir or ())
    config = _config(name, harness, benchmark, set_)
    entry = registry.environment(name)
    named = [spec.harness for spec in config.agents.values() if spec.harness]

    async def check() -> "ValidationReport":
        try:
            return await validate_environment(entry, registry, config.environments[0], named)
        finally:
            await close_providers()

    report = asyncio.run(check())
    if json:
        print_json({"ok": report.ok, "fault_count": report.fault_count, **asdict(report)})
    else:
        _print_report(report)
    if not report.ok:
        raise typer.Exit(EXIT_INPUT)


@group.command("resolve")
def resolve(
    name: Name,
    harness: Harness = None,
    benchmark: Benchmark = None,
    set_: Set = None,
    search_dir: SearchDir = None,
    json: Json = False,
) -> None:
    """Print an environment as a run would use it, all layers merged and defaults filled in, secrets masked."""
    import yaml

    from gymflow.registry import Registry
    from gymflow.secrets import mask

    resolved = mask(_resolved(Registry(search_dir or ()), _config(name, harness, benchmark, set_)))
    if json:
        print_json(resolved)
    else:
        print(yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True, width=120), end="")


@group.command("init")
def init(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and underscores.")],
    dir_: Annotated[Path, typer.Option("--dir", help="Where the environment's folder is made.")] = Path(),
    template: Annotated[
        str, typer.Option(help="single_turn (question and answer), tools (state and tools), conversation (turns).")
    ] = "single_turn",
    json: Json = False,
) -> None:
    """Make an environment that validates and runs as it stands: manifest, tasks, fixtures, README."""
    from cli.scaffold import scaffold

    folder = scaffold(name, dir_, template)
    commands = [f"gym env validate {folder}", f"gym eval run {folder}"]
    if json:
        print_json({"folder": str(folder), "next": commands})
        return
    print(folder)
    for command in commands:
        print(f"next: {command}", file=sys.stderr)


@group.command("prepare")
def prepare(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[HARNESS|ENV]…", help="Harnesses, or environments whose own harness it is; default: all."
        ),
    ] = None,
    search_dir: SearchDir = None,
    json: Json = False,
) -> None:
    """Install the command lines that harnesses run, at their pinned versions, into a cache of ours; what is there stays."""
    from gymflow.registry import Registry
    from gymflow.registry.preparing import prepared

    done = [
        asdict(one)
        for one in prepared(Registry(search_dir or ()), names or (), lambda text: print(text, file=sys.stderr))
    ]
    if json:
        print_json(done)
        return
    for one in done:
        print(f"{one['harness']}: {'installed ' + one['installed'] if one['installed'] else 'ready'}")


def _config(name: str, harness: str | None, benchmark: str | None, assignments: list[str] | None) -> "RunConfig":
    """A run of this environment alone, with its other settings at their defaults."""
    from gymflow.config import apply_overrides, load_config, parse_assignments

    selection: dict[str, Any] = {"name": name, "benchmark": benchmark}
    if harness is not None:
        selection["harness"] = {"name": harness}
    config = apply_overrides(load_config(None, {"environments": [selection]}), parse_assignments(assignments or ()))
    if len(config.environments) != 1:
        raise InputError("--set environments: name the environment as the argument instead")
    return config


def _resolved(registry: "Registry", config: "RunConfig") -> dict[str, Any]:
    from gymflow.config import benchmark_of, merge_environment
    from gymflow.contracts.agent import ComponentRef
    from gymflow.runtime.components import effective_sampling, validated

    [selection] = config.environments
    entry = registry.environment(selection.name)
    benchmark = benchmark_of(entry, selection)
    manifest = merge_environment(entry, selection)
    verifier = registry.verifier_class(manifest.verifier.name, entry).Parameters
    harness = registry.harness_class(manifest.harness.name).Parameters

    def filled(reference: ComponentRef, parameters: Any, what: str) -> dict[str, Any]:
        values = validated(parameters, reference, f"{what} {reference.name!r}").model_dump(mode="json")
        return {"name": reference.name, "parameters": values}

    environment = manifest.model_dump(mode="json", exclude_none=True, exclude={"benchmarks"})
    environment["verifier"] = filled(manifest.verifier, verifier, "verifier")
    environment["harness"] = filled(manifest.harness, harness, "harness")
    sampling = {
        model: effective_sampling(config, model, benchmark.sampling if benchmark else None).model_dump(
            mode="json", exclude_defaults=True
        )
        for model in config.models
    }
    return {
        "environment": environment | {"pass_threshold": manifest.passing_reward},
        "benchmark": selection.benchmark,
        "split": selection.split or (benchmark.split if benchmark else "test"),
        "repeats": config.repeats or (benchmark.repeats if benchmark else 1),
        "headline": benchmark.headline if benchmark else "score",
        "sampling": sampling,
        "run": config.model_dump(
            mode="json", exclude_none=True, exclude={"environments", "repeats", "sampling", "vary", "metrics"}
        ),
    }


def _print_report(report: "ValidationReport") -> None:
    """Splits, fixtures and the verdict on stdout; faults and warnings are part of it."""
    from cli.tables import print_table

    print(plain(f"{report.environment} {report.version}  {report.place}"))
    print_table(
        ["split", "rows", "faults", "digest", "read"],
        [
            [one.split, str(one.rows), str(one.fault_count), one.digest[:12], "before" if one.cached else "now"]
            for one in report.splits
        ],
    )
    if report.fixtures:
        passed = sum(fixture.passed for fixture in report.fixtures)
        swapped = sum(fixture.swapped for fixture in report.fixtures)
        print(
            f"verifier: {passed} of {len(report.fixtures)} fixtures as expected, {swapped} of them with the gold swapped"
        )
    for warning in report.all_warnings:
        print(plain(f"warning: {warning}"))
    for fault in report.shown_faults:
        print(plain(f"fault: {fault}"))
    hidden = report.fault_count - len(report.shown_faults)
    if hidden:
        print(f"fault: … and {hidden} more")
    print("ok" if report.ok else f"{report.fault_count} faults: a run would not start")
