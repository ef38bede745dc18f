"""Whether the files of a run are whole: looked at whenever a run is opened, so that damage is said once and clearly, and a damaged
run does not keep the others from being read."""

import os
from pathlib import Path

from gymflow.errors import InputError
from gymflow.store.layout import RunLayout
from gymflow.store.manifest import RunManifest
from gymflow.store.remote import away
from gymflow.store.state import consistent

_MAGIC = b"PAR1"
_FOOTER = 8
"""Length of the metadata (4 bytes, little-endian), then the magic (https://parquet.apache.org/docs/file-format)."""


def require_intact(layout: RunLayout) -> None:
    """Raises InputError naming the first Parquet file of a run that was cut short, overwritten or lost."""

    def check(manifest: RunManifest) -> None:
        parts = (layout.part(table, part.file) for table, parts in manifest.parts.items() for part in parts)
        paths = [layout.plan, layout.tasks, *parts]
        elsewhere = away(paths)
        for path in paths:
            if path not in elsewhere and not _whole(path):
                raise InputError(
                    f"{path}: damaged, not a whole Parquet file; restore it from a backup, or move {layout.folder} away"
                )

    consistent(layout, check)


def _whole(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        if size < len(_MAGIC) + _FOOTER or os.pread(descriptor, len(_MAGIC), 0) != _MAGIC:
            return False
        footer = os.pread(descriptor, _FOOTER, size - _FOOTER)
        length = int.from_bytes(footer[:4], "little")
        return footer[4:] == _MAGIC and length <= size - len(_MAGIC) - _FOOTER
    finally:
        os.close(descriptor)
