"""What `gym doctor` looks at: each check says what it found, and what to do where something is missing."""

import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version

from flows.server import running_server
from gymflow.errors import InputError
from gymflow.paths import data_dir, store_root
from gymflow.store import Store


@dataclass(frozen=True, slots=True)
class Check:
    """One line."""

    name: str
    ok: bool
    detail: str


def _store() -> Check:
    try:
        store = Store(store_root())
        return Check("store", True, f"{store.address} ({len(store.run_ids())} runs)")
    except InputError as error:
        return Check("store", False, str(error))


def checks() -> Iterator[Check]:
    """All checks, cheapest first."""
    yield Check("python", sys.version_info >= (3, 11), platform.python_version())
    for distribution in ("prefect", "duckdb", "pyarrow"):
        yield Check(distribution, True, version(distribution))
    weights = data_dir() / "embedded" / "model.safetensors"
    yield Check("embedded model", weights.is_file(), str(weights))
    yield _store()
    server = running_server()
    yield Check(
        "prefect server",
        server is not None,
        server.ui_url if server else "none; `gym up` starts one, runs work without",
    )
    for command, purpose in (
        ("bwrap", "sandbox local"),
        ("docker", "sandbox docker"),
        ("node", "harnesses codex, claude_code, pi"),
    ):
        found = shutil.which(command)
        yield Check(command, found is not None, found or f"needed by {purpose}")
