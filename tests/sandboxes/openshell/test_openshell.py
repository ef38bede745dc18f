"""`openshell` against a server that keeps its protocol: what goes over the wire, and what its failures become."""

import asyncio
import time

import pytest

from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.sandbox import SandboxLimits, SandboxSpec
from gymflow.sandboxes import SandboxError, SandboxLost, SandboxUnavailable, SandboxUnsupported
from gymflow.sandboxes.labels import OWNER, Owner, hostname
from tests.support.remote_sandboxes import (
    ALL_BYTES,
    test_a_cancelled_command_is_ended_there,  # noqa: F401
    test_a_command_longer_than_an_argument_may_be_is_run,  # noqa: F401
    test_a_timeout_is_an_outcome_and_ends_the_tree,  # noqa: F401
    test_files_go_there_and_back,  # noqa: F401
)

grpc = pytest.importorskip("grpc")
Code = grpc.StatusCode


async def test_exit_codes_streams_and_bytes_are_exact(sandbox):
    result = await sandbox.exec("printf 'a\\377\\000'; printf b >&2; exit 3")
    assert (result.outcome, result.exit_code, result.stdout, result.stderr) == ("exited", 3, b"a\xff\0", b"b")
    assert (await sandbox.exec(["cat"], stdin=ALL_BYTES)).stdout == ALL_BYTES
    assert (await sandbox.exec(["cat"])).stdout == b""
    assert (await sandbox.exec(["echo", "$HOME ' \" \n"])).stdout == b"$HOME ' \" \n\n"
    assert (await sandbox.exec('printf "%s" "$A"', env={"A": "q' \" \n=ü"})).stdout.decode() == "q' \" \n=ü"


async def test_what_is_larger_than_a_call_takes_goes_in_pieces(sandbox):
    data = ALL_BYTES * 3000
    assert (await sandbox.exec(["cat"], stdin=data, keep_bytes=4 << 20)).stdout == data
    assert (await sandbox.exec("echo done", env={f"V{n}": "x" * 60_000 for n in range(12)})).stdout == b"done\n"
    assert len((await sandbox.exec("ls -A /tmp/.gymflow")).stdout.split()) == 3


async def test_what_is_asked_for_is_what_the_spec_says(provider, gateway):
    spec = SandboxSpec(
        provider="openshell", image="python:3.12", env={"A": "b"}, allow=("host.test", "*.example.com:8443"),
        files={"in.txt": "hello"},
    )  # fmt: skip
    sandbox = await provider.start(spec, labels={"gymflow.run": "r/7"})
    asked = gateway.created[-1]
    assert (asked.spec.template.image, dict(asked.spec.environment)) == ("python:3.12", {"A": "b"})
    assert (
        asked.workspace_scope.workspace == "default" and asked.labels["gymflow.run"] == "r-7" and OWNER in asked.labels
    )
    assert all(len(value) <= 63 for value in asked.labels.values())
    rules = [asked.spec.policy.network_policies[f"allow-{number}"].endpoints[0] for number in (0, 1)]
    assert [(rule.host, list(rule.ports)) for rule in rules] == [("host.test", [80, 443]), ("*.example.com", [8443])]
    assert "/work" in asked.spec.policy.filesystem.read_write
    assert await sandbox.get("in.txt") == b"hello"
    assert [info.sandbox_id for info in await provider.list({"gymflow.run": "r/7"})] == [sandbox.id]
    await sandbox.stop()
    await (await provider.start(SandboxSpec(provider="openshell"))).stop()
    assert not gateway.created[-1].spec.policy.network_policies


async def test_what_openshell_lacks_is_refused_before_anything_is_asked(provider, gateway):
    for fields, says in [
        ({"limits": SandboxLimits(cpus=1, memory_mib=512)}, "limits.cpus, limits.memory_mib"), ({"network": "open"}, "network: open"),
        ({"user": "root"}, "user: root"), ({"allow": ("*",)}, "in its first part"), ({"options": {"gpu": 1}}, "no option gpu"),
    ]:  # fmt: skip
        with pytest.raises(SandboxUnsupported, match=says):
            await provider.start(SandboxSpec(provider="openshell", **fields))
    assert gateway.calls == []


@pytest.mark.parametrize(
    ("code", "says"),
    [(Code.PERMISSION_DENIED, "may not start"), (Code.RESOURCE_EXHAUSTED, "quota"), (Code.UNAVAILABLE, "does not answer"),
     (Code.INTERNAL, "cannot start"), (Code.FAILED_PRECONDITION, "cannot start"), (Code.DEADLINE_EXCEEDED, "does not answer")],
)  # fmt: skip
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_start_that_fails_is_no_sandbox_to_be_had_and_leaves_none(provider, gateway, code, says, when):
    gateway.faults["CreateSandbox"] = [(code, when)]
    with pytest.raises(SandboxUnavailable, match=says) as caught:
        await provider.start(SandboxSpec(provider="openshell"))
    assert caught.value.kind == FailureKind.SANDBOX_UNAVAILABLE and gateway.boxes == {}


async def test_credentials_that_are_not_accepted_and_a_gateway_that_is_none_are_told(
    provider, gateway, monkeypatch, tmp_path
):
    monkeypatch.setenv("GYMFLOW_OPENSHELL_TOKEN", "wrong-secret")
    with pytest.raises(SandboxUnavailable, match="does not accept the credentials") as caught:
        await provider.start(SandboxSpec(provider="openshell"))
    assert "wrong-secret" not in str(caught.value)
    await provider.close()
    monkeypatch.setenv("GYMFLOW_OPENSHELL_ENDPOINT", "http://gateway.example:1")
    with pytest.raises(SandboxUnavailable, match="only sent over https"):
        await provider.start(SandboxSpec(provider="openshell"))
    monkeypatch.delenv("GYMFLOW_OPENSHELL_ENDPOINT")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("OPENSHELL_GATEWAY", raising=False)
    with pytest.raises(SandboxUnavailable, match="set GYMFLOW_OPENSHELL_ENDPOINT"):
        await provider.start(SandboxSpec(provider="openshell"))


async def test_a_sandbox_that_takes_its_time_is_waited_for_and_one_that_fails_is_removed(provider, gateway):
    gateway.phases = [1, 1, 2]
    await (await provider.start(SandboxSpec(provider="openshell"))).stop()
    gateway.phases = [1, 3]
    with pytest.raises(SandboxUnavailable, match="it is error"):
        await provider.start(SandboxSpec(provider="openshell"))
    assert gateway.boxes == {}


async def test_a_cancelled_start_leaves_nothing(provider, gateway):
    gateway.phases = [1] * 100_000
    starting = asyncio.ensure_future(provider.start(SandboxSpec(provider="openshell")))
    while not gateway.boxes:
        await asyncio.sleep(0.02)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert gateway.boxes == {}


@pytest.mark.parametrize(
    ("code", "when", "maybe_ran"),
    [(Code.INTERNAL, "before", True), (Code.UNAVAILABLE, "after", True), (Code.DEADLINE_EXCEEDED, "after", True),
     (Code.RESOURCE_EXHAUSTED, "before", False)],
)  # fmt: skip
async def test_a_call_that_fails_is_the_sandboxs_error_and_not_repeated(sandbox, gateway, code, when, maybe_ran):
    gateway.faults["ExecSandbox"] = [(code, when)]
    before = gateway.calls.count("ExecSandbox")
    with pytest.raises(SandboxError) as caught:
        await sandbox.exec("echo x")
    assert (caught.value.maybe_ran, caught.value.kind) == (maybe_ran, FailureKind.SANDBOX_ERROR)
    assert gateway.calls.count("ExecSandbox") == before + 1
    assert (await sandbox.exec("echo still here")).ok


async def test_a_sandbox_that_is_gone_is_lost(sandbox, gateway):
    gateway.phases, gateway.faults["ExecSandbox"] = [7], [(Code.FAILED_PRECONDITION, "before")]
    with pytest.raises(SandboxLost, match="not ready any more"):
        await sandbox.exec("true")
    await gateway.boxes.pop(sandbox.id)[1].stop()
    with pytest.raises(SandboxLost, match="does not know it") as caught:
        await sandbox.exec("true")
    assert caught.value.kind == FailureKind.SANDBOX_UNAVAILABLE


async def test_stop_may_be_called_again(sandbox, provider, gateway):
    await asyncio.gather(sandbox.stop(), sandbox.stop())
    await sandbox.stop()
    await provider.remove(sandbox.id)
    assert gateway.boxes == {} and gateway.calls.count("DeleteSandbox") == 2
    with pytest.raises(SandboxLost, match="was stopped"):
        await sandbox.exec("true")


async def test_a_sandbox_whose_time_is_over_is_removed(provider, gateway):
    sandbox = await provider.start(SandboxSpec(provider="openshell", limits=SandboxLimits(wall_s=1)))
    for _ in range(100):
        if not gateway.boxes:
            break
        await asyncio.sleep(0.1)
    assert gateway.boxes == {}
    with pytest.raises(SandboxLost):
        await sandbox.exec("true")


async def test_orphans_are_found_by_label_and_only_they_are_removed(provider, gateway, sandbox, monkeypatch):
    others = {}
    for name, labels in {
        "orphan": {OWNER: str(Owner(hostname(), 2, 1))}, "elsewhere": {OWNER: "other-machine_p1_t1"},
        "expired": {OWNER: str(Owner.current()), "gymflow.expires": str(int(time.time()) - 5)}, "foreign": {"a": "b"},
    }.items():  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr("gymflow.sandboxes.openshell.provider.owned", lambda _, wall_s, labels=labels: labels)
            others[name] = (await provider.start(SandboxSpec(provider="openshell"))).id
    listed = {info.sandbox_id for info in await provider.list()}
    assert listed == {sandbox.id, others["orphan"], others["elsewhere"], others["expired"]}
    assert [info.sandbox_id for info in await provider.list({"gymflow.run": "r1"})] == [sandbox.id]
    assert await provider.clean() == 2
    assert set(gateway.boxes) == {sandbox.id, others["elsewhere"], others["foreign"]}


async def test_the_check_of_a_gateway_that_works(gateway, monkeypatch):
    from gymflow.sandboxes import close_providers
    from gymflow.sandboxes.check import check_provider
    from gymflow.sandboxes.openshell import OpenShellProvider

    monkeypatch.setattr(OpenShellProvider, "sample", lambda self, image=None: SandboxSpec(provider="openshell"))
    try:
        checks = [one async for one in check_provider("openshell")]
    finally:
        await close_providers()
    assert {one.name: one.ok for one in checks if one.ok is not True} == {"out of memory is told": None}, checks
