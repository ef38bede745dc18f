"""`ecs_fargate` against moto, whose tasks really start the exec agent."""

import asyncio

import pytest

from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.sandbox import SandboxLimits
from gymflow.sandboxes import SandboxError, SandboxLost, SandboxUnavailable, SandboxUnsupported
from gymflow.sandboxes.labels import OWNER, Owner, hostname

pytestmark = pytest.mark.slow  # moto alone takes seconds


def changed(spec, **fields):
    return spec.model_copy(update=fields)


def limited(spec, **limits):
    return spec.model_copy(update={"limits": SandboxLimits(**limits)})


async def test_commands_and_files_go_to_the_task(sandbox):
    result = await sandbox.exec("cat; echo err >&2; exit 3", stdin=b"\xff\x00")
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"\xff\x00", b"err\n")
    await sandbox.put("file", b"x")
    assert await sandbox.get("file") == b"x"


async def test_what_is_asked_of_ecs_is_what_the_spec_says(provider, spec, tasks):
    wished = limited(changed(spec, image="python:3.13", network="open"), cpus=2, memory_mib=3000, wall_s=60)
    sandbox = await provider.start(wished, labels={"gymflow.run": "r7"})
    asked = tasks.asked[-1]
    definition = tasks.backend.describe_task_definition(asked["task_definition_str"])
    container = definition.container_definitions[0]
    assert (definition.cpu, definition.memory, container["memory"], container["image"]) == (
        "2048",
        "4096",
        3000,
        "python:3.13",
    )
    assert asked["launch_type"] == "FARGATE" and asked["started_by"] == "gymflow"
    vpc = asked["networking_configuration"]["awsvpcConfiguration"]
    assert vpc["securityGroups"] == list(provider.settings.groups) and vpc["assignPublicIp"] == "DISABLED"
    tags = {tag["key"]: tag["value"] for tag in asked["tags"]}
    assert tags["gymflow.run"] == "r7" and OWNER in tags and "gymflow.expires" in tags
    assert sandbox._headers["Authorization"].removeprefix("Bearer ") not in str(asked)
    await sandbox.stop()
    again = await provider.start(wished)
    assert tasks.asked[-1]["task_definition_str"] == asked["task_definition_str"]
    await again.stop()


async def test_what_fargate_lacks_is_refused_before_anything_is_asked(provider, spec, tasks):
    for wish, says in [
        (limited(spec, cpus=3), "Fargate has 0.25, 0.5, 1"), (limited(spec, cpus=0.25, memory_mib=4096), "at most 2048 with 0.25"),
        (limited(spec, disk_mib=5), "limits.disk_mib"), (changed(spec, network="gateway"), "network: gateway"),
        (changed(spec, allow=("host.test",)), "allow"), (changed(spec, options={"spot": True}), "no option spot; it has none"),
        (limited(changed(spec, user="root"), processes=9), "no such limit for root"), (changed(spec, user="daemon"), "UID"),
    ]:  # fmt: skip
        with pytest.raises(SandboxUnsupported, match=says):
            await provider.start(wish)
    assert tasks.asked == []


async def test_a_closed_network_that_leads_out_is_refused(spec, tasks, monkeypatch):
    from gymflow.sandboxes.ecs_fargate import FargateProvider

    open_group = FargateProvider().settings.groups[0]
    monkeypatch.setenv("GYMFLOW_ECS_CLOSED_SECURITY_GROUPS", open_group)
    provider = FargateProvider()
    with pytest.raises(SandboxUnsupported, match=f"{open_group}.*may go anywhere"):
        await provider.start(spec)
    monkeypatch.delenv("GYMFLOW_ECS_CLOSED_SECURITY_GROUPS")
    with pytest.raises(SandboxUnsupported, match="network: none"):
        await FargateProvider().start(spec)
    await provider.close()


async def test_a_configuration_that_lacks_something_is_told(spec, tasks, monkeypatch):
    from gymflow.sandboxes.ecs_fargate import FargateProvider

    monkeypatch.setenv("GYMFLOW_ECS_CLUSTER", "no-such-cluster")
    with pytest.raises(SandboxUnavailable, match="set GYMFLOW_ECS_CLUSTER"):
        await FargateProvider().start(spec)
    monkeypatch.delenv("GYMFLOW_ECS_SUBNETS")
    with pytest.raises(SandboxUnavailable, match="set GYMFLOW_ECS_SUBNETS"):
        await FargateProvider().start(spec)


class Refusing:
    """boto3's calls, some of which AWS answers with an error."""

    def __init__(self, monkeypatch, **codes):
        from botocore.client import BaseClient

        real = BaseClient._make_api_call

        def call(client, operation, arguments):
            if operation in codes:
                from botocore.exceptions import ClientError

                code = codes[operation]
                raise (
                    code
                    if isinstance(code, Exception)
                    else ClientError({"Error": {"Code": code, "Message": "no"}}, operation)
                )
            return real(client, operation, arguments)

        monkeypatch.setattr(BaseClient, "_make_api_call", call)


@pytest.mark.parametrize(
    ("code", "says"),
    [("UnrecognizedClientException", "does not accept the credentials"), ("AccessDeniedException", "may not start a task"),
     ("ThrottlingException", "rate or quota"), ("ServerException", "cannot start a task"), ("InvalidParameterException", "cannot start")],
)  # fmt: skip
async def test_what_aws_refuses_is_no_sandbox_to_be_had(provider, spec, tasks, monkeypatch, code, says):
    Refusing(monkeypatch, RunTask=code)
    with pytest.raises(SandboxUnavailable, match=says) as caught:
        await provider.start(spec)
    assert caught.value.kind == FailureKind.SANDBOX_UNAVAILABLE


async def test_no_capacity_and_an_image_that_cannot_be_fetched_are_told(provider, spec, tasks, monkeypatch):
    from gymflow.sandboxes.ecs_fargate import aws

    real = aws.Aws.call

    async def call(self, doing, service, operation, **arguments):
        if operation == "run_task" and tasks.refuse:
            return {"tasks": [], "failures": tasks.refuse}
        answer = await real(self, doing, service, operation, **arguments)
        if operation == "describe_tasks" and tasks.never_answer:
            answer["tasks"][0].update(lastStatus="STOPPED", stoppedReason="CannotPullContainerError: not found")
        return answer

    monkeypatch.setattr(aws.Aws, "call", call)
    tasks.refuse = [{"reason": "Capacity is unavailable at this time."}]
    with pytest.raises(SandboxUnavailable, match="Capacity is unavailable"):
        await provider.start(spec)
    tasks.refuse, tasks.never_answer = [], True
    with pytest.raises(SandboxUnavailable, match="CannotPullContainerError"):
        await provider.start(spec)
    assert await provider.list() == []


async def test_an_agent_that_never_answers_leaves_no_task(provider, spec, tasks, monkeypatch):
    monkeypatch.setattr("gymflow.sandboxes.ecs_fargate.sandbox.READY_S", 0.5)
    tasks.never_answer = True
    with pytest.raises(SandboxError, match="needs a route to the task's subnet"):
        await provider.start(spec)
    assert await provider.list() == []


async def test_a_cancelled_start_leaves_no_task(provider, spec, tasks):
    tasks.never_answer = True
    starting = asyncio.ensure_future(provider.start(spec))
    while not tasks.asked:
        await asyncio.sleep(0.02)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert await provider.list() == []


async def test_a_task_that_ended_is_a_lost_sandbox_and_a_cut_connection_is_an_error(sandbox, tasks, provider):
    tasks.processes[sandbox.id].kill()
    with pytest.raises(SandboxError) as caught:
        await sandbox.exec("true")
    assert caught.value.kind == FailureKind.SANDBOX_ERROR
    await provider.remove(sandbox.id)
    with pytest.raises(SandboxLost):
        await sandbox.exec("true")


async def test_a_task_that_ends_during_a_command_is_a_lost_sandbox(sandbox, provider):
    running = asyncio.ensure_future(sandbox.exec("sleep 30"))
    await asyncio.sleep(0.5)
    await provider.remove(sandbox.id)
    with pytest.raises(SandboxLost, match="is gone"):
        await running


async def test_stop_may_be_called_again(sandbox, provider, tasks):
    await asyncio.gather(sandbox.stop(), sandbox.stop())
    await sandbox.stop()
    await provider.remove(sandbox.id)
    assert tasks.processes == {} and await provider.list() == []
    with pytest.raises(SandboxLost, match="was stopped"):
        await sandbox.exec("true")


async def test_orphans_are_found_by_tag_and_only_they_are_stopped(provider, spec, sandbox, tasks, monkeypatch):
    dead, elsewhere = str(Owner(hostname(), 2, 1)), "other-machine_p1_t1"
    others = {}
    for owner in (dead, elsewhere):
        with monkeypatch.context() as patch:
            patch.setattr(
                "gymflow.sandboxes.ecs_fargate.provider.owned", lambda labels, wall_s, owner=owner: {OWNER: owner}
            )
            others[owner] = await provider.start(spec)
    assert {info.sandbox_id for info in await provider.list()} == {sandbox.id, *(one.id for one in others.values())}
    assert [info.sandbox_id for info in await provider.list({"gymflow.run": "r1"})] == [sandbox.id]
    assert await provider.clean() == 1
    assert {info.sandbox_id for info in await provider.list()} == {sandbox.id, others[elsewhere].id}
    for one in others.values():
        await one.stop()


async def test_the_check_of_an_account_that_works(tasks, monkeypatch):
    from gymflow.sandboxes import close_providers
    from gymflow.sandboxes.check import check_provider
    from gymflow.sandboxes.ecs_fargate import FargateProvider

    real = FargateProvider.sample
    monkeypatch.setattr(
        FargateProvider, "sample", lambda self, image=None: changed(real(self, image), workdir="/srv/work")
    )
    try:
        checks = [one async for one in check_provider("ecs_fargate")]
    finally:
        await close_providers()
    # The network is this machine's: moto has no security groups that hold packets back.
    assert {one.name for one in checks if one.ok is False} <= {"no network"}, checks
    assert {one.name for one in checks if one.ok is None} == {"out of memory is told"}


async def test_the_task_ends_by_itself_when_its_time_is_over(provider, spec, tasks):
    sandbox = await provider.start(limited(spec, wall_s=3))
    process = tasks.processes[sandbox.id]
    await asyncio.to_thread(process.wait, 20)
    assert process.returncode == 0
    with pytest.raises(SandboxLost, match="its time is over"):
        await sandbox.exec("true")
    await sandbox.stop()
