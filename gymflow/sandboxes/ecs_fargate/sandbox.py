"""A Fargate task as a sandbox: commands go to the agent in it."""

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import aiohttp

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.ecs_fargate.agent import PORT
from gymflow.sandboxes.errors import SandboxError, SandboxLost, SandboxUnsupported
from gymflow.sandboxes.interface import KEEP_BYTES, Command, ExecResult, Usage, argv_of
from gymflow.sandboxes.posix import ENTER, MARK, ShellSandbox

AGENT_USER = "1000:1000"
PROCESSES = 256
READY_S = 60.0
CONFIRMATIONS, CONFIRM_S = 5, 1.0
SILENCE_S = 30.0
"""An agent that lives says so every five seconds."""
FOLDERS = 'o=$1; shift; for d do mkdir -p "$d" && chown "$o" "$d" || exit 1; done'


class FargateSandbox(ShellSandbox):
    """One task, by its id. `gone`: why the task has ended, or None while it runs."""

    def __init__(
        self, task: str, spec: SandboxSpec, *, address: str, token: str, gone: Callable[[], Awaitable[str | None]],
        end: Callable[[], Awaitable[None]],
    ) -> None:  # fmt: skip
        super().__init__(task, spec, "full")
        self._url = f"http://{address}:{PORT}"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._gone, self._end = gone, end
        self._user = ids(spec.user)
        self._home = "/root" if self._user[0] == 0 else "/home/agent"
        self._marks = itertools.count(1)
        self._stopping: asyncio.Task[None] | None = None
        self._ends = time.monotonic() + spec.limits.wall_s if spec.limits.wall_s else None
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=SILENCE_S)
        )

    async def prepare(self) -> None:
        """Wait for the agent, then make the user's folders and put the spec's files in."""
        deadline = time.monotonic() + READY_S
        while not await self._answers():
            if reason := await self._gone():
                raise SandboxLost(f"the task ended before its agent answered: {reason}")
            if time.monotonic() > deadline:
                raise SandboxError(
                    f"the agent at {self._url} does not answer: this machine needs a route to the task's subnet, and its security "
                    f"group has to let it in to port {PORT}"
                )
            await asyncio.sleep(0.5)
        uid, gid = self._user
        folders = [self.spec.workdir, self._home] if uid else [self.spec.workdir]
        made = await self._run(
            ["/bin/sh", "-c", FOLDERS, "sh", f"{uid}:{gid}", *folders], user=(0, 0), cwd="/", timeout_s=60,
            keep_bytes=1 << 12, limit_bytes=1 << 20,
        )  # fmt: skip
        if not made.ok:
            raise SandboxError(f"could not make {self.spec.workdir}: {made.text().strip()[:400]}")
        await self.furnish()

    async def _answers(self) -> bool:
        try:
            async with self._session.get(self._url, headers=self._headers) as response:
                if response.status != 200:
                    raise SandboxError(f"the agent at {self._url} is not this task's (HTTP {response.status})")
                return True
        except (OSError, aiohttp.ClientError, TimeoutError):
            return False

    async def exec(
        self,
        command: Command,
        *,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        timeout_s: float = 60.0,
        keep_bytes: int = KEEP_BYTES,
    ) -> ExecResult:
        return await self._run(
            argv_of(command), stdin=stdin, env=env, cwd=self.resolve(cwd or ""), user=ids(user) if user else self._user,
            timeout_s=timeout_s, keep_bytes=keep_bytes, limit_bytes=self.spec.limits.output_mib << 20,
        )  # fmt: skip

    async def internal(
        self, argv: Sequence[str], *, stdin: bytes | None = None, keep_bytes: int = 1 << 16, timeout_s: float = 300.0
    ) -> ExecResult:
        return await self._run(
            argv, stdin=stdin, cwd="/", user=self._user, timeout_s=timeout_s, keep_bytes=keep_bytes,
            limit_bytes=4 * keep_bytes + (1 << 20),
        )  # fmt: skip

    async def _run(
        self, argv: Sequence[str], *, user: tuple[int, int], cwd: str, timeout_s: float, keep_bytes: int, limit_bytes: int,
        stdin: bytes | None = None, env: Mapping[str, str] | None = None,
    ) -> ExecResult:  # fmt: skip
        if self._stopping is not None:
            raise SandboxLost(f"sandbox {self.id} is gone: it was stopped")
        asked = {
            "argv": ["/bin/sh", "-c", ENTER, "sh", cwd, *argv],
            "env": {"HOME": self._home, "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", **self.spec.env, **(env or {})},
            "cwd": cwd, "uid": user[0], "gid": user[1],
            "processes": (self.spec.limits.processes or PROCESSES) if user[0] else None,
            "timeout_s": timeout_s, "keep_bytes": keep_bytes, "limit_bytes": limit_bytes,
            "mark": f"{MARK}={self.id}.{next(self._marks)}",
        }  # fmt: skip
        started = time.monotonic()
        try:
            body = json.dumps(asked).encode() + b"\n" + (stdin or b"")
            async with self._session.post(f"{self._url}/exec", data=body, headers=self._headers) as response:
                if response.status != 200:
                    said = (await response.text())[:400]
                    raise SandboxError(f"the agent refused a command (HTTP {response.status}): {said}", maybe_ran=False)
                kept, end = await _frames(response.content)
        except (OSError, aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
            if reason := await self._confirmed(error):
                raise SandboxLost(
                    f"sandbox {self.id} is gone: {reason}", oom="OutOfMemory" in reason, cause=error
                ) from error
            maybe_ran = not isinstance(error, aiohttp.ClientConnectorError)
            raise SandboxError(
                f"the connection to the agent broke: {error!r}", maybe_ran=maybe_ran, cause=error
            ) from error
        return ExecResult(
            outcome=end["outcome"], exit_code=end["exit_code"], stdout=bytes(kept[1]), stderr=bytes(kept[2]),
            duration_s=time.monotonic() - started, truncated=end["truncated"],
            usage=Usage(end["cpu_s"], end["peak_memory_bytes"]),
        )  # fmt: skip

    async def _confirmed(self, error: Exception) -> str | None:
        """Why the task is gone; ECS knows some seconds later of an agent that has ended."""
        for _ in range(CONFIRMATIONS if isinstance(error, aiohttp.ClientConnectorError) else 1):
            if self._ends is not None and time.monotonic() >= self._ends:
                return "its time is over"
            if reason := await self._gone():
                return reason
            await asyncio.sleep(CONFIRM_S)
        return None

    async def stop(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        try:
            await self._end()
        finally:
            await self._session.close()


async def _frames(content: aiohttp.StreamReader) -> tuple[dict[int, bytearray], dict[str, Any]]:
    """Both streams and the end of a command, as the agent frames them."""
    kept = {1: bytearray(), 2: bytearray()}
    while True:
        head = await content.readexactly(5)
        payload = await content.readexactly(int.from_bytes(head[1:], "big"))
        if head[0] == 0:
            return kept, json.loads(payload)
        if head[0] in kept:
            kept[head[0]] += payload


def ids(user: str | None) -> tuple[int, int]:
    """Uid and gid: names are the image's own, and only two are the same in all. Raises SandboxUnsupported for another."""
    uid, _, gid = {None: AGENT_USER, "agent": AGENT_USER, "root": "0:0"}.get(user, str(user)).partition(":")
    if not uid.isdigit() or (gid and not gid.isdigit()):
        raise SandboxUnsupported(f"user: {user}: on Fargate a user is `agent`, `root` or `UID[:GID]`")
    return int(uid), int(gid or uid)
