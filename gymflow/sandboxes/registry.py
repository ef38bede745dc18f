"""Which providers there are. Each is imported when it is asked for, since most need a distribution of their own."""

import asyncio
import importlib
import os
from typing import get_args
from weakref import WeakKeyDictionary

from gymflow.errors import InputError
from gymflow.sandboxes.errors import SandboxUnavailable
from gymflow.sandboxes.interface import Isolation, Provider
from gymflow.suggest import did_you_mean

PROVIDERS: dict[str, tuple[str, str | None]] = {
    "local": ("gymflow.sandboxes.local:LocalProvider", None),
    "docker": ("gymflow.sandboxes.docker:DockerProvider", None),
    "daytona": ("gymflow.sandboxes.daytona:DaytonaProvider", "daytona"),
    "ecs_fargate": ("gymflow.sandboxes.ecs_fargate:FargateProvider", "ecs"),
    "openshell": ("gymflow.sandboxes.openshell:OpenShellProvider", "openshell"),
    "opensandbox": ("gymflow.sandboxes.opensandbox:OpenSandboxProvider", "opensandbox"),
    "apptainer": ("gymflow.sandboxes.apptainer:ApptainerProvider", None),
    "enroot": ("gymflow.sandboxes.enroot:EnrootProvider", None),
}
"""Name -> class, and the extra that installs what it needs; None: nothing beyond gymflow."""

ISOLATION = "GYMFLOW_ISOLATION"
"""Environment variable with the isolation that this run accepts; a task or manifest cannot set it."""

_WEAKEST_FIRST = ("none", "weak", "full")
_instances: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Provider]]" = WeakKeyDictionary()


def provider(name: str, *, accepted: Isolation | None = None) -> Provider:
    """The instance that serves this event loop. `accepted`: the isolation that will do; None: what the run demands.

    Raises InputError for an unknown name, SandboxUnavailable where what it needs is not installed or it isolates less.
    """
    instances = _instances.setdefault(asyncio.get_running_loop(), {})
    if name not in instances:
        instances[name] = _make(name)
    found = instances[name]
    if _WEAKEST_FIRST.index(found.isolation) < _WEAKEST_FIRST.index(accepted or demanded_isolation()):
        raise SandboxUnavailable(
            f"sandbox provider `{name}` isolates only in part ({found.isolation}) here; choose another one, or accept that "
            f"with {ISOLATION}={found.isolation}"
        )
    return found


async def close_providers() -> None:
    """Release what this event loop's providers hold."""
    for instance in _instances.pop(asyncio.get_running_loop(), {}).values():
        await instance.close()


def demanded_isolation() -> Isolation:
    """What `GYMFLOW_ISOLATION` says; full by default."""
    value = os.environ.get(ISOLATION) or "full"
    if value not in get_args(Isolation):
        raise InputError(f"{ISOLATION}={value!r}: expected one of {', '.join(get_args(Isolation))}")
    return value  # type: ignore[return-value]


def _make(name: str) -> Provider:
    if name not in PROVIDERS:
        raise InputError(f"no sandbox provider {name!r}; {did_you_mean(name, PROVIDERS)}")
    target, extra = PROVIDERS[name]
    module, _, attribute = target.partition(":")
    try:
        made = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if extra is None or (error.name or "").startswith("gymflow"):
            raise
        raise SandboxUnavailable(
            f"sandbox provider `{name}` needs `{error.name}`: pip install 'gymflow[{extra}]'", cause=error
        ) from error
    instance: Provider = made(demanded_isolation()) if name == "local" else made()
    return instance
