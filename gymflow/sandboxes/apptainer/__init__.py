"""`apptainer`: sandboxes as Apptainer instances, for machines where that is what there is (compute clusters, mostly)."""

from gymflow.sandboxes.apptainer.provider import ApptainerProvider

__all__ = ["ApptainerProvider"]
