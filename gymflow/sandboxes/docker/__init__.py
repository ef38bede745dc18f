"""`docker`: sandboxes as containers of a Docker daemon (or one that speaks its API, such as Podman)."""

from gymflow.sandboxes.docker.provider import DockerProvider

__all__ = ["DockerProvider"]
