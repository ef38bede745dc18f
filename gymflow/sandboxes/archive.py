"""Tar archives across the boundary of a sandbox: never outside the target, never more than was allowed.

An archive that we make is deterministic (sorted, no owners, no times), so equal folders have equal digests.
"""

import copy
import io
import posixpath
import tarfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath

from gymflow.sandboxes.errors import TooLarge, UnsafePath

MAX_BYTES = 512 << 20
MAX_FILES = 100_000
MAX_DEPTH = 256
"""Of a path, names. To follow a chain of folders takes the square of its length, for each of them."""


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
    names in `exclude`, wherever they occur in a path. Hard links are files of their own in it."""
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
    """A member's path, normal and relative. Raises UnsafePath where it is absolute, leads upwards or is too deep."""
    path = posixpath.normpath(name)
    if not name or "\0" in name or path.startswith("/") or ".." in PurePosixPath(path).parts:
        raise UnsafePath(f"archive member {name!r} leads outside")
    if path.count("/") >= MAX_DEPTH:
        raise UnsafePath(f"archive member {name[:40]!r}… lies more than {MAX_DEPTH} folders deep")
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
    found: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    unsafe: list[UnsafePath] = []
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in _bounded(tar, max_bytes, max_files):
            try:
                clean = _clean(member)
            except UnsafePath as error:
                unsafe.append(error)
                continue
            if set(clean.name.split("/")).isdisjoint(exclude):
                source = tar.extractfile(member) if clean.isreg() else None
                found[clean.name] = (clean, source.read() if source else b"")
    kept = _inside(_copied(found, max_bytes, unsafe), unsafe)
    if unsafe and not drop_unsafe:
        raise unsafe[0]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as out:
        for name in sorted(kept):
            member, data = kept[name]
            out.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _clean(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """What of a member we take over. Raises UnsafePath by what it says of itself alone."""
    clean = tarfile.TarInfo(safe_name(member.name))
    clean.type = tarfile.REGTYPE if member.isreg() else member.type
    clean.mode = member.mode & 0o777
    if member.isreg():
        clean.size = member.size
    elif member.issym():
        clean.linkname = member.linkname
    elif member.islnk():
        clean.linkname = safe_name(member.linkname)
    elif not member.isdir():
        raise UnsafePath(f"{member.name!r} is neither file, folder nor link")
    return clean


Members = dict[str, tuple[tarfile.TarInfo, bytes]]


def _copied(found: Members, max_bytes: int, unsafe: list[UnsafePath]) -> Members:
    """Each hard link as a file of its own: what is later put at the path that it names would else come to be its content."""
    kept: Members = {}
    total = sum(len(data) for _, data in found.values())
    for name, (member, data) in found.items():
        if member.islnk():
            target, content = found.get(member.linkname, (None, b""))
            if target is None or not target.isreg():
                unsafe.append(
                    UnsafePath(f"{name!r} is a hard link to {member.linkname!r}, which is no file of the archive")
                )
                continue
            total += len(content)
            if total > max_bytes:
                raise TooLarge(f"the archive holds more than {max_bytes} bytes, hard links counted")
            member, data = copy.copy(member), content
            member.type, member.linkname, member.size = tarfile.REGTYPE, "", len(content)
        kept[name] = (member, data)
    return kept


def _inside(found: Members, unsafe: list[UnsafePath]) -> Members:
    """What lies below folders alone, and the links that stay inside whichever way they are followed."""
    kept: Members = {}
    folders = _folders(found)
    for name, (member, data) in found.items():
        try:
            if not folders[posixpath.dirname(name)]:
                raise UnsafePath(f"archive member {name!r} lies below what is no folder")
            if member.issym():
                member = copy.copy(member)
                member.linkname = _leading(member, folders)
        except UnsafePath as error:
            unsafe.append(error)
            continue
        kept[name] = (member, data)
    return kept


def _folders(found: Members) -> dict[str, bool]:
    """Every path at or above a member that would have to be a folder -> whether it and all above it are; "": the root."""
    folders = {"": True}
    for name, (member, _) in found.items():
        at, new = name if member.isdir() else posixpath.dirname(name), []
        while at not in folders:
            new.append(at)
            at = posixpath.dirname(at)
        for folder in reversed(new):
            is_folder = folder not in found or found[folder][0].isdir()
            folders[folder] = is_folder and folders[posixpath.dirname(folder)]
    return folders


def _leading(link: tarfile.TarInfo, folders: Mapping[str, bool]) -> str:
    """A link's target with every `..` at its beginning, so that text alone tells where it leads: a `..` behind a name goes
    up from where that name leads, which for a link is somewhere else. Raises UnsafePath."""
    outside = UnsafePath(f"link {link.name!r} leads outside: {link.linkname!r}")
    if not link.linkname or link.linkname.startswith("/") or "\0" in link.linkname:
        raise outside
    at = posixpath.dirname(link.name)
    steps: list[str] = []
    for part in PurePosixPath(link.linkname).parts:
        if part != "..":
            at = posixpath.join(at, part)
            steps.append(part)
            continue
        if not at or not folders.get(at):
            raise outside
        at = posixpath.dirname(at)
        if steps and steps[-1] != "..":
            steps.pop()
        else:
            steps.append(part)
    return "/".join(steps) or "."
