"""The calls to AWS that sandboxes need, off the event loop, and what their failures become."""

import asyncio
from collections.abc import Mapping
from typing import Any, NoReturn

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError, PartialCredentialsError

from gymflow.sandboxes.errors import SandboxUnavailable

STARTED_BY = "gymflow"
BATCH = 100
CREDENTIALS = frozenset(
    {"UnrecognizedClientException", "InvalidSignatureException", "InvalidClientTokenId", "AuthFailure", "ExpiredTokenException",
     "ExpiredToken", "MissingAuthenticationTokenException", "IncompleteSignature"}
)  # fmt: skip
THROTTLES = frozenset({"ThrottlingException", "Throttling", "RequestLimitExceeded", "TooManyRequestsException", "LimitExceededException"})  # fmt: skip


class Aws:
    """ECS and EC2 of the region and the account that boto3 finds in the environment."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        try:
            session = boto3.session.Session()
            config = Config(connect_timeout=10, read_timeout=60, retries={"mode": "standard"}, max_pool_connections=50)
            self._ecs: Any = session.client("ecs", config=config)
            self._ec2: Any = session.client("ec2", config=config)
        except BotoCoreError as error:
            _tell(error, "be used")

    async def call(self, doing: str, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        """One call; its answer. Raises ClientError for what the caller knows how to take, SandboxUnavailable for the rest."""
        method = getattr(self._ecs if service == "ecs" else self._ec2, operation)
        try:
            answer: dict[str, Any] = await asyncio.to_thread(method, **arguments)
            return answer
        except ClientError as error:
            if code_of(error) in ("ClientException", "InvalidParameterException"):
                raise
            _tell(error, doing)
        except BotoCoreError as error:
            _tell(error, doing)

    async def definition(self, family: str, content: Mapping[str, Any]) -> str:
        """The task definition of a family whose name says what is in it, registered where it is not there."""
        try:
            found = await self.call(
                "look up a task definition", "ecs", "describe_task_definition", taskDefinition=family
            )
        except ClientError:
            found = await self._plain(
                "register a task definition", "register_task_definition", family=family, **content
            )
        return str(found["taskDefinition"]["taskDefinitionArn"])

    async def run(self, **arguments: Any) -> str:
        """Start one task; its ARN. Raises SandboxUnavailable where Fargate has no room or takes no such task."""
        answer = await self._plain(
            "start a task", "run_task", cluster=self.cluster, count=1, startedBy=STARTED_BY, **arguments
        )
        if not answer.get("tasks"):
            reasons = "; ".join(
                f"{one.get('reason', '')} {one.get('detail', '')}".strip() for one in answer.get("failures", [])
            )
            raise SandboxUnavailable(f"Fargate did not start a task: {reasons or 'no reason was given'}")
        return str(answer["tasks"][0]["taskArn"])

    async def task(self, arn: str) -> dict[str, Any] | None:
        """A task as it is now; None where ECS does not know it (any more)."""
        answer = await self._plain("look at a task", "describe_tasks", cluster=self.cluster, tasks=[arn])
        return next(iter(answer.get("tasks", [])), None)

    async def tasks(self) -> list[dict[str, Any]]:
        """Tasks of ours that shall run, with their tags."""
        arns: list[str] = []
        arguments: dict[str, Any] = {"cluster": self.cluster, "startedBy": STARTED_BY}
        while True:
            answer = await self._plain("list tasks", "list_tasks", **arguments)
            arns += answer["taskArns"]
            if not answer.get("nextToken"):
                break
            arguments["nextToken"] = answer["nextToken"]
        found: list[dict[str, Any]] = []
        for first in range(0, len(arns), BATCH):
            answer = await self._plain(
                "look at tasks",
                "describe_tasks",
                cluster=self.cluster,
                tasks=arns[first : first + BATCH],
                include=["TAGS"],
            )
            found += answer["tasks"]
        return [task for task in found if task.get("desiredStatus") != "STOPPED"]

    async def stop(self, arn: str, reason: str) -> None:
        """Stop a task; one that is not there is stopped already."""
        try:
            await self.call("stop a task", "ecs", "stop_task", cluster=self.cluster, task=arn, reason=reason)
        except ClientError as error:
            if "not found" not in str(error).lower():
                _tell(error, "stop a task")

    async def leads_anywhere(self, groups: tuple[str, ...]) -> str | None:
        """The first of these security groups out of which traffic may go to any address; None where none is."""
        try:
            answer = await self.call(
                "look at security groups", "ec2", "describe_security_groups", GroupIds=list(groups)
            )
        except ClientError as error:
            _tell(error, "look at security groups")
        for group in answer["SecurityGroups"]:
            for rule in group["IpPermissionsEgress"]:
                ranges = [one.get("CidrIp") for one in rule.get("IpRanges", [])]
                ranges += [one.get("CidrIpv6") for one in rule.get("Ipv6Ranges", [])]
                if {"0.0.0.0/0", "::/0"} & set(ranges):
                    return str(group["GroupId"])
        return None

    async def _plain(self, doing: str, operation: str, **arguments: Any) -> dict[str, Any]:
        try:
            return await self.call(doing, "ecs", operation, **arguments)
        except ClientError as error:
            _tell(error, doing)

    def close(self) -> None:
        self._ecs.close()
        self._ec2.close()


def code_of(error: ClientError) -> str:
    """AWS's word for what went wrong."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _tell(error: BotoCoreError | ClientError, doing: str) -> NoReturn:
    match error:
        case NoCredentialsError() | PartialCredentialsError():
            message = "no AWS credentials: configure them as for the AWS command line"
        case NoRegionError():
            message = "no AWS region: set AWS_REGION"
        case ClientError() if code_of(error) in CREDENTIALS:
            message = f"AWS does not accept the credentials: {error}"
        case ClientError() if code_of(error) in ("AccessDeniedException", "UnauthorizedOperation"):
            message = f"these AWS credentials may not {doing}: {error}"
        case ClientError() if code_of(error) in THROTTLES:
            message = f"AWS's rate or quota is used up, cannot {doing}: {error}"
        case ClientError() if code_of(error) == "ClusterNotFoundException":
            message = "there is no such ECS cluster: set GYMFLOW_ECS_CLUSTER"
        case _:
            message = f"AWS cannot {doing}: {error}"
    raise SandboxUnavailable(message, cause=error) from error
