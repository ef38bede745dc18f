"""`gym up`, `gym down`, `gym doctor`: the local Prefect server, and what works on this machine."""

from dataclasses import asdict
from typing import Annotated

import typer

from cli.arguments import Json
from cli.terminal import print_json

app = typer.Typer(no_args_is_help=True)

DEFAULT_PORT = 4200


@app.command("up")
def up(
    port: Annotated[int, typer.Option(min=1024, max=65535, help="Port on loopback.")] = DEFAULT_PORT,
    store: Annotated[
        str | None, typer.Option(metavar="PATH|URL", help="The store that its deployments write to.")
    ] = None,
    json: Json = False,
) -> None:
    """Start a Prefect server with its UI on loopback, register the deployments, and start a worker for them.

    From then on every `gym eval` command that works on rollouts is a flow run there, until `gym down`.
    """
    from flows.server import start
    from gymflow.paths import absolute_store_root

    typer.echo("starting the server and a worker (up to a minute the first time) …", err=True)
    server = start(absolute_store_root(store), port)
    if json:
        print_json({"ui": server.ui_url, "api": server.api_url, "store": server.store})
        return
    typer.echo(f"UI     {server.ui_url}")
    typer.echo(f"API    {server.api_url}")
    typer.echo(f"store  {server.store}")


@app.command("down")
def down(json: Json = False) -> None:
    """Stop the worker and the server that `gym up` started; what they recorded stays."""
    from flows.server import stop

    stopped = stop()
    if json:
        print_json({"stopped": stopped})
    else:
        typer.echo("stopped" if stopped else "nothing was running", err=True)


@app.command("doctor")
def doctor(json: Json = False) -> None:
    """Say what works on this machine and what is missing."""
    from cli.checks import checks

    found = list(checks())
    if json:
        print_json([asdict(check) for check in found])
        return
    for check in found:
        typer.echo(f"{'ok     ' if check.ok else 'missing'}  {check.name:<22} {check.detail}")
