"""`local`: sandboxes out of Linux namespaces, without a daemon."""

from gymflow.sandboxes.local.provider import LocalProvider, OneShot

__all__ = ["LocalProvider", "OneShot"]
