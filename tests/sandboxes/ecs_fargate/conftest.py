"""AWS as moto keeps its protocol, with one thing more: a task that is run really starts the agent that its definition carries,
as a process in namespaces of its own, at an address of its own on loopback."""

import hashlib
import inspect
import os
import random
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from gymflow.contracts.sandbox import SandboxSpec

PYTHON = "/usr/bin/python3"
REGION = "eu-west-1"


class Agents:
    """Agents in namespaces of their own, each at an address of its own on loopback, by task id."""

    def __init__(self) -> None:
        self.processes: dict[str, subprocess.Popen] = {}
        # A process dies with the thread that started it, and moto's threads live for a request.
        self._parent = ThreadPoolExecutor(1)

    @staticmethod
    def digest(token: str) -> str:
        return hashlib.sha256(token.encode()).hexdigest()

    @staticmethod
    def address() -> str:
        return ".".join(["127", *(str(random.randint(1, 250)) for _ in range(3))])

    def start(self, task_id: str, variables: dict[str, str], code: str | None = None, python: str = PYTHON) -> str:
        """Start one, with the code of a task definition or the provider's own; its address."""
        from gymflow.sandboxes.ecs_fargate.provider import LAUNCH

        address = self.address()
        inside = [
            "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--perms", "1777", "--tmpfs", "/tmp", "--tmpfs",
            "/home", "--tmpfs", "/srv", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-add", "ALL", "--clearenv",
        ]  # fmt: skip
        own = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GYMFLOW_HOST": address, "AWS_REGION": REGION}
        for name, value in {**own, **variables}.items():
            inside += ["--setenv", name, value]
        command = [*inside, os.path.realpath(python), "-c", code or LAUNCH]
        self.processes[task_id] = self._parent.submit(subprocess.Popen, command).result()
        return address

    def stop(self, task_id: str) -> None:
        if process := self.processes.pop(task_id, None):
            process.kill()
            process.wait()

    def close(self) -> None:
        for task_id in list(self.processes):
            self.stop(task_id)


@pytest.fixture
def agents():
    pytest.importorskip("boto3")
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    if os.getuid() != 0:
        pytest.skip("the agent gives commands to another user, which only root can")
    made = Agents()
    yield made
    made.close()


class Tasks:
    """What moto was asked to run, and the agents behind it. `refuse`, `never_answer`: what goes wrong."""

    def __init__(self, agents: Agents) -> None:
        self.agents = agents
        self.processes = agents.processes
        self.asked: list[dict] = []
        self.refuse: list[dict] = []
        self.never_answer = False

    def start(self, task, definition, overrides) -> str:
        variables = {one["name"]: one["value"] for one in overrides["containerOverrides"][0]["environment"]}
        container = definition.container_definitions[0]
        assert container["entryPoint"] == ["python3", "-c"]
        if self.never_answer:
            return self.agents.address()
        return self.agents.start(task.id, variables, container["command"][0])

    def stop(self, task_id: str) -> None:
        self.agents.stop(task_id)


@pytest.fixture(scope="session")
def moto_server():
    pytest.importorskip("moto")
    pytest.importorskip("flask_cors")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def account(moto_server):
    """Environment variables of an account with a cluster, a subnet and two security groups."""
    import boto3

    own = {
        "AWS_ENDPOINT_URL": moto_server, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION, "AWS_MAX_ATTEMPTS": "1", "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
    named = {
        "endpoint_url": moto_server,
        "aws_access_key_id": "testing",
        "aws_secret_access_key": "testing",
        "region_name": REGION,
    }
    boto3.client("ecs", **named).create_cluster(clusterName="evaluations")
    ec2 = boto3.client("ec2", **named)
    subnet = ec2.describe_subnets()["Subnets"][0]
    groups = [
        ec2.create_security_group(GroupName=name, Description=name, VpcId=subnet["VpcId"])["GroupId"]
        for name in ("open", "closed")
    ]
    everywhere = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    ec2.revoke_security_group_egress(GroupId=groups[1], IpPermissions=everywhere)
    return {
        **own, "GYMFLOW_ECS_CLUSTER": "evaluations", "GYMFLOW_ECS_SUBNETS": subnet["SubnetId"],
        "GYMFLOW_ECS_SECURITY_GROUPS": groups[0], "GYMFLOW_ECS_CLOSED_SECURITY_GROUPS": groups[1],
    }  # fmt: skip


@pytest.fixture
def tasks(account, agents, monkeypatch):
    """The account, in the environment, and the tasks that run there."""
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.ecs.exceptions import InvalidParameterException
    from moto.ecs.models import EC2ContainerServiceBackend, ecs_backends
    from moto.moto_api import state_manager

    state_manager.set_transition("ecs::task", {"progression": "manual", "times": 1_000_000})
    made = Tasks(agents)
    real_run, real_stop = EC2ContainerServiceBackend.run_task, EC2ContainerServiceBackend.stop_task

    def run_task(backend, *arguments):
        asked = inspect.signature(real_run).bind(backend, *arguments).arguments
        made.asked.append(asked)
        started = real_run(backend, *arguments)
        for task in started:
            definition = backend.describe_task_definition(asked["task_definition_str"])
            address = made.start(task, definition, asked["overrides"])
            for detail in task.attachments[0]["details"]:
                if detail["name"] == "privateIPv4Address":
                    detail["value"] = address
        return started

    def stop_task(backend, cluster, task_id, reason):
        if not any(arn.endswith(task_id) for arn in backend.tasks.get(cluster, ())):
            raise InvalidParameterException("The referenced task was not found.")  # moto: 500
        task = real_stop(backend, cluster, task_id, reason)
        made.stop(task.id)
        return task

    monkeypatch.setattr(EC2ContainerServiceBackend, "run_task", run_task)
    monkeypatch.setattr(EC2ContainerServiceBackend, "stop_task", stop_task)
    for name, value in account.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setattr("gymflow.sandboxes.ecs_fargate.provider.POLL_S", 0.05)
    made.backend = ecs_backends[DEFAULT_ACCOUNT_ID][REGION]
    yield made
    made.backend.tasks.clear()


@pytest.fixture
async def provider(tasks):
    pytest.importorskip("boto3")
    from gymflow.sandboxes.ecs_fargate import FargateProvider

    made = FargateProvider()
    yield made
    await made.close()


@pytest.fixture
def spec():
    """A folder that the task can write in: its root is this machine's, read-only."""
    return SandboxSpec(provider="ecs_fargate", workdir="/srv/work")


@pytest.fixture
async def sandbox(provider, spec):
    started = await provider.start(spec, labels={"gymflow.run": "r1"})
    yield started
    await started.stop()
