"""Tar archives across the boundary of a sandbox: never outside the target, never more than was allowed.

An archive that we make is deterministic (sorted, no owners, no times), so equal folders have equal digests.
"""

import io
import posixpath
import tarfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath

from gymflow.sandboxes.errors import TooLarge, UnsafePath

MAX_BYTES = 512 << 20
MAX_FILES = 100_000


def pack(files: Mapping[str, bytes | str]) -> bytes:
    """An archive of path -> content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(files):
            content = files[path]
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(safe_name(path))
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def read(archive: bytes, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> dict[str, bytes]:
    """Path -> content of the regular files in an archive (plain or compressed)."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in _bounded(tar, max_bytes, max_files):
            if member.isreg() and (source := tar.extractfile(member)):
                found[safe_name(member.name)] = source.read()
    return found


def checked(archive: bytes, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> bytes:
    """The archive, uncompressed. Raises UnsafePath for a member that leads outside or is a device, TooLarge for a bomb."""
    return _rewritten(archive, max_bytes, max_files, drop_unsafe=False)


def normalised(
    archive: bytes, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES, exclude: Collection[str] = ()
) -> bytes:
    """The archive in its deterministic form, without what `checked` would refuse for its path or type, and without the
    names in `exclude`, wherever they occur in a path."""
    return _rewritten(archive, max_bytes, max_files, drop_unsafe=True, exclude=exclude)


def unpack(archive: bytes, folder: Path, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> None:
    """Write an archive's members into a folder of this machine. Raises UnsafePath, TooLarge; nothing leads outside."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(checked(archive, max_bytes=max_bytes, max_files=max_files))) as tar:
        try:
            tar.extractall(folder, filter="data")
        except tarfile.FilterError as error:
            raise UnsafePath(str(error)) from error


def safe_name(name: str) -> str:
    """A member's path, normal and relative. Raises UnsafePath where it is absolute or leads upwards."""
    path = posixpath.normpath(name)
    if not name or "\0" in name or path.startswith("/") or ".." in PurePosixPath(path).parts:
        raise UnsafePath(f"archive member {name!r} leads outside")
    return path


def _bounded(tar: tarfile.TarFile, max_bytes: int, max_files: int) -> Iterator[tarfile.TarInfo]:
    """Members as they are read, so that a bomb stops at the limit and not after it was expanded."""
    total = 0
    for count, member in enumerate(tar, 1):
        total += member.size
        if total > max_bytes:
            raise TooLarge(f"the archive holds more than {max_bytes} bytes")
        if count > max_files:
            raise TooLarge(f"the archive holds more than {max_files} entries")
        yield member


def _rewritten(
    archive: bytes, max_bytes: int, max_files: int, *, drop_unsafe: bool, exclude: Collection[str] = ()
) -> bytes:
    kept: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in _bounded(tar, max_bytes, max_files):
            try:
                clean = _clean(member)
            except UnsafePath:
                if not drop_unsafe:
                    raise
                continue
            if not set(clean.name.split("/")).isdisjoint(exclude):
                continue
            source = tar.extractfile(member) if clean.isreg() else None
            kept[clean.name] = (clean, source.read() if source else b"")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as out:
        # A hard link can only follow what it names.
        for name in sorted(kept, key=lambda name: (kept[name][0].islnk(), name)):
            member, data = kept[name]
            out.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _clean(member: tarfile.TarInfo) -> tarfile.TarInfo:
    clean = tarfile.TarInfo(safe_name(member.name))
    clean.type = tarfile.REGTYPE if member.isreg() else member.type
    clean.mode = member.mode & 0o777
    if member.isreg():
        clean.size = member.size
    elif member.issym():
        target = posixpath.join(posixpath.dirname(clean.name), member.linkname)
        if member.linkname.startswith("/") or posixpath.normpath(target).split("/")[0] == "..":
            raise UnsafePath(f"link {member.name!r} leads outside: {member.linkname!r}")
        clean.linkname = member.linkname
    elif member.islnk():
        clean.linkname = safe_name(member.linkname)
    elif not member.isdir():
        raise UnsafePath(f"{member.name!r} is neither file, folder nor link")
    return clean
