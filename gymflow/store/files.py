"""The store's file operations, all in one place: what has to be durable is durable when the call returns.

Everything that changes a store goes through a `Files`, so that tests can fail or kill at the n-th operation. A store on a bucket
is such a folder, too, which `gymflow.store.remote` keeps equal with the bucket.
"""

import errno
import os
import threading
from collections.abc import Iterable
from pathlib import Path

from gymflow.errors import DiskRefused, InputError


def local_root(root: str | Path) -> Path:
    """The folder of a store; of one on S3 its working folder. Raises InputError where the bucket cannot be read, and for any
    other URL."""
    text = str(root)
    if text.startswith("s3://"):
        from gymflow.store.remote import working_folder

        return working_folder(text)
    scheme, separator, _ = text.partition("://")
    if separator and scheme != "file":
        raise InputError(f"store {text!r}: a store on {scheme}:// is not supported; use a folder or s3://bucket/prefix")
    return Path(text.removeprefix("file://")).expanduser().absolute()


def disk_error(path: Path, error: OSError) -> DiskRefused:
    """What a user is told when the disk refuses a write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        what, do = "no space left on the disk", "free some"
    else:
        what, do = f"cannot be written ({error.strerror or error})", "mend that"
    return DiskRefused(f"{path}: {what}; every rollout reported done so far is safe: {do} and resume the run.")


def alive(pid: int) -> bool:
    """Whether a process of this machine exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


class Files:
    """Operations on local files. Every method that changes something may raise OSError."""

    def append_to(self, path: Path) -> int:
        """Open for appending, created if absent; returns a descriptor that is not inherited by child processes."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        return descriptor

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all of it."""
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def sync(self, descriptor: int) -> None:
        """Return when what was written is on the medium."""
        getattr(os, "fdatasync", os.fsync)(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut a file to its first `size` bytes, durably."""
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def sync_file(self, path: Path) -> None:
        """Make a file that another library wrote durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder durable."""
        self.sync_file(path)

    def rename(self, source: Path, target: Path) -> None:
        """Replace `target` in one step, durably."""
        source.replace(target)
        self.sync_folder(target.parent)

    def remove(self, path: Path) -> None:
        """Remove a file that is no longer referred to; a file that is gone already is fine."""
        path.unlink(missing_ok=True)

    def replace(self, path: Path, data: bytes) -> None:
        """Put a whole file in place: readers see the old content or the new, also after a crash."""
        self.replace_by(path, (data,))

    def replace_by(self, path: Path, pieces: Iterable[bytes]) -> None:
        """The same with a file that is written piece by piece, as the pieces come; nothing is put in place if one does not."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                for piece in pieces:
                    self.write(descriptor, piece)
                self.sync(descriptor)
            finally:
                self.close(descriptor)
            self.rename(temporary, path)
        except Exception:
            temporary.unlink(missing_ok=True)
            raise

    def make_folder(self, path: Path) -> None:
        """Create a folder and its parents; the names above it are made durable where any is new."""
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for folder in reversed(missing):
            self.sync_folder(folder.parent)
