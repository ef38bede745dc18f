"""Content-addressed files: workspaces, patches, and values too long for a row."""

import hashlib
import re
from pathlib import Path

from gymflow.errors import InputError
from gymflow.store.files import Files
from gymflow.store.remote import mirror_of

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Artifacts:
    """Files by the SHA-256 of their content, under `artifacts/ab/abcdef…`. Equal content is stored once."""

    def __init__(self, folder: Path, files: Files) -> None:
        self._folder = folder
        self._files = files

    def path(self, digest: str) -> Path:
        """Where an artifact lies. A digest out of a rollout is not trusted to be one."""
        if not _DIGEST.fullmatch(digest):
            raise InputError(f"{digest!r} is not the digest of an artifact")
        return self._folder / digest[:2] / digest

    def put(self, data: bytes) -> str:
        """Store bytes durably; returns their digest."""
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        if not path.exists():
            self._files.make_folder(path.parent)
            self._files.replace(path, data)
        return digest

    def read(self, digest: str) -> bytes:
        """The bytes. Raises InputError where the store lacks them."""
        try:
            path = self.path(digest)
            if not path.exists() and (mirror := mirror_of(path)) is not None:
                mirror.shared.fetch(path)
            return path.read_bytes()
        except FileNotFoundError:
            raise InputError(f"artifact {digest} is missing in {self._folder}") from None
