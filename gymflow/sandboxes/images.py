"""Images of the `local` provider: unpacked root folders under the cache, by name."""

import os
from pathlib import Path

from gymflow.sandboxes.errors import SandboxUnavailable


def cache() -> Path:
    """Where built images lie."""
    base = os.environ.get("GYMFLOW_IMAGES") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "gymflow", "images"
    )
    return Path(base)


def rootfs(image: str | None) -> Path | None:
    """The root folder of an image; None: this machine's own system."""
    if image in (None, "host"):
        return None
    folder = cache() / str(image).replace("/", "_").replace(":", "_") / "rootfs"
    if not folder.is_dir():
        raise SandboxUnavailable(f"image {image!r} is not here; build it with `gym sandbox image`")
    return folder


def identity(image: str) -> str:
    """The digest that was taken when the image was built."""
    folder = rootfs(image)
    assert folder is not None
    return (folder.parent / "digest").read_text().strip()
