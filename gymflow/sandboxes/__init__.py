"""Sandboxes: providers behind one interface.

    from gymflow.sandboxes import open_sandbox

    async with open_sandbox(spec, labels={RUN: run_id}) as sandbox:
        result = await sandbox.exec("make test", timeout_s=60)

`open_sandbox` waits for a place in this process's pool, starts the sandbox, and removes it whatever happens in the block.
"""

from gymflow.contracts.sandbox import ExecOutcome, Network, SandboxLimits, SandboxSpec
from gymflow.sandboxes.errors import (
    SandboxError,
    SandboxLost,
    SandboxUnavailable,
    SandboxUnsupported,
    TooLarge,
    UnsafePath,
)
from gymflow.sandboxes.interface import (
    Capability,
    Command,
    ExecResult,
    Isolation,
    Mount,
    Provider,
    Sandbox,
    SandboxInfo,
    Usage,
)
from gymflow.sandboxes.labels import EXPIRES, OWNER, ROLLOUT, RUN
from gymflow.sandboxes.pool import Pool, open_sandbox, run_once
from gymflow.sandboxes.registry import PROVIDERS, close_providers, provider

__all__ = [
    "EXPIRES",
    "OWNER",
    "PROVIDERS",
    "ROLLOUT",
    "RUN",
    "Capability",
    "Command",
    "ExecOutcome",
    "ExecResult",
    "Isolation",
    "Mount",
    "Network",
    "Pool",
    "Provider",
    "Sandbox",
    "SandboxError",
    "SandboxInfo",
    "SandboxLimits",
    "SandboxLost",
    "SandboxSpec",
    "SandboxUnavailable",
    "SandboxUnsupported",
    "TooLarge",
    "UnsafePath",
    "Usage",
    "close_providers",
    "open_sandbox",
    "provider",
    "run_once",
]
