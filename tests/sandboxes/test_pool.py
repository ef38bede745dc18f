"""Borrowing sandboxes: bounded, cleaned up after others, refused with a reason; and specs that lie over each other."""

import asyncio

import pytest
from pydantic import ValidationError

from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.sandbox import SandboxSpec
from gymflow.errors import InputError, RolloutFailure
from gymflow.sandboxes import (
    Capability,
    SandboxUnsupported,
    close_providers,
    open_sandbox,
    provider,
    run_once,
)
from gymflow.sandboxes.check import check_provider
from gymflow.sandboxes.errors import SandboxError, SandboxLost, SandboxUnavailable
from gymflow.sandboxes.interface import Provider, Sandbox, SandboxInfo
from gymflow.sandboxes.labels import OWNER, Owner
from gymflow.sandboxes.local.platform import bubblewrap
from gymflow.sandboxes.pool import Pool

needs_local = pytest.mark.skipif(isinstance(bubblewrap(), str), reason=str(bubblewrap()))


class Counting(Provider):
    """Counts sandboxes instead of making them."""

    name = "counting"
    capabilities = Capability.NETWORK_NONE

    def __init__(self):
        self.alive = self.most = 0
        here = Owner.current()
        self.listed = {"live": str(here), "dead": str(Owner(here.host, 4_999_999, 1)), "elsewhere": "h_p1_t1"}
        self.removed = []

    async def start(self, spec, *, labels=None, mounts=(), gateway=None):
        self.alive += 1
        self.most = max(self.most, self.alive)
        return Counted(self, spec)

    async def list(self, labels=None):
        return [SandboxInfo(name, {OWNER: owner}) for name, owner in self.listed.items()]

    async def remove(self, sandbox_id):
        self.removed.append(sandbox_id)


class Counted(Sandbox):
    def __init__(self, source, spec):
        super().__init__("x", spec, "full")
        self.source = source

    async def exec(self, command, **_):
        raise NotImplementedError

    async def put(self, path, data, *, mode=0o644):
        raise NotImplementedError

    async def get(self, path, *, max_bytes=0):
        raise NotImplementedError

    async def stop(self):
        self.source.alive -= 1


async def test_no_more_than_the_limit_at_one_time_and_none_is_left():
    source = Counting()
    pool = Pool(source, 3)

    async def use():
        async with pool.sandbox(SandboxSpec()):
            await asyncio.sleep(0.01)

    tasks = [asyncio.ensure_future(use()) for _ in range(12)]
    await asyncio.sleep(0.02)
    tasks[5].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert source.most == 3 and source.alive == 0


async def test_the_first_start_removes_what_dead_owners_left_and_only_that():
    source = Counting()
    async with Pool(source, 1).sandbox(SandboxSpec()):
        pass
    assert source.removed == ["dead"]


@needs_local
async def test_a_sandbox_of_this_processs_pool():
    async with open_sandbox(SandboxSpec(files={"x": "1"})) as sandbox:
        assert (await sandbox.exec("cat x")).stdout == b"1"
    assert (await run_once(SandboxSpec(), "echo $0", stdin=b"")).ok
    assert provider("local") is provider("local")
    await close_providers()


async def test_an_unknown_provider_is_the_users_mistake():
    with pytest.raises(InputError, match="nowhere"):
        open_sandbox(SandboxSpec(provider="nowhere"))


async def test_an_isolation_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("GYMFLOW_ISOLATION", "strong")
    with pytest.raises(InputError, match="strong"):
        provider("local")
    await close_providers()


@needs_local
async def test_what_a_provider_lacks_is_refused_with_all_reasons_at_once():
    spec = SandboxSpec(allow=("host.test",), network="open")
    with pytest.raises(SandboxUnsupported, match=r"allow"):
        async with open_sandbox(spec):
            pass
    await close_providers()


def test_errors_map_to_failure_kinds():
    for error, kind in (
        (SandboxError("x"), FailureKind.SANDBOX_ERROR),
        (SandboxUnavailable("x"), FailureKind.SANDBOX_UNAVAILABLE),
        (SandboxLost("x", oom=True, logs="last words"), FailureKind.SANDBOX_UNAVAILABLE),
    ):
        assert isinstance(error, RolloutFailure) and error.kind == kind
    assert issubclass(SandboxUnsupported, InputError)


def test_a_task_rows_sandbox_lies_over_its_environments():
    base = SandboxSpec(image="a", env={"A": "1", "B": "1"}, limits={"memory_mib": 64, "cpus": 1})
    over = base.overlaid({"env": {"B": "2"}, "limits": {"memory_mib": 128}, "files": {"x": "y"}})
    assert (over.image, over.env, over.limits.memory_mib, over.limits.cpus) == ("a", {"A": "1", "B": "2"}, 128, 1.0)
    assert over.network == "none"
    for weaker in ({"isolation": "none"}, {"mounts": ["/"]}, {"workdir": "../up"}, {"env": {"A=B": "x"}}):
        with pytest.raises(ValidationError):
            base.overlaid(weaker)


@needs_local
async def test_check_tries_a_provider_in_earnest():
    checks = [check async for check in check_provider("local")]
    assert [c.name for c in checks][:2] == ["available", "start"] and len(checks) >= 8
    assert all(c.ok is not False for c in checks), checks
    await close_providers()
