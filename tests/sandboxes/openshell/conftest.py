"""A gRPC server on loopback made of the SDK's own protocol, with a real gateway's limits on what exec takes; commands run in local
sandboxes. It proves that the provider and the pinned SDK speak the protocol, not how a gateway behaves."""

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.local import LocalProvider
from gymflow.sandboxes.local.platform import bubblewrap

TOKEN = "a-token"
ARGUMENT_BYTES, STDIN_BYTES, PAGE = 32 << 10, 1 << 20, 2


def servicer(loop: asyncio.AbstractEventLoop):
    import grpc
    from openshell._proto import openshell_pb2 as pb
    from openshell._proto import openshell_pb2_grpc

    class Served(openshell_pb2_grpc.OpenShellServicer):
        """`faults`: method -> (status, when), in turn; when is `before` or `after` it was done."""

        def __init__(self) -> None:
            self.boxes: dict = {}
            self.created: list = []
            self.calls: list[str] = []
            self.faults: dict[str, list] = {}
            self.phases: list[int] = []
            self.local = LocalProvider()

        def here(self, coroutine):
            return asyncio.run_coroutine_threadsafe(coroutine, loop).result(60)

        def entered(self, method, context):
            self.calls.append(method)
            if ("authorization", f"Bearer {TOKEN}") not in context.invocation_metadata():
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "invalid token")
            self.fault(method, context, "before")

        def fault(self, method, context, when):
            if self.faults.get(method) and self.faults[method][0][1] == when:
                context.abort(self.faults[method].pop(0)[0], "told to fail")

        def box(self, name, context):
            if name not in self.boxes:
                context.abort(grpc.StatusCode.NOT_FOUND, "sandbox not found")
            return self.boxes[name]

        def CreateSandbox(self, request, context):
            self.entered("CreateSandbox", context)
            self.created.append(request)
            made = pb.Sandbox(spec=request.spec)
            made.metadata.id, made.metadata.name = f"id-of-{request.name}", request.name
            made.metadata.labels.update(request.labels)
            made.status.phase = self.phases[0] if self.phases else 2
            self.boxes[request.name] = (
                made,
                self.here(self.local.start(SandboxSpec(env=dict(request.spec.environment)))),
            )
            self.fault("CreateSandbox", context, "after")
            return pb.SandboxResponse(sandbox=made)

        def GetSandbox(self, request, context):
            self.entered("GetSandbox", context)
            made, _ = self.box(request.name, context)
            if self.phases:
                made.status.phase = self.phases.pop(0)
            return pb.SandboxResponse(sandbox=made)

        def ListSandboxes(self, request, context):
            self.entered("ListSandboxes", context)
            wanted = dict(part.split("=") for part in request.label_selector.split(",") if part)
            fitting = [made for made, _ in self.boxes.values() if wanted.items() <= dict(made.metadata.labels).items()]
            first = int(request.page_token or 0)
            following = str(first + PAGE) if first + PAGE < len(fitting) else ""
            return pb.ListSandboxesResponse(sandboxes=fitting[first : first + PAGE], next_page_token=following)

        def DeleteSandbox(self, request, context):
            self.entered("DeleteSandbox", context)
            if request.name not in self.boxes:
                if not request.allow_missing:
                    context.abort(grpc.StatusCode.NOT_FOUND, "sandbox not found")
                return pb.DeleteSandboxResponse(outcome=3)
            self.here(self.boxes.pop(request.name)[1].stop())
            return pb.DeleteSandboxResponse(outcome=1)

        def ExecSandbox(self, request, context):
            self.entered("ExecSandbox", context)
            _, local = self.box(request.sandbox, context)
            for word in [*request.command, *request.environment.values()]:
                if len(word.encode()) > ARGUMENT_BYTES or any(ord(one) < 32 for one in word):
                    context.abort(grpc.StatusCode.INVALID_ARGUMENT, "an argument is too long or has control characters")
            if len(request.stdin) > STDIN_BYTES:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "stdin is too long")
            seconds = request.execution_timeout.seconds or 60
            done = self.here(
                local.exec(
                    list(request.command), stdin=bytes(request.stdin), env=dict(request.environment), timeout_s=seconds,
                    keep_bytes=1 << 26,
                )
            )  # fmt: skip
            self.fault("ExecSandbox", context, "after")
            for stream, data in (("stdout", done.stdout), ("stderr", done.stderr)):
                for start in range(0, len(data), 1 << 16):
                    event = pb.ExecSandboxEvent()
                    getattr(event, stream).data = data[start : start + (1 << 16)]
                    yield event
            event = pb.ExecSandboxEvent()
            event.exit.exit_code = done.exit_code
            yield event

    return Served()


@pytest.fixture
async def gateway(monkeypatch):
    """The server, and its address and a token in the environment."""
    pytest.importorskip("openshell")
    if isinstance(reason := bubblewrap(), str):
        pytest.skip(f"no local sandboxes here: {reason}")
    import grpc
    from openshell._proto import openshell_pb2_grpc

    made = servicer(asyncio.get_running_loop())
    server = grpc.server(ThreadPoolExecutor(8))
    openshell_pb2_grpc.add_OpenShellServicer_to_server(made, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setenv("GYMFLOW_OPENSHELL_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("GYMFLOW_OPENSHELL_TOKEN", TOKEN)
    monkeypatch.setattr("gymflow.sandboxes.openshell.provider.POLL_S", 0.01)
    yield made
    for _, local in made.boxes.values():
        await local.stop()
    await made.local.close()
    server.stop(None)


@pytest.fixture
async def provider(gateway):
    from gymflow.sandboxes.openshell import OpenShellProvider

    made = OpenShellProvider()
    yield made
    await made.close()


@pytest.fixture
async def sandbox(provider):
    started = await provider.start(SandboxSpec(provider="openshell"), labels={"gymflow.run": "r1"})
    yield started
    with contextlib.suppress(Exception):
        await started.stop()
