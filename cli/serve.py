"""`gym serve`: the model gateway alone, for any program that takes a base URL."""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
import time
from typing import Annotated, Any

import typer

from cli import arguments
from cli.options import RunOptions, model_spec
from cli.terminal import plain, print_json
from gymflow.contracts.model import ModelSpec
from gymflow.errors import InputError
from gymflow.models.gateway import Gateway
from gymflow.models.server import GatewayServer
from gymflow.paths import store_root
from gymflow.runtime.captured import Captured
from gymflow.runtime.conversations import Conversations
from gymflow.store import Store

app = typer.Typer(no_args_is_help=True)

DRAIN_S = 30.0
SWEEP_S = 2.0
IDLE_S, AT_MOST_S = 20.0, 60.0
"""What was said is stored when nobody has continued the conversation for so long; one that goes on and on, that often."""
WAIT_FOR_ENDPOINT_S = 3600.0

EXIT_INCOMPLETE, EXIT_INTERRUPTED = 3, 130


@app.command("serve")
def serve(
    model: Annotated[str, typer.Argument(help="`embedded`, a served name, or `provider:name`.")],
    provider: Annotated[str | None, typer.Option(help="See `gym list models`; default openai.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="The model's endpoint, such as http://127.0.0.1:8000/v1.")
    ] = None,
    api: arguments.Api = None,
    api_key_env: arguments.ApiKeyEnv = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 0,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Calls in flight; default: no bound.")] = None,
    store: arguments.Store = None,
    json: arguments.Json = False,
) -> None:
    """Serve a model in three dialects (OpenAI Responses, OpenAI Chat Completions, Anthropic Messages) until Ctrl-C.

    Every conversation becomes a rollout of one run in the store: see it with `gym show` and `gym sql`.
    """
    name = f"{provider}:{model}" if provider else model
    spec = model_spec(name, RunOptions(base_url=base_url, api=api, api_key_env=api_key_env))
    sys.exit(asyncio.run(_serve(ModelSpec.model_validate(spec), host, port, concurrency, store_root(store), json)))


async def _serve(spec: ModelSpec, host: str, port: int, concurrency: int | None, root: str, json: bool) -> int:
    gateway = Gateway({"policy": spec}, concurrency=concurrency, unreachable_s=WAIT_FOR_ENDPOINT_S)
    async with gateway, contextlib.AsyncExitStack() as stack:
        await gateway.probe()
        server = GatewayServer(host=host, port=port)
        try:
            await server.open()
        except OSError as error:
            raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        stack.push_async_callback(server.close)
        run_id = f"serve-{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        captured = Captured(Store(root), run_id, spec, gateway.identities()["policy"], gateway.redactor)
        stack.push_async_callback(captured.close)
        conversations = Conversations(gateway)
        admission = server.admit(conversations, served_name=spec.model or spec.provider, lasting=True)
        _announce(admission.url, admission.token, run_id, root, json)
        interrupted = asyncio.create_task(_interruption().wait())
        sweeping = asyncio.create_task(_sweep(conversations, captured))
        reasons: list[asyncio.Future[Any]] = [conversations.down, sweeping, interrupted]
        await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
        if sweeping.done():
            await sweeping  # raises why nothing could be stored
        sweeping.cancel()
        admission.close()
        await _drained(conversations)
        await server.close()  # cancels what is still under way, which then is over
        await captured.keep(conversations.due())
    typer.echo(f"gym: {captured.count} conversations in run {run_id}" if captured.count else "gym: no calls", err=True)
    if conversations.down.done():
        typer.echo(f"gym: {plain(str(conversations.down.result()))}", err=True)
        return EXIT_INCOMPLETE
    return 0


async def _drained(conversations: Conversations) -> None:
    """Returns when no call is under way, or none of those that are may go on."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            await conversations.idle.wait()


async def _sweep(conversations: Conversations, captured: Captured) -> None:
    while True:
        await asyncio.sleep(SWEEP_S)
        await captured.keep(conversations.due(IDLE_S, AT_MOST_S))


def _announce(url: str, token: str, run_id: str, root: str, json: bool) -> None:
    address = url.partition("/rollouts/")[0]
    if json:
        told = {"address": address, "token": token, "base_url": f"{url}/v1", "anthropic_base_url": url}
        print_json(told | {"run_id": run_id, "store": root})
    else:
        typer.echo(f"address             {address}")
        typer.echo(f"token               {token}")
        typer.echo(f"OpenAI base URL     {url}/v1")
        typer.echo(f"Anthropic base URL  {url}")
        typer.echo(f"run                 {run_id} in {root}")
        typer.echo("any API key will do; Ctrl-C ends", err=True)
    sys.stdout.flush()


def _interruption() -> asyncio.Event:
    """Set by the first Ctrl-C or SIGTERM; a second one leaves at once."""
    interrupted = asyncio.Event()

    def interrupt() -> None:
        if interrupted.is_set():
            os._exit(EXIT_INTERRUPTED)
        interrupted.set()
        typer.echo("gym: finishing the calls that are under way (Ctrl-C again to leave at once)", err=True)

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    return interrupted
