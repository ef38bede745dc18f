"""`gym sandbox`: check providers, build images, remove orphans."""

import asyncio
import json as json_
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.arguments import Json
from gymflow.errors import InputError

app = typer.Typer(no_args_is_help=True)
group = typer.Typer(no_args_is_help=True, help="Check sandbox providers, build images, remove orphans.")
app.add_typer(group, name="sandbox")

EXIT_INPUT = 2
HERE = ("local", "docker", "apptainer", "enroot")
"""Providers whose sandboxes this machine holds."""


@group.command("check")
def check(
    provider: Annotated[str, typer.Argument(help="local, docker, …: see `gym list sandboxes`.")] = "local",
    image: Annotated[str | None, typer.Option(help="The image to check with; default: the provider's.")] = None,
    json: Json = False,
) -> None:
    """Say in a minute whether a provider works here, by using it. Exit code 2 when it does not."""
    from gymflow.sandboxes import close_providers
    from gymflow.sandboxes.check import Check, check_provider

    async def run() -> list[Check]:
        done = []
        try:
            async for one in check_provider(provider, image):
                done.append(one)
                if not json:
                    mark = {True: "ok", False: "FAILED", None: "-"}[one.ok]
                    typer.echo(f"{mark:7}{one.name:28}{one.duration_s:7.2f} s  {one.detail}".rstrip())
        finally:
            await close_providers()
        return done

    checks = asyncio.run(run())
    if json:
        typer.echo(json_.dumps([asdict(one) for one in checks]))
    if any(one.ok is False for one in checks):
        raise typer.Exit(EXIT_INPUT)


@group.command("clean")
def clean(
    provider: Annotated[
        str | None, typer.Argument(help="Only this provider; default: those of this machine, docker if it answers.")
    ] = None,
    json: Json = False,
) -> None:
    """Remove sandboxes whose process has ended or whose time is over, and only those."""
    from gymflow.sandboxes import SandboxUnavailable, close_providers
    from gymflow.sandboxes import provider as provider_of

    async def run() -> dict[str, int]:
        removed: dict[str, int] = {}
        try:
            for name in [provider] if provider else HERE:
                try:
                    removed[name] = await provider_of(name, accepted="none").clean()
                except SandboxUnavailable as error:
                    if provider is not None:
                        raise InputError(error.message) from error
        finally:
            await close_providers()
        return removed

    removed = asyncio.run(run())
    if json:
        typer.echo(json_.dumps(removed))
    else:
        for name, count in removed.items():
            typer.echo(f"{name}: {count} removed")


@group.command("image")
def image(
    recipe: Annotated[Path, typer.Argument(help="A recipe: YAML with name, base, packages, run.")],
    provider: Annotated[
        str, typer.Option(help="Who shall have it: local, apptainer, docker, opensandbox, enroot, daytona.")
    ] = "local",
    json: Json = False,
) -> None:
    """Build an image from a recipe with what this machine has; no registry of images is needed.

    For Enroot it is a file, which a spec names by its path; for Daytona a snapshot, which it names with the option `snapshot`.
    """
    import yaml
    from pydantic import ValidationError

    from gymflow.sandboxes import SandboxUnavailable, close_providers
    from gymflow.sandboxes.images import TARGETS, Recipe, build

    if provider not in TARGETS:
        raise InputError(
            f"images are built for {', '.join(TARGETS)}; {provider} fetches them from a registry: build it with --provider docker, "
            "then `docker push` it"
        )
    try:
        read: Any = Recipe.model_validate(yaml.safe_load(recipe.read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{recipe}: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"{recipe}: {where and f'{where}: '}{first['msg']}") from error

    async def run() -> str:
        try:
            return await build(read, TARGETS[provider])
        finally:
            await close_providers()

    try:
        digest = asyncio.run(run())
    except SandboxUnavailable as error:
        raise InputError(error.message) from error
    typer.echo(json_.dumps({"image": read.name, "digest": digest}) if json else f"{read.name} {digest}")
