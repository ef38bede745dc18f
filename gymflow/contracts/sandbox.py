"""A sandbox as a manifest or a task row asks for it, and what a command in it came to."""

import posixpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, PlainSerializer, field_validator

from gymflow.contracts.base import Contract

Network = Literal["none", "gateway", "open"]
"""`gateway`: nothing but the model gateway, at the address in `GYMFLOW_GATEWAY` inside the sandbox."""

ExecOutcome = Literal["exited", "timeout", "oom", "killed", "output_limit"]
"""How a command ended. `killed`: by a SIGKILL that was neither a limit of ours nor the memory limit."""


class SandboxLimits(Contract):
    """What a sandbox may use. None: the provider's own default holds; a limit it cannot enforce is refused at start."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    cpus: float | None = Field(None, gt=0, description="Cores' worth of CPU time per second.")
    memory_mib: int | None = Field(None, ge=8)
    processes: int | None = Field(None, ge=4, description="Processes and threads at one time.")
    disk_mib: int | None = Field(None, ge=1, description="Bytes written that exist at one time.")
    wall_s: float | None = Field(None, gt=0, description="Life of the sandbox, seconds; then it is removed.")
    output_mib: int = Field(256, ge=1, description="A command that writes more to stdout and stderr is killed.")


class SandboxSpec(Contract):
    """What to start. It can stand in a manifest's or a task row's `sandbox` field.

    The isolation that a run demands is not part of it: a dataset row must not be able to weaken it.
    """

    provider: str = Field("local", description="local, docker, …; see `gym sandbox check`.")
    image: str | None = Field(None, description="Name of an image; None: the provider's default.")
    workdir: str = "/work"
    user: str | None = Field(None, description="User inside; None: the provider's unprivileged default.")
    env: dict[str, str] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict, description="Path (relative to workdir) -> text, put at start.")
    network: Network = "none"
    allow: tuple[str, ...] = Field((), description="Hosts that are reachable beside the network mode's.")
    limits: SandboxLimits = Field(default_factory=lambda: SandboxLimits())
    options: dict[str, Any] = Field(default_factory=dict, description="The provider's own; an unknown one is refused.")

    @field_validator("workdir")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if not value.startswith("/") or ".." in value.split("/") or not value.strip("/") or not value.isprintable():
            raise ValueError("workdir is an absolute path below /, without `..` and control characters")
        return posixpath.normpath(f"/{value.lstrip('/')}")

    @field_validator("user")
    @classmethod
    def _user(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?", value):
            raise ValueError(f"{value!r} is neither a user's name nor number")
        return value

    @field_validator("env")
    @classmethod
    def _names(cls, value: dict[str, str]) -> dict[str, str]:
        for name, content in value.items():
            if not name or "=" in name or "\0" in name + content:
                raise ValueError(f"{name!r} cannot be an environment variable")
        return value

    def overlaid(self, changes: dict[str, Any]) -> "SandboxSpec":
        """This spec with another one's fields on top (a task row's over its environment's); env, files, limits and
        options are merged key by key."""
        return SandboxSpec.model_validate(merged(self.model_dump(exclude_unset=True), changes))


def merged(base: Mapping[str, Any] | None, changes: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Two parts of a sandbox, the second on top: env, files, limits and options key by key. None where neither asks for one."""
    if base is None and changes is None:
        return None
    both = dict(base or {})
    for name, value in (changes or {}).items():
        inner = both.get(name)
        both[name] = {**inner, **value} if isinstance(inner, dict) and isinstance(value, dict) else value
    return both


def sandbox_of(environment: Mapping[str, Any] | None, task: Mapping[str, Any] | None) -> SandboxSpec | None:
    """What a task is played in: its own part over its environment's; None where neither asks for a sandbox."""
    both = merged(environment, task)
    return None if both is None else SandboxSpec.model_validate(both)


def _normal(part: SandboxSpec) -> dict[str, Any]:
    return part.model_dump(mode="json", exclude_unset=True)


if TYPE_CHECKING:
    SandboxPart = dict[str, Any]
else:
    SandboxPart = Annotated[SandboxSpec, AfterValidator(_normal), PlainSerializer(lambda part: part)]
"""Some fields of a `SandboxSpec`, as written and with their numbers coerced; what is left out is decided elsewhere."""
