"""`daytona` against a server that keeps its protocol: what goes over the wire, and what its failures become."""

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

EXECUTE = "POST /process/execute"


def created(cloud) -> dict:
    """What was asked for, last."""
    return [body for method, path, body in cloud.requests if (method, path) == ("POST", "/api/sandbox")][-1]


async def refused(provider, match: str, **fields) -> None:
    with pytest.raises(SandboxUnsupported, match=match):
        await provider.start(SandboxSpec(provider="daytona", **fields))


async def test_exit_codes_streams_and_bytes_are_exact(sandbox):
    result = await sandbox.exec("printf 'a\\377\\000'; printf b >&2; exit 3")
    assert (result.outcome, result.exit_code, result.stdout, result.stderr) == ("exited", 3, b"a\xff\0", b"b")
    assert (await sandbox.exec(["cat"], stdin=ALL_BYTES)).stdout == ALL_BYTES
    assert (await sandbox.exec(["echo", "$HOME ' \" \n"])).stdout == b"$HOME ' \" \n\n"
    assert (await sandbox.exec('printf "%s" "$A"', env={"A": "q' \" \n=ü"})).stdout.decode() == "q' \" \n=ü"


async def test_a_short_output_comes_in_one_request_and_a_large_one_as_files(sandbox, cloud):
    before = len(cloud.requests)
    await sandbox.exec("echo short")
    assert len(cloud.requests) == before + 1
    result = await sandbox.exec("head -c 3000000 /dev/urandom | tee copy; echo err >&2", keep_bytes=4 << 20)
    assert result.stderr == b"err\n" and result.stdout == await sandbox.get("copy")
    # Nothing but the files of the command that lists them.
    assert len((await sandbox.exec("ls -A /tmp/.gymflow")).stdout.split()) == 3


async def test_what_is_asked_for_is_what_the_spec_says(provider, cloud):
    spec = SandboxSpec(
        provider="daytona", image="python:3.12", user="agent", env={"A": "b"}, allow=("host.test", "10.1.0.0/16"),
        limits=SandboxLimits(cpus=2, memory_mib=2048, disk_mib=5120, wall_s=90), files={"in.txt": "hello"},
    )  # fmt: skip
    sandbox = await provider.start(spec, labels={"gymflow.run": "r7"})
    asked = created(cloud)
    assert (asked["cpu"], asked["memory"], asked["disk"], asked["ttlMinutes"]) == (2, 2, 5, 2)
    assert asked["buildInfo"] == {"dockerfileContent": "FROM python:3.12\n"}
    assert (asked["user"], asked["env"], asked["autoDeleteInterval"]) == ("agent", {"A": "b"}, 0)
    assert (asked["networkBlockAll"], asked["domainAllowList"], asked["networkAllowList"]) == (
        False,
        "host.test",
        "10.1.0.0/16",
    )
    assert asked["labels"]["gymflow.run"] == "r7" and OWNER in asked["labels"] and "gymflow.expires" in asked["labels"]
    assert await sandbox.get("in.txt") == b"hello"
    await sandbox.stop()
    await (await provider.start(SandboxSpec(provider="daytona"))).stop()
    assert created(cloud)["networkBlockAll"] is True and created(cloud)["ttlMinutes"] == 24 * 60


async def test_what_daytona_lacks_is_refused_before_anything_is_asked(provider, cloud):
    await refused(provider, "limits.processes, network: gateway", network="gateway", limits=SandboxLimits(processes=9))
    await refused(provider, "whole GiB", image="x", limits=SandboxLimits(memory_mib=1500))
    await refused(provider, "whole cores", image="x", limits=SandboxLimits(cpus=0.5))
    await refused(provider, "snapshot has its own limits.cpus", limits=SandboxLimits(cpus=1))
    await refused(provider, "no option colour; it has snapshot", options={"colour": "red"})
    await refused(provider, "all ports", allow=("host.test:443",))
    await refused(provider, "leave out `allow`", network="open", allow=("host.test",))
    assert cloud.requests == []


async def test_a_key_that_is_not_accepted_and_one_that_is_missing_are_told(provider, monkeypatch):
    monkeypatch.setenv("DAYTONA_API_KEY", "wrong")
    with pytest.raises(SandboxUnavailable, match="does not accept the key in DAYTONA_API_KEY") as caught:
        await provider.start(SandboxSpec(provider="daytona"))
    assert caught.value.kind == FailureKind.SANDBOX_UNAVAILABLE and "wrong" not in str(caught.value)
    await provider.close()
    monkeypatch.delenv("DAYTONA_API_KEY")
    with pytest.raises(SandboxUnavailable, match="set DAYTONA_API_KEY"):
        await provider.start(SandboxSpec(provider="daytona"))


@pytest.mark.parametrize(
    ("answer", "says"),
    [(429, "rate or quota"), (500, "cannot start"), (503, "cannot start"), (403, "may not"), (422, "told to say 422"), ("cut", "does not answer")],
)  # fmt: skip
async def test_a_start_that_fails_is_no_sandbox_to_be_had_and_leaves_none(provider, cloud, answer, says):
    cloud.faults["POST /api/sandbox"] = [answer]
    with pytest.raises(SandboxUnavailable, match=says):
        await provider.start(SandboxSpec(provider="daytona"))
    assert cloud.boxes == {}


async def test_a_start_whose_answer_is_lost_is_found_by_name_and_removed(provider, cloud):
    cloud.faults["POST /api/sandbox"] = ["run, then cut"]
    with pytest.raises(SandboxUnavailable):
        await provider.start(SandboxSpec(provider="daytona"))
    assert cloud.boxes == {}


async def test_a_cancelled_start_leaves_nothing(provider, cloud):
    cloud.faults[EXECUTE] = [30.0]
    starting = asyncio.ensure_future(provider.start(SandboxSpec(provider="daytona")))
    while not cloud.boxes:
        await asyncio.sleep(0.05)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert cloud.boxes == {}


async def test_a_start_that_is_cancelled_before_daytona_answers_leaves_nothing(provider, cloud):
    cloud.faults["POST /api/sandbox"] = [0.3]
    starting = asyncio.ensure_future(provider.start(SandboxSpec(provider="daytona")))
    while not cloud.requests:
        await asyncio.sleep(0.02)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert len([path for method, path, _ in cloud.requests if method == "DELETE"]) == 1 and cloud.boxes == {}


async def test_a_workdir_that_may_not_be_made_is_told_and_leaves_nothing(provider, cloud):
    with pytest.raises(SandboxError, match="set `workdir` to a folder"):
        await provider.start(SandboxSpec(provider="daytona", workdir="/proc/work"))
    assert cloud.boxes == {}


@pytest.mark.parametrize(("answer", "maybe_ran"), [(500, True), (502, True), ("cut", True), (429, False)])
async def test_a_call_that_fails_is_the_sandboxs_error_and_not_repeated(sandbox, cloud, answer, maybe_ran):
    cloud.faults[EXECUTE] = [answer]
    before = len(cloud.requests)
    with pytest.raises(SandboxError) as caught:
        await sandbox.exec("echo x")
    assert (caught.value.maybe_ran, caught.value.kind) == (maybe_ran, FailureKind.SANDBOX_ERROR)
    assert [path for _, path, _ in cloud.requests[before:]].count(f"/toolbox/id-of-{sandbox.id}/process/execute") == 1
    assert (await sandbox.exec("echo still here")).ok


async def test_a_sandbox_that_is_gone_is_lost(sandbox, cloud):
    cloud.boxes[sandbox.id]["state"] = "stopped"
    cloud.faults[EXECUTE] = [400]
    with pytest.raises(SandboxLost, match="is stopped"):
        await sandbox.exec("true")
    await cloud.boxes.pop(sandbox.id)["local"].stop()
    with pytest.raises(SandboxLost, match="does not know it") as caught:
        await sandbox.exec("true")
    assert caught.value.kind == FailureKind.SANDBOX_UNAVAILABLE


async def test_stop_may_be_called_again_and_waits_for_a_change_in_progress(sandbox, cloud):
    cloud.faults[f"DELETE /id-of-{sandbox.id}"] = [409]
    await asyncio.gather(sandbox.stop(), sandbox.stop())
    await sandbox.stop()
    assert cloud.boxes == {}
    with pytest.raises(SandboxLost, match="was stopped"):
        await sandbox.exec("true")


async def test_a_sandbox_whose_time_is_over_is_removed_to_the_second(provider, cloud):
    sandbox = await provider.start(SandboxSpec(provider="daytona", limits=SandboxLimits(wall_s=1)))
    for _ in range(100):
        if not cloud.boxes:
            break
        await asyncio.sleep(0.1)
    assert cloud.boxes == {}
    with pytest.raises(SandboxLost):
        await sandbox.exec("true")


async def test_orphans_are_found_by_label_and_only_they_are_removed(provider, cloud, sandbox):
    dead = str(Owner(hostname(), 2, 1))
    for name, labels in {
        "orphan": {OWNER: dead}, "expired": {OWNER: str(Owner.current()), "gymflow.expires": str(int(time.time()) - 5)},
        "elsewhere": {OWNER: "other-machine_p1_t1"}, "foreign": {},
    }.items():  # fmt: skip
        cloud.boxes[name] = {**cloud.boxes[sandbox.id], "id": f"id-of-{name}", "name": name, "labels": labels}
        cloud.boxes[name]["local"] = await cloud._local.start(SandboxSpec())
    assert {info.sandbox_id for info in await provider.list()} == {sandbox.id, "orphan", "expired", "elsewhere"}
    assert [info.sandbox_id for info in await provider.list({"gymflow.run": "r1"})] == [sandbox.id]
    assert await provider.clean() == 2
    assert set(cloud.boxes) == {sandbox.id, "elsewhere", "foreign"}
    await provider.remove("no-such-sandbox")


async def test_the_check_of_an_account_that_works(cloud):
    from gymflow.sandboxes import close_providers
    from gymflow.sandboxes.check import check_provider

    try:
        checks = [one async for one in check_provider("daytona")]
    finally:
        await close_providers()
    assert {one.name: one.ok for one in checks if one.ok is not True} == {"out of memory is told": None}, checks


async def test_a_recipe_becomes_a_snapshot_that_a_spec_can_name(provider, cloud):
    from gymflow.sandboxes import close_providers
    from gymflow.sandboxes.images import Recipe, build

    recipe = Recipe(name="gymflow/python", packages=["python3", "git"], run=["ln -s python3 /usr/bin/python"])
    assert await build(recipe, "daytona") == "id-of-gymflow/python"
    lines = cloud.snapshots["gymflow/python"]["buildInfo"]["dockerfileContent"].splitlines()
    assert lines[0] == "FROM debian:bookworm-slim" and "install -y --no-install-recommends python3 git" in lines[1]
    assert lines[2] == 'RUN ["/bin/sh", "-ec", "ln -s python3 /usr/bin/python"]'
    with pytest.raises(SandboxUnavailable, match="give the recipe another name"):
        await build(recipe, "daytona")
    await close_providers()
    await (await provider.start(SandboxSpec(provider="daytona", options={"snapshot": "gymflow/python"}))).stop()
    assert created(cloud)["snapshot"] == "gymflow/python"
