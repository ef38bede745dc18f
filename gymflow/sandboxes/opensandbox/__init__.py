"""`opensandbox`: sandboxes of an OpenSandbox server, through its SDK (`pip install 'gymflow[opensandbox]'`)."""

from gymflow.sandboxes.opensandbox.provider import OpenSandboxProvider

__all__ = ["OpenSandboxProvider"]
