"""The `gym` command. Its groups are imported when they are called, so that help and listings answer at once."""

import importlib
import io
import logging
import os
import signal
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from gymflow import __version__
from gymflow.errors import GateFailed, InputError, RunIncomplete
from gymflow.store.remote import settle

COMMANDS = {
    "list": ("cli.discover", "List environments, benchmarks, harnesses, verifiers, models or sandboxes."),
    "search": ("cli.discover", "Find components by name, description and tags."),
    "env": ("cli.env", "Make, check and print environments."),
    "eval": ("cli.eval", "Run, score and report evaluations."),
    "runs": ("cli.runs", "List the runs of a store."),
    "show": ("cli.runs", "Show a run, a task of it, or one rollout."),
    "sql": ("cli.runs", "Query the store with SQL, read-only."),
    "serve": ("cli.serve", "Run the model gateway alone, and keep every call that goes through it."),
    "sandbox": ("cli.sandbox", "Check sandbox providers, build images, remove orphans."),
    "up": ("cli.server", "Start a Prefect server with its UI on loopback, and a worker."),
    "down": ("cli.server", "Stop what `gym up` started."),
    "doctor": ("cli.server", "Say what works on this machine and what is missing."),
}

EXIT_INTERNAL, EXIT_INPUT, EXIT_INCOMPLETE, EXIT_GATE, EXIT_INTERRUPTED = 1, 2, 3, 4, 130


class LazyGroup(TyperGroup):
    """Knows its commands' names and one-line helps without importing them."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        if cmd_name not in COMMANDS:
            from gymflow.suggest import did_you_mean

            raise InputError(f"no command {cmd_name!r}; {did_you_mean(cmd_name, COMMANDS)}")
        group: Any = typer.main.get_group(importlib.import_module(COMMANDS[cmd_name][0]).app)
        return group.commands.get(cmd_name, group)

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


app = typer.Typer(
    cls=LazyGroup,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True, no_args_is_help=True)
def gym(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Evaluate models and agents in environments, keep every rollout, and turn the result into a decision.

    Results go to stdout (--json everywhere), everything else to stderr. Exit codes: 0 done, 1 internal error, 2 bad input,
    3 incomplete, 4 a gate failed, 130 interrupted.
    """
    if version:
        typer.echo(f"gym {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command, and see that what it wrote is where its store is."""
    try:
        _command()
    except SystemExit as ended:
        _settle(ended.code)
        raise
    _settle(None)


def _settle(code: object) -> None:
    """Upload what a store on a bucket lacks yet. Exits with 3 where that fails and the command did not."""
    try:
        for line in settle():
            typer.echo(f"gym: {line}", err=True)
    except RunIncomplete as error:
        typer.echo(f"gym: {error}", err=True)
        if not code:
            sys.exit(EXIT_INCOMPLETE)


def _command() -> None:
    """Turn what a command raises into an exit code and at most one message."""
    signal.signal(signal.SIGINT, _interrupted)
    logging.basicConfig(format="gym: %(message)s", level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.addFilter(_WorthSaying())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an encoding that lacks a character is no reason to fail
    try:
        for number, argument in enumerate(sys.argv):
            _require_text(argument, number)
        code = typer.main.get_command(app).main(prog_name="gym", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except TyperException as error:
        show: Any = getattr(error, "show", None)  # usage errors print their usage line, too
        if show is None:
            _fail(str(error), EXIT_INPUT)
        show()
        sys.exit(EXIT_INPUT)
    except RunIncomplete as error:
        _fail(str(error), EXIT_INCOMPLETE)
    except InputError as error:
        _fail(str(error), EXIT_INPUT)
    except GateFailed as error:
        _fail(str(error), EXIT_GATE)
    except typer.Abort:
        _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone (`gym runs | head`); Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _WorthSaying(logging.Filter):
    """Errors that end the command with a message of ours need no traceback of Prefect's before it. Of what goes well it says
    where the flow run is to be seen, once; the rest stands there."""

    def __init__(self) -> None:
        super().__init__()
        self._pages: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("prefect") and record.levelno < logging.WARNING:
            page = record.getMessage()
            if not page.startswith("View at ") or page in self._pages:
                return False
            self._pages.add(page)
        return not (record.exc_info and isinstance(record.exc_info[1], (InputError, RunIncomplete, GateFailed)))


def _require_text(argument: str, number: int) -> None:
    try:
        argument.encode()
    except UnicodeEncodeError:
        raise InputError(f"argument {number} is not UTF-8: {argument!r}") from None


def _interrupted(*_: object) -> None:
    # Until a run holds its lease there is nothing to finish; libraries that are being imported turn an exception into theirs.
    os.write(2, b"gym: interrupted\n")
    os._exit(EXIT_INTERRUPTED)


def _fail(message: str, code: int) -> None:
    from cli.terminal import plain

    typer.echo(f"gym: {plain(message)}", err=True)  # an endpoint's own words may be in it
    sys.exit(code)


if __name__ == "__main__":
    main()
