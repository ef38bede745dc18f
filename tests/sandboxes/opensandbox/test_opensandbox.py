"""`opensandbox` against a server that keeps its protocols: what goes over the wire, and what its failures become."""

import asyncio

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

CREATE = "POST /v1/sandboxes"
COMMAND = "POST /command"


def created(server) -> dict:
    """What was asked for, last."""
    return [body for method, path, body in server.requests if (method, path) == ("POST", "/v1/sandboxes")][-1]


async def refused(provider, match: str, **fields) -> None:
    with pytest.raises(SandboxUnsupported, match=match):
        await provider.start(SandboxSpec(provider="opensandbox", **fields))


async def test_exit_codes_streams_and_bytes_are_exact_though_the_daemon_tells_lines(sandbox):
    result = await sandbox.exec("printf 'a\\377\\000\\r\\n\\nb'; printf c >&2; exit 3")
    assert (result.outcome, result.exit_code) == ("exited", 3)
    assert (result.stdout, result.stderr) == (b"a\xff\0\r\n\nb", b"c")
    assert (await sandbox.exec(["cat"], stdin=ALL_BYTES)).stdout == ALL_BYTES
    assert (await sandbox.exec('printf "%s" "$A"', env={"A": "q' \" \n=ü"})).stdout.decode() == "q' \" \n=ü"
    assert (await sandbox.exec("true")).stdout == b""


async def test_a_large_output_comes_as_files_and_leaves_none(sandbox):
    result = await sandbox.exec("head -c 3000000 /dev/urandom | tee copy; echo err >&2", keep_bytes=4 << 20)
    assert result.stderr == b"err\n" and result.stdout == await sandbox.get("copy")
    assert len((await sandbox.exec("ls -A /tmp/.gymflow | grep -v pid")).stdout.split()) <= 2


async def test_what_is_asked_for_is_what_the_spec_says(provider, server):
    spec = SandboxSpec(
        provider="opensandbox", image="debian:12", user="1000:1000", env={"A": "b"}, allow=("host.test",),
        limits=SandboxLimits(cpus=0.5, memory_mib=512, wall_s=90), files={"in.txt": "hello"},
    )  # fmt: skip
    sandbox = await provider.start(spec, labels={"gymflow.run": "r7"})
    asked = created(server)
    assert asked["image"]["uri"] == "debian:12" and asked["timeout"] == 90
    assert asked["resourceLimits"] == {"cpu": "0.5", "memory": "512Mi"}
    assert asked["networkPolicy"] == {"defaultAction": "deny", "egress": [{"action": "allow", "target": "host.test"}]}
    assert asked["metadata"]["gymflow.run"] == "r7" and OWNER in asked["metadata"]
    assert await sandbox.get("in.txt") == b"hello"
    await sandbox.exec("true", env={"C": "d"})
    command = [body for _, path, body in server.requests if path.endswith("/command")][-1]
    assert (command["uid"], command["gid"]) == (1000, 1000)
    assert command["envs"]["A"] == "b" and command["envs"]["C"] == "d"
    await sandbox.stop()
    await (await provider.start(SandboxSpec(provider="opensandbox", network="open"))).stop()
    assert "networkPolicy" not in created(server)


async def test_what_opensandbox_lacks_is_refused_before_anything_is_asked(provider, server):
    await refused(provider, "limits.processes, limits.disk_mib, network: gateway", network="gateway", limits=SandboxLimits(processes=9, disk_mib=9))  # fmt: skip
    await refused(provider, "no option colour", options={"colour": "red"})
    await refused(provider, "all ports", allow=("host.test:443",))
    await refused(provider, "leave out `allow`", network="open", allow=("host.test",))
    await refused(provider, "wants numbers", user="somebody")
    await refused(provider, "60 s and more", limits=SandboxLimits(wall_s=5))
    assert server.requests == []


async def test_a_key_that_is_not_accepted_and_a_server_that_is_not_named_are_told(provider, monkeypatch):
    monkeypatch.setenv("OPEN_SANDBOX_API_KEY", "wrong-one")
    with pytest.raises(SandboxUnavailable, match="does not accept the key in OPEN_SANDBOX_API_KEY") as caught:
        await provider.start(SandboxSpec(provider="opensandbox"))
    assert caught.value.kind == FailureKind.SANDBOX_UNAVAILABLE and "wrong-one" not in str(caught.value)
    await provider.close()
    monkeypatch.delenv("OPEN_SANDBOX_DOMAIN")
    with pytest.raises(SandboxUnavailable, match="set OPEN_SANDBOX_DOMAIN"):
        await provider.start(SandboxSpec(provider="opensandbox"))


async def test_a_server_that_is_not_there_is_told(provider, monkeypatch):
    monkeypatch.setenv("OPEN_SANDBOX_DOMAIN", "127.0.0.1:9")
    with pytest.raises(SandboxUnavailable, match="does not answer"):
        await provider.start(SandboxSpec(provider="opensandbox"))


@pytest.mark.parametrize(
    ("answer", "says"),
    [(429, "rate or quota"), (500, "cannot start"), (403, "does not accept"), (400, "told to say 400")],
)
async def test_a_start_that_fails_is_no_sandbox_to_be_had_and_leaves_none(provider, server, answer, says):
    server.faults[CREATE] = [answer] * 9
    with pytest.raises(SandboxUnavailable, match=says):
        await provider.start(SandboxSpec(provider="opensandbox"))
    assert server.boxes == {}


async def test_a_start_whose_answer_is_lost_is_found_by_label_and_removed(provider, server):
    server.faults[CREATE] = ["run, then cut"]
    with pytest.raises(SandboxUnavailable):
        await provider.start(SandboxSpec(provider="opensandbox"))
    assert server.boxes == {}


async def test_a_cancelled_start_leaves_nothing(provider, server):
    server.faults[COMMAND] = [30.0]
    starting = asyncio.ensure_future(provider.start(SandboxSpec(provider="opensandbox")))
    while not server.boxes:
        await asyncio.sleep(0.05)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert server.boxes == {}


@pytest.mark.parametrize("answer", ["cut", 500, 503])
async def test_a_command_whose_answer_is_lost_may_have_run_and_is_not_sent_again(sandbox, server, answer):
    server.faults[COMMAND] = [answer]
    before = len([path for _, path, _ in server.requests if path.endswith("/command")])
    with pytest.raises(SandboxError) as caught:
        await sandbox.exec("echo once")
    assert caught.value.kind == FailureKind.SANDBOX_ERROR and caught.value.maybe_ran
    assert len([path for _, path, _ in server.requests if path.endswith("/command")]) == before + 1
    assert (await sandbox.exec("echo again")).stdout == b"again\n"


async def test_a_stream_that_ends_before_its_command_is_no_exit_code(sandbox, server):
    server.silent = True
    with pytest.raises(SandboxError, match="ended before the command") as caught:
        await sandbox.exec("true")
    assert caught.value.maybe_ran
    server.silent = False


@pytest.mark.parametrize("state", [None, "Terminated"])
async def test_a_sandbox_that_went_away_is_lost_and_not_a_return_code(sandbox, server, state):
    (name,) = server.boxes
    if state:
        server.boxes[name]["state"] = state
        server.faults[COMMAND] = [404]
    else:
        await server.boxes.pop(name)["local"].stop()
    with pytest.raises(SandboxLost):
        await sandbox.exec("true")


async def test_stop_is_idempotent_and_nothing_runs_after_it(sandbox, server):
    await asyncio.gather(sandbox.stop(), sandbox.stop())
    await sandbox.stop()
    assert server.boxes == {}
    with pytest.raises(SandboxLost):
        await sandbox.exec("true")


async def test_sandboxes_are_found_by_label_over_pages_and_orphans_of_dead_owners_removed(provider, server):
    spec = SandboxSpec(provider="opensandbox")
    odd = "run with spaces / and more than sixty-three characters, which a label cannot have"
    started = [await provider.start(spec, labels={"gymflow.run": run}) for run in ("a", "a", "a", odd)]
    assert {info.sandbox_id for info in await provider.list({"gymflow.run": "a"})} == {one.id for one in started[:3]}
    assert [info.sandbox_id for info in await provider.list({"gymflow.run": odd})] == [started[3].id]
    dead = next(box for box in server.boxes.values() if box["metadata"]["gymflow.run"] == "a")
    dead["metadata"][OWNER] = str(Owner(hostname(), 4_000_000, 1))
    assert await provider.clean() == 1
    assert dead not in server.boxes.values() and len(server.boxes) == 3
    await provider.remove(started[3].id)
    await provider.remove(started[3].id)
    assert len(server.boxes) == 2
    for one in started:
        await one.stop()
