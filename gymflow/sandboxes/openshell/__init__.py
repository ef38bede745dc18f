"""`openshell`: sandboxes of an NVIDIA OpenShell gateway, through its SDK (extra `openshell`); egress only to an allow-list."""

from gymflow.sandboxes.openshell.provider import OpenShellProvider

__all__ = ["OpenShellProvider"]
