"""Flow runs on a real Prefect server: the same store as inline, deployments, and what Retry, Run again and Cancel do.

The retries and cancellations are what the UI's buttons send.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from gymflow.store import connect
from tests.support.endpoint import start_endpoint

pytestmark = [pytest.mark.server, pytest.mark.slow]

PATIENCE_S = 240


@dataclass
class Server:
    """A server and worker that `gym up` started, with the environment to reach them by state file."""

    api: str
    store: Path
    environment: dict[str, str]

    def gym(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "cli.main", *arguments],
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.api}{path}", data, {"content-type": "application/json"}, method=method)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.loads(answer.read() or b"null")
            except urllib.error.HTTPError as error:
                # its SQLite is locked for now: nothing was done, and Prefect's own client asks again, too
                if error.code != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > deadline:
                    raise
                time.sleep(1)

    def start(self, deployment: str, parameters: dict[str, Any]) -> str:
        """What Run does; returns the flow run's id."""
        found = self.ask(f"/deployments/name/{deployment}")
        run = self.ask(f"/deployments/{found['id']}/create_flow_run", {"parameters": parameters})
        return str(run["id"])

    def wait(self, flow_run: str, *states: str, count: int = 0) -> dict[str, Any]:
        """The flow run once it is in one of the states, in its `count`-th run at least."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            run: dict[str, Any] = self.ask(f"/flow_runs/{flow_run}")
            if run["state_type"] in states and run["run_count"] >= count:
                return run
            time.sleep(0.5)
        raise AssertionError(f"flow run {flow_run} is {run['state_type']}, not {states}: {run['state']['message']}")

    def set_state(self, flow_run: str, kind: str, name: str) -> None:
        self.ask(f"/flow_runs/{flow_run}/set_state", {"state": {"type": kind, "name": name}, "force": False})

    def chunk_states(self, flow_run: str) -> list[str]:
        """The names of the states of a flow run's chunks, newest run of each."""
        runs = self.ask(
            "/task_runs/filter", {"flow_runs": {"id": {"any_": [flow_run]}}, "sort": "EXPECTED_START_TIME_ASC"}
        )
        return [run["state_name"] for run in runs if run["name"].startswith("chunk")]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with connect(self.store) as connection:
            return connection.execute(sql).fetchall()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "GYMFLOW_"))}
    environment |= {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("STATE", "CACHE")}
    environment |= {"GYMFLOW_STORE": str(folder / "store"), "PREFECT_HOME": str(folder / "prefect")}
    found = Server(f"http://127.0.0.1:{port}/api", folder / "store", environment)
    up = found.gym("up", "--port", str(port))
    assert up.returncode == 0, up.stderr
    yield found
    assert found.gym("down").returncode == 0


def config(url: str, **fields: Any) -> dict[str, Any]:
    return {
        "environments": [{"name": "mcqa", "limit": 4}],
        "models": {"policy": {"provider": "openai", "model": "fake-model", "base_url": url, "max_retries": 0}},
        "repeats": 2,
        "limits": {"chunk_size": 4, "max_attempts": 1},
    } | fields


def test_a_command_is_recorded_and_leaves_the_same_store_as_inline(server: Server) -> None:
    with start_endpoint(text="The answer is (C).") as endpoint:
        arguments = [
            "eval",
            "run",
            "mcqa",
            "--limit",
            "4",
            "--repeats",
            "2",
            "--model",
            "fake",
            "--base-url",
            endpoint.url,
        ]
        recorded, inline = server.gym(*arguments, "--json"), server.gym(*arguments, "--json", "--inline")
    assert recorded.returncode == inline.returncode == 0, recorded.stderr
    ids = [json.loads(one.stdout)[0]["run_id"] for one in (recorded, inline)]
    columns = "task_key, repeat, seed, rollout_key, outcome, reward, stop_reason"
    first, second = (server.rows(f"select {columns} from outcomes where run_id = '{one}' order by all") for one in ids)
    assert len(first) == 8 and first == second
    runs = server.ask("/flow_runs/filter", {"flow_runs": {"name": {"any_": ["evaluate mcqa"]}}})
    assert [run["state_type"] for run in runs] == ["COMPLETED"]


def test_a_models_key_comes_from_a_secret_block_and_is_stored_nowhere(server: Server) -> None:
    key = "sk-of-the-secret-block"
    save = f"from prefect.blocks.system import Secret; Secret(value={key!r}).save('model-key')"
    environment = server.environment | {"PREFECT_API_URL": server.api}
    subprocess.run([sys.executable, "-c", save], env=environment, check=True, capture_output=True, timeout=PATIENCE_S)
    with start_endpoint(text=f"The answer is (C), says {key}.", api_key=key) as endpoint:
        model = ["--model", "fake", "--base-url", endpoint.url, "--set"]
        command = ["eval", "run", "mcqa", "--limit", "1", "--json", *model]
        refused = server.gym(*command, "models.policy.api_key=${prefect:other-key}")
        done = server.gym(*command, "models.policy.api_key=${prefect:model-key}")
    assert refused.returncode == 2 and "has no Secret block 'other-key'" in refused.stderr
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["lines"][0]["scored"] == 1
    stored = b"".join(path.read_bytes() for path in server.store.rglob("*") if path.is_file())
    assert key.encode() not in stored and b"${prefect:model-key}" in stored


def test_the_deployments_are_registered_with_their_schedule(server: Server) -> None:
    found = {f"{one['name']}": one for one in server.ask("/deployments/filter", {})}
    nightly = found["nightly"]
    assert [schedule["schedule"]["cron"] for schedule in nightly["schedules"]] == ["0 2 * * *"]
    assert {one["work_pool_name"] for one in found.values()} == {"gymflow"}
    assert "environments" in json.dumps(nightly["parameter_openapi_schema"])


def test_retry_finishes_what_is_missing_and_run_again_starts_anew(server: Server) -> None:
    with start_endpoint(text="The answer is (C).", error_rate=0.3, error_status=400) as endpoint:
        flow_run = server.start("evaluate/on-demand", {"config": config(endpoint.url, name="retried")})
        server.wait(flow_run, "FAILED")
        run_id = f"retried-{flow_run[:8]}"
        kept = set(
            server.rows(
                f"select rollout_id, started_at from rollouts where run_id = '{run_id}' and status = 'completed'"
            )
        )
        assert 0 < len(kept) < 8
        endpoint.control(error_rate=0)
        server.set_state(flow_run, "SCHEDULED", "AwaitingRetry")
        server.wait(flow_run, "COMPLETED", count=2)
        after = server.rows(
            f"select rollout_id, started_at from rollouts where run_id = '{run_id}' and status = 'completed'"
        )
        assert len(after) == 8 and kept <= set(after)
        asked = endpoint.stats()["requests"]
        server.set_state(flow_run, "SCHEDULED", "AwaitingRetry")
        server.wait(flow_run, "COMPLETED", count=3)
        assert endpoint.stats()["requests"] == asked, "a complete run was sampled again"
        again = server.start("evaluate/on-demand", {"config": config(endpoint.url, name="retried")})
        server.wait(again, "COMPLETED")
        assert endpoint.stats()["requests"] == asked + 8
    assert "Cached" in server.chunk_states(flow_run)


def test_cancel_leaves_a_run_that_can_be_resumed(server: Server) -> None:
    with start_endpoint(text="The answer is (C).", latency_ms=700) as endpoint:
        slow = config(endpoint.url, name="cancelled", repeats=20, limits={"chunk_size": 8, "concurrency": 2})
        flow_run = server.start("evaluate/on-demand", {"config": slow})
        run_id = f"cancelled-{flow_run[:8]}"
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and not _durable(server, run_id):
            time.sleep(0.5)
        server.set_state(flow_run, "CANCELLING", "Cancelling")
        server.wait(flow_run, "CANCELLED")
        kept = set(_durable(server, run_id))
        assert 0 < len(kept) < 80
        endpoint.control(latency_ms=0)
        resumed = server.gym("eval", "run", "--resume", run_id, "--concurrency", "16", "--inline", "--json")
    assert resumed.returncode == 0, resumed.stderr
    after = _durable(server, run_id)
    assert len(after) == 80 and kept <= set(after)


def test_reverify_runs_from_its_deployment(server: Server) -> None:
    with start_endpoint(text="The answer is (C).") as endpoint:
        sampled = server.start("evaluate/on-demand", {"config": config(endpoint.url, name="judged-again")})
        server.wait(sampled, "COMPLETED")
    run_id = f"judged-again-{sampled[:8]}"
    flow_run = server.start("reverify/on-demand", {"run_id": run_id, "parameters": {"mode": "lenient"}})
    server.wait(flow_run, "COMPLETED")
    assert server.rows(f"select count(distinct verdict_set) from verdicts where run_id = '{run_id}'") == [(2,)]


def test_decide_waits_for_a_person_and_goes_on_with_what_was_chosen(server: Server) -> None:
    """What the form of the UI sends; while it waits no process is held."""
    with start_endpoint(text="The answer is (C).") as endpoint:
        flow_run = server.start("evaluate/on-demand", {"config": config(endpoint.url, name="decided")})
        server.wait(flow_run, "COMPLETED")
    run_id = f"decided-{flow_run[:8]}"
    deciding = server.start("decide/on-demand", {"run_id": run_id})
    keys = server.wait(deciding, "PAUSED")["state"]["state_details"]["run_input_keyset"]
    offered = server.ask(f"/flow_runs/{deciding}/input/{keys['schema']}")["properties"]["intervention"]
    choice = offered.get("const") or offered["enum"][0]
    form = {"intervention": "something else", "decided_by": "Grace", "reason": "it promises most"}
    refused = server.ask(f"/flow_runs/{deciding}/resume", {"run_input": form})
    assert refused["status"] == "REJECT" and "intervention" in refused["details"]["reason"]
    server.ask(f"/flow_runs/{deciding}/resume", {"run_input": form | {"intervention": choice}})
    server.wait(deciding, "COMPLETED")
    made = server.rows("select run_id, decided_by, reason, rank from decisions")
    assert made == [(run_id, "Grace", "it promises most", 1)]


def test_a_configured_server_that_is_dead_is_an_error_unless_inline(server: Server) -> None:
    with start_endpoint(text="The answer is (C).") as endpoint:
        arguments = ["eval", "run", "mcqa", "--limit", "1", "--model", "fake-model", "--base-url", endpoint.url]
        dead = server.gym(*arguments, PREFECT_API_URL="http://127.0.0.1:9/api")
        inline = server.gym(*arguments, "--inline", PREFECT_API_URL="http://127.0.0.1:9/api")
    assert dead.returncode == 2 and "does not answer" in dead.stderr and "--inline" in dead.stderr
    assert inline.returncode == 0, inline.stderr


def _durable(server: Server, run_id: str) -> list[tuple[Any, ...]]:
    query = f"select rollout_id, started_at from rollouts where run_id = '{run_id}' and status = 'completed'"
    return server.rows(query) if (server.store / "runs" / run_id / "run.json").exists() else []
