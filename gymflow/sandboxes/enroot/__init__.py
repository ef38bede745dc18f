"""`enroot`: sandboxes as Enroot containers, for clusters where that is what there is; it separates files, nothing else."""

from gymflow.sandboxes.enroot.provider import EnrootProvider

__all__ = ["EnrootProvider"]
