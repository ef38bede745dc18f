"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

Run = Annotated[str, typer.Argument(help="Run id, a unique beginning of one, or latest.")]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="PATH|URL",
        help="The store: a folder, or s3://bucket/prefix; default $GYMFLOW_STORE, else ./gymflow-store.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Inline = Annotated[bool, typer.Option("--inline", help="Run here, even if a Prefect server is configured.")]
SearchDir = Annotated[
    list[Path] | None,
    typer.Option("--search-dir", help="A folder with environments/, harnesses/ or verifiers/ of yours."),
]
Api = Annotated[str | None, typer.Option(help="Dialect of the endpoint: chat or responses.")]
ApiKeyEnv = Annotated[str | None, typer.Option(help="Environment variable that holds the key.")]
