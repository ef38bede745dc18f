"""Where a command's flow run is recorded: on Prefect's configured server, on the one of `gym up`, or nowhere."""

import contextlib
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

from flows.server import healthy, running_server
from gymflow.errors import InputError


@contextlib.contextmanager
def recording(inline: bool) -> Iterator[None]:
    """Within the block flows are run against that server; without one Prefect is not even imported.

    Raises InputError when a server is configured that does not answer, since its owner expects to see the run there.
    """
    url = None if inline else _api_url()
    if url is None:
        os.environ["GYMFLOW_INLINE"] = "1"
        yield
        return
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: url}):
        yield


def _api_url() -> str | None:
    if _may_be_configured():
        from prefect.settings import get_current_settings

        if configured := get_current_settings().api.url:
            if healthy(configured):
                return configured
            raise InputError(
                f"the Prefect server at {configured} (PREFECT_API_URL or profile) does not answer; start it, unset it, or "
                "run this command with --inline"
            )
    server = running_server()
    return server.api_url if server else None


def _may_be_configured() -> bool:
    """Whether any place from which Prefect takes its settings is in use; only then is it worth importing to ask it."""
    if any(name.startswith("PREFECT_API_") for name in os.environ):
        return True
    home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect")
    if (home / "profiles.toml").is_file() or Path("prefect.toml").is_file():
        return True
    with contextlib.suppress(OSError, tomllib.TOMLDecodeError):
        return "prefect" in tomllib.loads(Path("pyproject.toml").read_text()).get("tool", {})
    return False
