"""A server on loopback that keeps OpenSandbox's two protocols (life cycle, and the daemon in each sandbox); commands run in
local sandboxes.

It proves that the provider and the pinned SDK speak them. The server itself is run by `test_server.py`.
"""

import asyncio
import contextlib
import datetime
import itertools
import json
import time

import pytest
from aiohttp import web

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.local import LocalProvider
from gymflow.sandboxes.local.platform import bubblewrap

KEY = "os-test-key"


def problem(status: int, message: str) -> web.Response:
    return web.json_response({"code": f"TEST::{status}", "message": message}, status=status)


class Server:
    """Routes of both. `faults`: method and path ending -> answers to give instead, in turn; `silent`: the daemon's streams end
    before their commands do."""

    def __init__(self) -> None:
        self.boxes: dict[str, dict] = {}
        self.requests: list[tuple[str, str, dict | None]] = []
        self.faults: dict[str, list] = {}
        self.address = ""
        self.silent = False
        self._local = LocalProvider()
        self._names = itertools.count(1)

    @web.middleware
    async def front(self, request: web.Request, handler) -> web.StreamResponse:
        body = await request.json() if request.content_type == "application/json" and request.can_read_body else None
        self.requests.append((request.method, request.path, body))
        if request.path.startswith("/v1") and request.headers.get("OPEN-SANDBOX-API-KEY") != KEY:
            return problem(401, "missing or wrong key")
        for ending, answers in self.faults.items():
            method, _, path = ending.partition(" ")
            if method == request.method and request.path.endswith(path) and answers:
                answer = answers.pop(0)
                if answer == "run, then cut":
                    await handler(request)
                if answer in ("cut", "run, then cut"):
                    request.transport.close()
                    return web.Response()
                if isinstance(answer, float):
                    await asyncio.sleep(answer)
                    continue
                if isinstance(answer, int):
                    return problem(answer, f"told to say {answer}")
        return await handler(request)

    # --- the life cycle ---

    def told(self, box: dict) -> dict:
        now = datetime.datetime.now(datetime.UTC).isoformat()
        return {
            "id": box["id"], "status": {"state": box["state"]}, "createdAt": now, "entrypoint": ["tail", "-f", "/dev/null"],
            "metadata": box["metadata"], "image": {"uri": box["image"]},
        }  # fmt: skip

    async def create(self, request: web.Request) -> web.Response:
        wished = await request.json()
        name = f"os-{next(self._names)}"
        self.boxes[name] = {
            "id": name, "state": "Running", "metadata": wished.get("metadata", {}), "image": wished["image"]["uri"],
            "local": await self._local.start(SandboxSpec(env=wished.get("env") or {})),
        }  # fmt: skip
        return web.json_response(self.told(self.boxes[name]), status=202)

    def box(self, request: web.Request) -> dict:
        try:
            return self.boxes[request.match_info["box"]]
        except KeyError:
            raise web.HTTPNotFound(
                text='{"code": "DOCKER::SANDBOX_NOT_FOUND", "message": "no such sandbox"}',
                content_type="application/json",
            ) from None

    async def one(self, request: web.Request) -> web.Response:
        return web.json_response(self.told(self.box(request)))

    async def listed(self, request: web.Request) -> web.Response:
        wanted = dict(pair.split("=", 1) for pair in request.query.get("metadata", "").split("&") if pair)
        fitting = [box for box in self.boxes.values() if wanted.items() <= box["metadata"].items()]
        page, size = int(request.query.get("page", 1)), min(2, int(request.query.get("pageSize", 20)))
        items = [self.told(box) for box in fitting[(page - 1) * size : page * size]]
        pages = -(-len(fitting) // size)
        pagination = {"page": page, "pageSize": size, "totalItems": len(fitting), "totalPages": pages, "hasNextPage": page < pages}  # fmt: skip
        return web.json_response({"items": items, "pagination": pagination})

    async def deleted(self, request: web.Request) -> web.Response:
        box = self.boxes.pop(self.box(request)["id"])
        await box["local"].stop()
        return web.Response(status=204)

    async def endpoint(self, request: web.Request) -> web.Response:
        return web.json_response({"endpoint": f"{self.address}/daemon/{self.box(request)['id']}"})

    # --- the daemon in a sandbox ---

    async def ping(self, request: web.Request) -> web.Response:
        self.box(request)
        return web.Response()

    async def command(self, request: web.Request) -> web.StreamResponse:
        wished = await request.json()
        done = await self.box(request)["local"].exec(
            wished["command"], env=wished.get("envs"), timeout_s=wished["timeout"] / 1000, keep_bytes=1 << 24
        )
        now = int(time.time() * 1000)
        # As the daemon does: a line each, without what ended it, and an empty one as its end.
        lines = [
            {"type": kind, "text": line or "\n", "timestamp": now}
            for kind, text in (("stdout", done.stdout), ("stderr", done.stderr))
            for line in text.decode(errors="replace").splitlines()
        ]
        end: dict = {"type": "execution_complete", "execution_time": 1, "timestamp": now}
        if done.exit_code:
            failed = {"ename": "CommandExecError", "evalue": str(done.exit_code), "traceback": []}
            end = {"type": "error", "error": failed, "timestamp": now}
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        if self.silent:
            lines, end = [], {"type": "ping", "timestamp": now}
        for event in [{"type": "init", "text": "an-id", "timestamp": now}, *lines, end]:
            await answer.write(json.dumps(event).encode() + b"\n\n")
        await answer.write_eof()
        return answer

    async def upload(self, request: web.Request) -> web.Response:
        local = self.box(request)["local"]
        async for part in await request.multipart():
            content = bytes(await part.read())
            if part.name == "metadata":
                wished = json.loads(content)
            else:
                await local.put(wished["path"], content, mode=int(str(wished["mode"]), 8))
        return web.json_response({})

    async def download(self, request: web.Request) -> web.Response:
        try:
            return web.Response(body=await self.box(request)["local"].get(request.query["path"]))
        except FileNotFoundError:
            return problem(404, "no such file")

    def application(self) -> web.Application:
        made = web.Application(middlewares=[self.front], client_max_size=1 << 30)
        daemon = "/daemon/{box}"
        made.add_routes([
            web.post("/v1/sandboxes", self.create), web.get("/v1/sandboxes", self.listed),
            web.get("/v1/sandboxes/{box}", self.one), web.delete("/v1/sandboxes/{box}", self.deleted),
            web.get("/v1/sandboxes/{box}/endpoints/{port}", self.endpoint),
            web.get(f"{daemon}/ping", self.ping), web.post(f"{daemon}/command", self.command),
            web.post(f"{daemon}/files/upload", self.upload), web.get(f"{daemon}/files/download", self.download),
        ])  # fmt: skip
        return made

    async def close(self) -> None:
        for box in self.boxes.values():
            await box["local"].stop()
        await self._local.close()


@pytest.fixture
async def server(monkeypatch):
    """The server, and its address and key in the environment."""
    pytest.importorskip("opensandbox")
    if isinstance(reason := bubblewrap(), str):
        pytest.skip(f"no local sandboxes here: {reason}")
    made = Server()
    runner = web.AppRunner(made.application(), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.address = f"127.0.0.1:{runner.addresses[0][1]}"
    monkeypatch.setenv("OPEN_SANDBOX_DOMAIN", made.address)
    monkeypatch.setenv("OPEN_SANDBOX_API_KEY", KEY)
    monkeypatch.delenv("GYMFLOW_OPENSANDBOX_IMAGE", raising=False)
    yield made
    await made.close()
    await runner.cleanup()


@pytest.fixture
async def provider(server):
    from gymflow.sandboxes.opensandbox import OpenSandboxProvider

    made = OpenSandboxProvider()
    yield made
    await made.close()


@pytest.fixture
async def sandbox(provider):
    started = await provider.start(SandboxSpec(provider="opensandbox"), labels={"gymflow.run": "r1"})
    yield started
    with contextlib.suppress(Exception):
        await started.stop()
