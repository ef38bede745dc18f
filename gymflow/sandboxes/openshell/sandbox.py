"""A sandbox behind a gateway. Its exec takes no line break in an argument and no argument above 32 KiB, so that what is to run
goes there on stdin, and a command's own stdin as a file."""

import shlex
from collections.abc import Mapping, Sequence

import grpc
import openshell

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.errors import RolloutFailure
from gymflow.sandboxes.errors import SandboxLost
from gymflow.sandboxes.openshell.gateway import GONE, Gateway, code_of, failed
from gymflow.sandboxes.shim import Report, ShimSandbox, Words, reported

CALL_S = 60
PIECE_BYTES = 512 << 10
"""Gateways take about a megabyte of stdin in one call."""
READY = 2
DELETING = 4
RUN_STDIN = ["/bin/sh", "-c", 'eval "$(cat)"']


class OpenShellSandbox(ShimSandbox):
    """One sandbox, by name."""

    how = "raw"

    def __init__(self, name: str, spec: SandboxSpec, gateway: Gateway) -> None:
        super().__init__(name, spec, "full", {"LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", **spec.env})
        self._gateway = gateway

    async def _shimmed(
        self, words: Words, *, env: Mapping[str, str], stdin: bytes | None, deadline_s: float
    ) -> tuple[Report, bytes, bytes]:
        if stdin is not None:
            await self._write(f"{words.path}.in", stdin)
        script = "exec env " + shlex.join([*(f"{name}={value}" for name, value in env.items()), *words.argv])
        data = script.encode()
        if len(data) > PIECE_BYTES:
            await self._write(f"{words.path}.cmd", data)
            data = f". {words.path}.cmd".encode()
        _, stdout, stderr = await self._call(RUN_STDIN, data, deadline_s)
        said, _, line = stderr.rstrip(b"\n").rpartition(b"\n")
        return reported(line), stdout, said

    async def _plain(self, argv: Sequence[str], *, deadline_s: float) -> tuple[int, str]:
        code, stdout, stderr = await self._call(RUN_STDIN, f"exec {shlex.join(argv)}".encode(), deadline_s)
        return code, (stdout + stderr).decode(errors="replace")

    async def _write(self, path: str, data: bytes) -> None:
        """A file of ours, piece by piece."""
        for start in range(0, max(len(data), 1), PIECE_BYTES):
            await self._call(["/bin/sh", "-c", f"cat >>{path}"], data[start : start + PIECE_BYTES], CALL_S)

    async def _call(self, argv: Sequence[str], stdin: bytes, deadline_s: float) -> tuple[int, bytes, bytes]:
        """A command by the gateway's own exec: its exit code and both streams."""
        out = {"stdout": bytearray(), "stderr": bytearray()}

        def follow() -> int:
            code = -1
            stream = self._gateway.client.exec_stream(
                self.id, list(argv), workspace=self._gateway.workspace, stdin=stdin, timeout_seconds=int(deadline_s),
                no_login_shell=True,
            )  # fmt: skip
            for item in stream:
                if isinstance(item, openshell.ExecChunk):
                    out[item.stream] += item.data
                else:
                    code = item.exit_code
            return code

        try:
            code = await self._gateway.raw(follow)
        except (grpc.RpcError, openshell.SandboxError) as error:
            raise await self._told(error) from error
        return code, bytes(out["stdout"]), bytes(out["stderr"])

    async def _told(self, error: Exception) -> RolloutFailure:
        """A call to the sandbox failed: because it is gone, or because the gateway did."""
        try:
            reference = await self._gateway.raw(self._gateway.client.get, self.id, workspace=self._gateway.workspace)
        except (grpc.RpcError, openshell.SandboxError) as second:
            if code_of(second) in GONE:
                return SandboxLost(f"sandbox {self.id} is gone: the gateway does not know it any more", cause=error)
            return failed(error, "run a command")
        if reference.status.phase != READY:
            return SandboxLost(f"sandbox {self.id} is gone: it is not ready any more", cause=error)
        return failed(error, "run a command")

    async def _remove(self) -> None:
        await self._gateway.call("remove a sandbox", self._gateway.client.delete, self.id, allow_missing=True)
