"""`local`: sandboxes out of Linux namespaces, no daemon (DESIGN, section 9)."""

from gymflow.sandboxes.local.provider import LocalProvider, OneShot

__all__ = ["LocalProvider", "OneShot"]
