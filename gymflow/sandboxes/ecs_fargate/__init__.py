"""`ecs_fargate`: sandboxes as AWS Fargate tasks, each a virtual machine of its own, with an exec agent of ours inside (extra `ecs`)."""

from gymflow.sandboxes.ecs_fargate.provider import FargateProvider

__all__ = ["FargateProvider"]
