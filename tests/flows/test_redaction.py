"""A secret that reaches a tool, a snapshot, an artifact or an error message is masked before anything is stored."""

from pathlib import Path

import pytest

from gymflow.errors import InputError
from gymflow.store import Store
from tests.support.endpoint import start_endpoint
from tests.support.environments import write_environment
from tests.support.runs import scripted

KEY = 'key-"of"-the-model-ü7'

SESSION = '''"""A tool that tells what it should not."""

import os

from gymflow.environments import Session, Snapshot, ToolResult


class Leaky(Session):
    async def tools(self):
        return [{"type": "function", "name": "env", "parameters": {"type": "object", "properties": {}}}]

    async def call(self, tool, arguments):
        return ToolResult("LEAKED=" + os.environ["LEAKED_API_KEY"])

    async def snapshot(self):
        key = os.environ["LEAKED_API_KEY"]
        return Snapshot(state={key: [key], "kept": 1}, artifacts={"log": b"\\x00\\xff " + key.encode() + b" end"})

    async def close(self):
        pass
'''
FAILING = SESSION.replace(
    'return ToolResult("LEAKED=" + os.environ["LEAKED_API_KEY"])',
    'raise OSError("refused " + os.environ["LEAKED_API_KEY"])',
)
RULES = [
    {"turn": 0, "tool_calls": [{"name": "env"}]},
    {"turn": 1, "matches": "LEAKED=(.*)", "text": r"yes, it says \1"},
]


def everything(store: Path) -> bytes:
    return b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEAKED_API_KEY", KEY)

    def make(session: str) -> dict:
        files = {"session.py": session}
        folder = write_environment(
            tmp_path / "leaky",
            files=files,
            session="session:Leaky",
            harness={"name": "simple"},
            offers=["messages", "tools"],
        )
        return {"name": str(folder), "limit": 1}

    return make


async def test_tools_snapshots_and_artifacts(run, rows, store, environment):
    card = await run(scripted(environments=[environment(SESSION)], rules=RULES))
    assert card.lines[0].scored == 1
    stored = everything(store)
    assert KEY.encode() not in stored and b'key-\\"of' not in stored
    assert rows("select output from tool_calls") == [("LEAKED=***",)]
    [(snapshot, artifacts)] = rows("select snapshot::VARCHAR, artifacts::VARCHAR from evidence")
    assert '"***":["***"]' in snapshot.replace(" ", "") and '"kept":1' in snapshot.replace(" ", "")
    digest = artifacts.split('"log":')[1].strip(' "}')
    assert Store(store).artifacts.read(digest) == b"\x00\xff " + b"*" * len(KEY.encode()) + b" end"
    assert "it says ***" in rows("select output::VARCHAR from model_calls where call = 1")[0][0]


async def test_a_secret_that_is_written_out_is_refused_before_the_run(run, store):
    parameters = {"headers": {"Authorization": "Basic dXNlcjpwYXNz", "X-Team": "t", "X-Api-Key": "${env:KEY}"}}
    model = {
        "provider": "openai",
        "model": "m",
        "base_url": "http://u:hunter2@127.0.0.1:9/v1",
        "parameters": parameters,
    }
    with pytest.raises(
        InputError, match=r"models\.policy\.base_url, models\.policy\.parameters\.headers\.Authorization: a"
    ):
        await run(scripted(models={"policy": model}))
    assert not store.exists()


async def test_references_within_urls_and_headers_are_kept(run, rows, store, monkeypatch):
    monkeypatch.setenv("GATE_PASSWORD", "pass-word-1!")
    with start_endpoint(text="The answer is (A).") as endpoint:
        url = endpoint.url.replace("http://", "http://user:${env:GATE_PASSWORD}@")
        parameters = {"headers": {"X-Auth-Token": "Gate ${env:GATE_PASSWORD}"}}
        model = {"provider": "openai", "model": "fake-model", "base_url": url, "parameters": parameters}
        card = await run(scripted(models={"policy": model}))
    assert card.lines[0].scored == 4
    assert b"pass-word-1!" not in everything(store)
    kept = Store(store).run("r").document.config.models["policy"]
    assert (kept.base_url, kept.parameters) == (url, parameters)


async def test_error_messages(run, rows, store, environment):
    limits = {"max_attempts": 1}
    card = await run(scripted(environments=[environment(FAILING)], rules=RULES, limits=limits))
    assert card.lines[0].failed == 1
    assert KEY.encode() not in everything(store)
    assert "refused ***" in rows("select failure_message from rollouts")[0][0]
