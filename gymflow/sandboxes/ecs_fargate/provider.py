"""The `ecs_fargate` provider: one task a sandbox, its agent reached at the task's address in the VPC."""

import asyncio
import base64
import hashlib
import inspect
import json
import secrets
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.ecs_fargate import agent
from gymflow.sandboxes.ecs_fargate.aws import Aws
from gymflow.sandboxes.ecs_fargate.sandbox import FargateSandbox, ids
from gymflow.sandboxes.ecs_fargate.settings import PREFIX, Settings
from gymflow.sandboxes.ecs_fargate.sizes import size
from gymflow.sandboxes.errors import SandboxUnavailable, SandboxUnsupported
from gymflow.sandboxes.interface import (
    Capability,
    Mount,
    Provider,
    Sandbox,
    SandboxInfo,
    refuse_options,
    refuse_unsupported,
)
from gymflow.sandboxes.labels import OWNER, matches, new_id, owned

START_S = 600.0
POLL_S = 2.0
LIFE_S = 24 * 3600.0
"""How long a task lives at most where the spec does not say: nobody pays for one that was forgotten."""
CONTAINER = "sandbox"
PACKED = base64.b64encode(zlib.compress(inspect.getsource(agent).encode(), 9)).decode()
LAUNCH = f"import base64,zlib;exec(zlib.decompress(base64.b64decode('{PACKED}')))"


class FargateProvider(Provider):
    """Tasks in one cluster; see `settings` for where they run."""

    name = "ecs_fargate"
    remote = True

    def __init__(self) -> None:
        self.settings = Settings.read()
        self._opened: Aws | None = None
        self._closed_groups_fit: bool = False

    @property
    def capabilities(self) -> Capability:
        networks = Capability.NONE
        if self.settings.groups:
            networks |= Capability.NETWORK_OPEN
        if self.settings.closed_groups:
            networks |= Capability.NETWORK_NONE
        return (
            networks
            | Capability.CPU_LIMIT
            | Capability.MEMORY_LIMIT
            | Capability.PROCESS_LIMIT
            | Capability.KILL_TREE
            | Capability.SEPARATE_STDERR
            | Capability.USER
            | Capability.EXEC_USER
            | Capability.IMAGES
            | Capability.WRITABLE_ROOT
            | Capability.USAGE
            | Capability.WALL_LIMIT
        )

    def sample(self, image: str | None = None) -> SandboxSpec:
        return SandboxSpec(provider=self.name, image=image, network="none" if self.settings.closed_groups else "open")

    def _aws(self) -> Aws:
        if self._opened is None:
            self._opened = Aws(self.settings.cluster)
        return self._opened

    async def start(
        self,
        spec: SandboxSpec,
        *,
        labels: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] = (),
        gateway: Path | None = None,
    ) -> Sandbox:
        self.settings.require()
        refuse_unsupported(self, spec, mounts)
        refuse_options(self, spec, ())
        uid, _ = ids(spec.user)
        if spec.limits.processes and uid == 0:
            raise SandboxUnsupported("limits.processes: Fargate has no such limit for root; choose another user")
        definition = self._definition(spec)
        aws = self._aws()
        await self._require_closed(spec)
        token = secrets.token_urlsafe(32)
        # A task that is asked for starts also when the asker leaves: wait, so that there is something to stop.
        running = asyncio.ensure_future(
            self._run(aws, spec, definition, token, owned(labels, wall_s=spec.limits.wall_s))
        )
        try:
            arn = await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            if not running.cancelled() and running.exception() is None:
                await asyncio.shield(aws.stop(running.result(), "cancelled"))
            raise
        sandbox: FargateSandbox | None = None
        try:
            sandbox = FargateSandbox(
                arn.rsplit("/", 1)[-1], spec, address=await self._address(aws, arn), token=token,
                gone=lambda: self._gone(aws, arn), end=lambda: aws.stop(arn, "done"),
            )  # fmt: skip
            await sandbox.prepare()
        except BaseException:
            await asyncio.shield(sandbox.stop() if sandbox else aws.stop(arn, "it did not start"))
            raise
        return sandbox

    def _definition(self, spec: SandboxSpec) -> dict[str, Any]:
        cpu, memory = size(spec.limits.cpus, spec.limits.memory_mib)
        container = {
            "name": CONTAINER,
            "image": spec.image or self.settings.image,
            "essential": True,
            "user": "0",
            "memory": spec.limits.memory_mib or memory,
            "entryPoint": ["python3", "-c"],
            "command": [LAUNCH],
            # Orphans of commands become children of the init process, which waits for them.
            "linuxParameters": {"initProcessEnabled": True},
        }
        role = {"executionRoleArn": self.settings.execution_role} if self.settings.execution_role else {}
        return {
            "containerDefinitions": [container],
            "requiresCompatibilities": ["FARGATE"],
            "networkMode": "awsvpc",
            "cpu": str(cpu),
            "memory": str(memory),
            **role,
        }

    async def _run(
        self, aws: Aws, spec: SandboxSpec, definition: dict[str, Any], token: str, labels: Mapping[str, str]
    ) -> str:  # fmt: skip
        digest = hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()[:24]
        groups = self.settings.groups if spec.network == "open" else self.settings.closed_groups
        variables = {
            "GYMFLOW_TOKEN_SHA256": hashlib.sha256(token.encode()).hexdigest(),
            "GYMFLOW_LIFE_S": str(spec.limits.wall_s or LIFE_S),
        }
        return await aws.run(
            taskDefinition=await aws.definition(f"gymflow-{digest}", definition),
            launchType="FARGATE",
            clientToken=new_id(),
            networkConfiguration={
                "awsvpcConfiguration": {
                    "subnets": list(self.settings.subnets),
                    "securityGroups": list(groups),
                    "assignPublicIp": "ENABLED" if self.settings.public_ip else "DISABLED",
                }
            },
            overrides={
                "containerOverrides": [
                    {
                        "name": CONTAINER,
                        "environment": [{"name": key, "value": value} for key, value in variables.items()],
                    }
                ]
            },
            tags=[{"key": key, "value": value} for key, value in labels.items()],
        )

    async def _require_closed(self, spec: SandboxSpec) -> None:
        """Refuse to call a network closed that leads out, once."""
        if spec.network == "none" and not self._closed_groups_fit:
            if group := await self._aws().leads_anywhere(self.settings.closed_groups):
                raise SandboxUnsupported(
                    f"network: none: out of security group {group} in {PREFIX}CLOSED_SECURITY_GROUPS traffic may go anywhere; "
                    "its rules may allow the VPC's endpoints for images and nothing else"
                )
            self._closed_groups_fit = True

    async def _address(self, aws: Aws, arn: str) -> str:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            task = await aws.task(arn)
            if task is not None and (reason := ended(task)):
                raise SandboxUnavailable(f"the task did not start: {reason}")
            if task is not None and task["lastStatus"] == "RUNNING" and (address := private_address(task)):
                return address
            await asyncio.sleep(POLL_S)
        raise SandboxUnavailable(f"the task did not start within {START_S:.0f} s")

    async def _gone(self, aws: Aws, arn: str) -> str | None:
        try:
            task = await aws.task(arn)
        except SandboxUnavailable:
            return None
        return "ECS does not know the task any more" if task is None else ended(task)

    async def list(self, labels: Mapping[str, str] | None = None) -> list[SandboxInfo]:
        infos = [
            SandboxInfo(task["taskArn"].rsplit("/", 1)[-1], {tag["key"]: tag["value"] for tag in task.get("tags", [])})
            for task in await self._aws().tasks()
        ]
        return [info for info in infos if OWNER in info.labels and matches(info.labels, labels)]

    async def remove(self, sandbox_id: str) -> None:
        await self._aws().stop(sandbox_id, "removed")

    async def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def ended(task: Mapping[str, Any]) -> str | None:
    """Why a task has ended or is about to; None where it shall run."""
    if task.get("desiredStatus") != "STOPPED" and task.get("lastStatus") != "STOPPED":
        return None
    reasons = [task.get("stoppedReason", ""), *(one.get("reason", "") for one in task.get("containers", []))]
    said = "; ".join(reason for reason in reasons if reason) or "no reason was given"
    if "python3" in said and "not found" in said:
        said += " (the image needs python3)"
    return said


def private_address(task: Mapping[str, Any]) -> str | None:
    """The task's address in its subnet."""
    for attachment in task.get("attachments", []):
        for detail in attachment.get("details", []):
            if detail.get("name") == "privateIPv4Address":
                return str(detail["value"])
    return None
