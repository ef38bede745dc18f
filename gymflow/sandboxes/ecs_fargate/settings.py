"""Where tasks run, from the environment: an account's affairs, which a task row or a manifest must not decide.

GYMFLOW_ECS_CLUSTER                  a cluster; default: `default`
GYMFLOW_ECS_SUBNETS                  subnets, separated by commas, that this machine has a route to
GYMFLOW_ECS_SECURITY_GROUPS          groups for `network: open`; they let this machine in, to the agent's port
GYMFLOW_ECS_CLOSED_SECURITY_GROUPS   groups for `network: none`; out of them leads nothing but the way to the image
GYMFLOW_ECS_EXECUTION_ROLE           a role that may fetch a private image
GYMFLOW_ECS_PUBLIC_IP                `1`: give tasks a public address, where the subnets have no other way to the image
GYMFLOW_ECS_IMAGE                    the image where a spec names none; it needs `python3`
"""

import os
from dataclasses import dataclass

from gymflow.sandboxes.errors import SandboxUnavailable

PREFIX = "GYMFLOW_ECS_"
DEFAULT_IMAGE = "python:3.12-slim"


@dataclass(frozen=True, slots=True)
class Settings:
    """See the module."""

    cluster: str
    subnets: tuple[str, ...]
    groups: tuple[str, ...]
    closed_groups: tuple[str, ...]
    execution_role: str | None
    public_ip: bool
    image: str

    @classmethod
    def read(cls) -> "Settings":
        """From the environment."""
        return cls(
            cluster=_text("CLUSTER") or "default",
            subnets=_list("SUBNETS"),
            groups=_list("SECURITY_GROUPS"),
            closed_groups=_list("CLOSED_SECURITY_GROUPS"),
            execution_role=_text("EXECUTION_ROLE"),
            public_ip=_text("PUBLIC_IP") == "1",
            image=_text("IMAGE") or DEFAULT_IMAGE,
        )

    def require(self) -> None:
        """Raises SandboxUnavailable that names what lacks."""
        if not self.subnets:
            raise SandboxUnavailable(f"set {PREFIX}SUBNETS to the subnets for tasks, separated by commas")
        if not (self.groups or self.closed_groups):
            raise SandboxUnavailable(
                f"set {PREFIX}SECURITY_GROUPS (for `network: open`) or {PREFIX}CLOSED_SECURITY_GROUPS (for `network: none`)"
            )


def _text(name: str) -> str | None:
    return os.environ.get(PREFIX + name, "").strip() or None


def _list(name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in (_text(name) or "").split(",") if part.strip())
