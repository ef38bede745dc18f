"""Does a provider work here? A dozen behaviours, each with its time; under a minute where the image is at hand."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from gymflow.errors import InputError, RolloutFailure
from gymflow.sandboxes.interface import Capability, Provider, Sandbox
from gymflow.sandboxes.registry import provider as provider_of

CHECK_S = 60.0
START_S = 600.0
CONNECT = """
if command -v python3 >/dev/null; then
  python3 -c 'import socket; socket.create_connection(("1.1.1.1", 443), 5); print("connected")'
else
  timeout 5 bash -c ': </dev/tcp/1.1.1.1/443' && echo connected
fi
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One behaviour. `ok` is None where the provider says that it does not have it."""

    name: str
    ok: bool | None
    duration_s: float
    detail: str = ""


async def check_provider(name: str, image: str | None = None) -> AsyncIterator[Check]:
    """The checks as they are done; after one that nothing works without, no more."""
    began = time.monotonic()
    try:
        provider = provider_of(name)
        lacking = [flag.name or "" for flag in Capability if flag and flag not in provider.capabilities]
        available = Check("available", True, time.monotonic() - began, f"isolation {provider.isolation}" + (f"; without {', '.join(lacking).lower()}" if lacking else ""))  # fmt: skip
        began = time.monotonic()
        spec = provider.sample(image)
        sandbox = await asyncio.wait_for(provider.start(spec, labels={"gymflow.run": "check"}), START_S)
    except (RolloutFailure, InputError, TimeoutError) as error:
        yield Check("start", False, time.monotonic() - began, str(error) or type(error).__name__)
        return
    yield available
    yield Check("start", True, time.monotonic() - began)
    try:
        for label, capability, behaviour in [*_EVERYWHERE, *(_ELSEWHERE if provider.remote else _HERE)]:
            if capability and capability not in provider.capabilities:
                yield Check(label, None, 0.0, "not offered")
                continue
            yield await _timed(label, behaviour(sandbox))
    finally:
        stopped = await _timed("stop", _stopped(provider, sandbox))
    yield stopped


async def _timed(label: str, behaviour: Awaitable[str]) -> Check:
    began = time.monotonic()
    try:
        problem = await asyncio.wait_for(behaviour, CHECK_S)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    return Check(label, not problem, time.monotonic() - began, problem)


async def _streams(sandbox: Sandbox) -> str:
    result = await sandbox.exec("printf 'a\\377'; printf b >&2; exit 3")
    wanted = (3, b"a\xff", b"b")
    return "" if (result.exit_code, result.stdout, result.stderr) == wanted else f"got {result}"


async def _stdin(sandbox: Sandbox) -> str:
    result = await sandbox.exec(["cat"], stdin=b"\x00in\n")
    return "" if result.stdout == b"\x00in\n" else f"got {result.stdout!r}"


async def _files(sandbox: Sandbox) -> str:
    data = bytes(range(256)) * 4096
    await sandbox.put("check/bytes", data)
    return "" if await sandbox.get("check/bytes") == data else "a file came back changed"


async def _timeout(sandbox: Sandbox) -> str:
    result = await sandbox.exec("setsid sleep 97531 & sleep 97531", timeout_s=1)
    left = await sandbox.exec("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")
    if result.outcome != "timeout":
        return f"outcome {result.outcome}"
    return "children live on" if b"sleep 97531" in left.stdout else ""


async def _oom(sandbox: Sandbox) -> str:
    result = await sandbox.exec("x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done", timeout_s=50)
    return "" if result.outcome == "oom" else f"outcome {result.outcome}"


async def _no_interfaces(sandbox: Sandbox) -> str:
    result = await sandbox.exec("tail -n +3 /proc/net/dev; tail -n +2 /proc/net/route")
    others = [line for line in result.stdout.decode().splitlines() if not line.strip().startswith("lo:")]
    return f"there is {others[0].split()[0]}" if others else ""


async def _unreachable(sandbox: Sandbox) -> str:
    """A machine of its own has interfaces; what counts is whether packets leave them."""
    result = await sandbox.exec(CONNECT, timeout_s=30)
    return "a public address answers" if b"connected" in result.stdout else ""


async def _privileges(sandbox: Sandbox) -> str:
    result = await sandbox.exec("grep CapEff /proc/self/status")
    return "" if result.stdout.split()[-1:] == [b"0" * 16] else result.text().strip()


async def _host(sandbox: Sandbox) -> str:
    result = await sandbox.exec("cat /root/.ssh/* /etc/shadow 2>/dev/null | grep -c .")
    return (
        ""
        if result.stdout.strip() in (b"0", b"") or sandbox.spec.provider != "local"
        else "files of this machine are readable"
    )


async def _stopped(provider: Provider, sandbox: Sandbox) -> str:
    await sandbox.stop()
    return "still listed" if sandbox.id in [info.sandbox_id for info in await provider.list()] else ""


_Behaviours = list[tuple[str, Capability | None, Callable[[Sandbox], Awaitable[str]]]]
_EVERYWHERE: _Behaviours = [
    ("exit code and streams", Capability.SEPARATE_STDERR, _streams),
    ("stdin", None, _stdin),
    ("a megabyte there and back", None, _files),
    ("timeout ends the tree", Capability.KILL_TREE, _timeout),
    ("out of memory is told", Capability.OOM_REPORT, _oom),
]
_HERE: _Behaviours = [
    ("no network", Capability.NETWORK_NONE, _no_interfaces),
    ("no privileges", None, _privileges),
    ("host out of reach", None, _host),
]
_ELSEWHERE: _Behaviours = [("no network", Capability.NETWORK_NONE, _unreachable)]
