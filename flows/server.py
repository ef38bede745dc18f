"""Which Prefect server a command's flow runs are recorded on, if any, and the local one that `gym up` starts.

The ephemeral server is never used: it costs many seconds a command and loses records when the process ends.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from gymflow.errors import InputError
from gymflow.paths import shipped

POOL = "gymflow"
START_TIMEOUT_S = 300.0
PROBE_S = 2.0
QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
    "PREFECT_TELEMETRY_ENABLE_RESOURCE_METRICS": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "gymflow,tasks",
}


@dataclass(frozen=True, slots=True)
class LocalServer:
    """What `gym up` started: its API, and the processes to end."""

    api_url: str
    server_pid: int
    worker_pid: int
    store: str

    @property
    def ui_url(self) -> str:
        """Where a person looks."""
        return self.api_url.removesuffix("/api")


def state_dir() -> Path:
    """Where the local server keeps its state file, database and logs."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "gymflow"


def running_server() -> LocalServer | None:
    """The server that `gym up` started, if it answers."""
    try:
        server = LocalServer(**json.loads((state_dir() / "server.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return server if healthy(server.api_url) else None


def healthy(api_url: str) -> bool:
    """Whether a Prefect API answers there."""
    try:
        with urllib.request.urlopen(f"{api_url}/health", timeout=PROBE_S) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def start(store: str, port: int) -> LocalServer:
    """Start server and worker, register the deployments, and write the state file. Returns when all answer."""
    if (running := running_server()) is not None:
        return running
    home = state_dir()
    home.mkdir(parents=True, exist_ok=True)
    url = f"http://127.0.0.1:{port}/api"
    if healthy(url):
        raise InputError(f"something else answers at {url}; choose another --port, or set PREFECT_API_URL to use it")
    environment = (
        os.environ
        | QUIET
        | {
            "PREFECT_HOME": str(home / "prefect"),
            "PREFECT_API_URL": url,
            "PREFECT_SERVER_UI_API_URL": url,
            "GYMFLOW_STORE": store,
        }
    )
    server_log = home / "server.log"
    server = _spawn(["server", "start", "--host", "127.0.0.1", "--port", str(port)], environment, server_log)
    _await(lambda: healthy(url), server, server_log)
    _prefect(["work-pool", "create", POOL, "--type", "process", "--overwrite"], environment)
    deploy(environment)
    worker = _spawn(["worker", "start", "--pool", POOL, "--name", "local"], environment, home / "worker.log")
    state = LocalServer(url, server.pid, worker.pid, store)
    (home / "server.json").write_text(json.dumps(asdict(state)))
    return state


def deploy(environment: dict[str, str] | None = None) -> None:
    """Register the deployments of `deployments/prefect.yaml`."""
    file = shipped("deployments") / "prefect.yaml"
    _prefect(["--no-prompt", "deploy", "--all", "--prefect-file", str(file)], environment or dict(os.environ))


def stop() -> bool:
    """End worker and server, the worker first so that its flow runs end as cancelled. False: nothing was there."""
    file = state_dir() / "server.json"
    try:
        server = LocalServer(**json.loads(file.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return False
    for pid in (server.worker_pid, server.server_pid):
        _end(pid)
    file.unlink()
    return True


def _spawn(arguments: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    # A worker that inherits an ignored SIGINT never ends on SIGTERM, hence the reset.
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "prefect", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
        )


def _prefect(arguments: list[str], environment: dict[str, str]) -> None:
    # Prefect takes the folder that a deployment is registered from as the one to run it in.
    done = subprocess.run(
        [sys.executable, "-m", "prefect", *arguments],
        env=environment,
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise InputError(f"prefect {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}".rstrip())


def _await(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if ready():
            return
        if process.poll() is not None:
            break
        time.sleep(0.3)
    process.kill()
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
    raise InputError(f"the Prefect server did not come up; the end of {log}:\n{tail}")


def _end(pid: int) -> None:
    for sig, patience in ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(pid, sig)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            try:
                if os.waitpid(pid, os.WNOHANG)[0]:
                    return
            except ChildProcessError:
                if not Path(f"/proc/{pid}").exists():
                    return
            time.sleep(0.1)
