"""`gym up`, `gym down`, `gym doctor`: the local Prefect server, and what works on this machine."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True)

DEFAULT_PORT = 4200


@app.command("up")
def up(
    port: Annotated[int, typer.Option(min=1024, max=65535, help="Port on loopback.")] = DEFAULT_PORT,
    store: Annotated[str | None, typer.Option(metavar="PATH", help="The store that its deployments write to.")] = None,
) -> None:
    """Start a Prefect server with its UI on loopback, register the deployments, and start a worker for them.

    From then on every `gym eval` command that works on rollouts is a flow run there, until `gym down`.
    """
    from flows.server import start
    from gymflow.paths import store_root

    typer.echo("starting the server and a worker (up to a minute the first time) …", err=True)
    server = start(Path(store_root(store)), port)
    typer.echo(f"UI     {server.ui_url}")
    typer.echo(f"API    {server.api_url}")
    typer.echo(f"store  {server.store}")


@app.command("down")
def down() -> None:
    """Stop the worker and the server that `gym up` started; what they recorded stays."""
    from flows.server import stop

    typer.echo("stopped" if stop() else "nothing was running", err=True)


@app.command("doctor")
def doctor() -> None:
    """Say what works on this machine and what is missing."""
    from cli.checks import checks

    for check in checks():
        typer.echo(f"{'ok     ' if check.ok else 'missing'}  {check.name:<22} {check.detail}")
