"""A server on loopback that keeps Daytona's protocol, its answers built with the SDK's own models; commands run in local sandboxes.

It proves that the provider and the pinned SDK speak it, not how the cloud behaves.
"""

import asyncio
import contextlib
import itertools
import json

import pytest
from aiohttp import web

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.local import LocalProvider
from gymflow.sandboxes.local.platform import bubblewrap

KEY = "dtn_test_key"


class Cloud:
    """Routes of the API and of the toolbox. `faults`: method and path ending -> answers to give instead, in turn."""

    def __init__(self) -> None:
        self.boxes: dict[str, dict] = {}
        self.requests: list[tuple[str, str, dict | None]] = []
        self.faults: dict[str, list] = {}
        self.snapshots: dict[str, dict] = {}
        self.url = ""
        self._local = LocalProvider()
        self._names = itertools.count(1)

    @web.middleware
    async def front(self, request: web.Request, handler) -> web.StreamResponse:
        if request.path.startswith("/api/socket.io"):
            return web.Response(status=404)
        body = await request.json() if request.content_type == "application/json" and request.can_read_body else None
        self.requests.append((request.method, request.path, body))
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.json_response({"message": "Invalid credentials", "statusCode": 401}, status=401)
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
                    return web.json_response({"message": f"told to say {answer}", "statusCode": answer}, status=answer)
        return await handler(request)

    def told(self, box: dict, model) -> web.Response:
        known = {name: value for name, value in box.items() if name in model.model_fields and value is not None}
        return web.json_response(json.loads(model(**known).to_json()))

    async def create(self, request: web.Request) -> web.Response:
        from daytona_api_client_async import Sandbox

        wished = await request.json()
        name = wished.get("name") or f"box-{next(self._names)}"
        box = {
            "id": f"id-of-{name}", "organization_id": "org", "name": name, "user": wished.get("user", "daytona"),
            "env": wished.get("env", {}), "labels": wished.get("labels", {}), "public": False, "kvm": False,
            "network_block_all": wished.get("networkBlockAll", False), "target": "eu", "gpu": 0,
            "cpu": wished.get("cpu", 1), "memory": wished.get("memory", 1), "disk": wished.get("disk", 3),
            "state": "started", "toolbox_proxy_url": f"{self.url}/toolbox",
        }  # fmt: skip
        box["local"] = await self._local.start(SandboxSpec(user=wished.get("user"), env=wished.get("env", {})))
        self.boxes[name] = box
        return self.told(box, Sandbox)

    def box(self, request: web.Request) -> dict:
        wanted = request.match_info["box"]
        for box in self.boxes.values():
            if wanted in (box["id"], box["name"]):
                return box
        raise web.HTTPNotFound(
            text='{"message": "Sandbox not found", "statusCode": 404}', content_type="application/json"
        )

    async def one(self, request: web.Request) -> web.Response:
        from daytona_api_client_async import Sandbox

        return self.told(self.box(request), Sandbox)

    async def listed(self, request: web.Request) -> web.Response:
        from daytona_api_client_async import SandboxListItem

        wanted = json.loads(request.query.get("labels", "{}"))
        fitting = [box for box in self.boxes.values() if wanted.items() <= box["labels"].items()]
        page = int(request.query.get("cursor", 0))
        items = [json.loads(self.told(box, SandboxListItem).text) for box in fitting[page : page + 2]]
        following = str(page + 2) if page + 2 < len(fitting) else None
        return web.json_response({"items": items, **({"nextCursor": following} if following else {})})

    async def deleted(self, request: web.Request) -> web.Response:
        from daytona_api_client_async import Sandbox

        box = self.boxes.pop(self.box(request)["name"])
        await box["local"].stop()
        return self.told({**box, "state": "destroying"}, Sandbox)

    async def execute(self, request: web.Request) -> web.Response:
        wished = await request.json()
        local = self.box(request)["local"]
        done = await local.exec(
            f"exec 2>&1; {wished['command']}",
            env=wished.get("envs"),
            timeout_s=wished.get("timeout") or 10,
            keep_bytes=1 << 24,
        )
        if done.outcome == "timeout":
            return web.json_response({"message": "command execution timeout", "statusCode": 408}, status=408)
        return web.json_response({"exitCode": done.exit_code, "result": done.stdout.decode(errors="replace")})

    async def upload(self, request: web.Request) -> web.Response:
        local = self.box(request)["local"]
        async for part in await request.multipart():
            content = bytes(await part.read())
            if part.name.endswith(".path"):
                path = content.decode()
            else:
                await local.put(path, content)
        return web.json_response({})

    async def download(self, request: web.Request) -> web.Response:
        local = self.box(request)["local"]
        boundary, parts = "a-boundary-of-ours", []
        for path in (await request.json())["paths"]:
            try:
                name, content = "file", await local.get(path)
            except OSError as error:
                name, content = "error", str(error).encode()
            head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{path}"\r\nContent-Type: application/octet-stream\r\n\r\n'
            parts.append(head.encode() + content + b"\r\n")
        whole = b"".join(parts) + f"--{boundary}--\r\n".encode()
        return web.Response(body=whole, headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})

    async def snapshot(self, request: web.Request) -> web.Response:
        from daytona_api_client_async.models import SnapshotDto

        wished = await request.json()
        now = "2026-01-01T00:00:00Z"
        if wished["name"] in self.snapshots:
            return web.json_response({"message": "Snapshot already exists", "statusCode": 409}, status=409)
        self.snapshots[wished["name"]] = wished
        made = SnapshotDto(
            id=f"id-of-{wished['name']}", general=False, name=wished["name"], state="active", size=0.1, entrypoint=None, cpu=1,
            gpu=0, mem=1, disk=3, error_reason=None, created_at=now, updated_at=now, last_used_at=None, source_sandbox_id=None,
        )  # fmt: skip
        return web.json_response(json.loads(made.to_json()))

    def application(self) -> web.Application:
        made = web.Application(middlewares=[self.front], client_max_size=1 << 30)
        made.add_routes([
            web.post("/api/sandbox", self.create), web.get("/api/sandbox", self.listed),
            web.post("/api/snapshots", self.snapshot), web.get("/api/sandbox/{box}", self.one), web.delete("/api/sandbox/{box}", self.deleted),
            web.post("/toolbox/{box}/process/execute", self.execute),
            web.post("/toolbox/{box}/files/bulk-upload", self.upload),
            web.post("/toolbox/{box}/files/bulk-download", self.download),
        ])  # fmt: skip
        return made

    async def close(self) -> None:
        for box in self.boxes.values():
            await box["local"].stop()
        await self._local.close()


@pytest.fixture
async def cloud(monkeypatch):
    """The server, and an account there in the environment."""
    pytest.importorskip("daytona")
    if isinstance(reason := bubblewrap(), str):
        pytest.skip(f"no local sandboxes here: {reason}")
    for name in ("DAYTONA_JWT_TOKEN", "DAYTONA_ORGANIZATION_ID", "DAYTONA_TARGET"):
        monkeypatch.delenv(name, raising=False)
    made = Cloud()
    runner = web.AppRunner(made.application(), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    monkeypatch.setenv("DAYTONA_API_URL", f"{made.url}/api")
    monkeypatch.setenv("DAYTONA_API_KEY", KEY)
    yield made
    await made.close()
    await runner.cleanup()


@pytest.fixture
async def provider(cloud):
    from gymflow.sandboxes.daytona import DaytonaProvider

    made = DaytonaProvider()
    yield made
    await made.close()


@pytest.fixture
async def sandbox(provider):
    started = await provider.start(SandboxSpec(provider="daytona"), labels={"gymflow.run": "r1"})
    yield started
    with contextlib.suppress(Exception):
        await started.stop()
