"""The journal: append-only JSONL segments in which a rollout becomes durable.

A line is one JSON object whose first member is the CRC-32 of all that follows it:

    {"crc":"4a17b156","seq":0,"kind":"rollout",…}

so that a line cut short by a crash and a line damaged later are both told from a good one. The tail behind the last newline is
*torn*: nobody was told that it is durable, and it is cut off before the next append. Anything else that does not check is a
*fault*: it is reported, stays where it is, and the lines around it are read. So is a line that is there twice, as copying by hand
leaves it: the second one is not read.
"""

import asyncio
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gymflow.store.files import Files, disk_error

SPACING_S = 0.02
"""Least time between two flushes: waking a thread for an fsync costs more CPU than a rollout's line, so under load several
rollouts share one; a rollout that comes alone is flushed at once."""

_PREFIX = b'{"crc":"'
_BODY_AT = len(_PREFIX) + 8 + len(b'",')
_IDENTITY = 64
"""Bytes that tell a segment's lines apart: checksum and sequence number lie within them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A damaged stretch of a segment: `length` bytes from `offset`."""

    segment: str
    offset: int
    length: int
    reason: str


def frame(members: bytes) -> bytes:
    """A journal line from the members of a JSON object, without its braces."""
    body = members + b"}"
    return b'%s%08x",%s\n' % (_PREFIX, zlib.crc32(body), body)


def checks(line: bytes | memoryview) -> bool:
    """Whether a line, without its newline, is one that `frame` made."""
    if len(line) <= _BODY_AT or line[: len(_PREFIX)] != _PREFIX or line[_BODY_AT - 2 : _BODY_AT] != b'",':
        return False
    return b"%08x" % zlib.crc32(line[_BODY_AT:]) == line[len(_PREFIX) : _BODY_AT - 2]


def scan(path: Path, faults: list[Fault] | None = None) -> Iterator[tuple[int, bytes]]:
    """Good lines of a segment as (offset, line without newline). Faults are appended to `faults`; a torn tail is not one.

    The file is opened by the call, so that the lines can be read at leisure though the segment be removed meanwhile.
    """
    return _lines(path.open("rb"), path.name, faults)


def _lines(file: BinaryIO, name: str, faults: list[Fault] | None) -> Iterator[tuple[int, bytes]]:
    offset = 0
    seen: set[bytes] = set()
    with file:
        for line in file:
            if line.endswith(b"\n"):
                reason = None
                if not checks(line[:-1]):
                    reason = "the line's checksum does not match its content"
                elif (identity := line[:_IDENTITY]) in seen:
                    reason = "the line is there twice"
                else:
                    seen.add(identity)
                    yield offset, line[:-1]
                if reason is not None and faults is not None:
                    faults.append(Fault(name, offset, len(line), reason))
            offset += len(line)


def torn_at(path: Path) -> int | None:
    """Offset of the torn tail, or None where the segment ends with a newline or is empty."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        position = size
        while position > 0:
            start = max(0, position - 65536)
            file.seek(start)
            block = file.read(position - start)
            newline = block.rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                return None if end == size else end
            position = start
    return 0 if size else None


class Journal:
    """Appends to one run's segments. Many coroutines may submit lines at once: one fsync makes all of them durable."""

    def __init__(self, folder: Path, files: Files) -> None:
        self._folder = folder
        self._files = files
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gymflow-journal")
        self._batch: Batch | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._descriptor = -1
        self._path = folder
        self._broken: Exception | None = None
        self._next_flush = 0.0
        self._rotation: tuple[Path, asyncio.Future[None]] | None = None
        self.size = 0
        """Bytes in the segment that is written to."""

    def open(self, segment: Path) -> None:
        """Go on in a segment; its torn tail, if a crash left one, is cut off first."""
        size = segment.stat().st_size if segment.exists() else 0
        torn = torn_at(segment) if size else None
        descriptor = self._files.append_to(segment)
        if torn is not None:
            self._files.truncate(descriptor, torn)
        self._files.sync_folder(self._folder)
        previous, self._descriptor = self._descriptor, descriptor
        self._path, self.size = segment, size if torn is None else torn
        if previous >= 0:
            self._files.close(previous)

    def submit(self, line: bytes, acknowledge: Callable[[bool], None]) -> "Batch":
        """Put a line on its way; await the batch it is in. `acknowledge(durable)` is called either way when it is decided."""
        if self._broken is not None:
            acknowledge(False)
            raise self._broken
        if self._batch is None:
            self._batch = Batch()
        self._batch.lines.append(line)
        self._batch.acknowledge.append(acknowledge)
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        return self._batch

    async def rotate(self, segment: Path) -> None:
        """Go on in a new segment as soon as the lines that are being written now are durable."""
        self._rotation = (segment, asyncio.get_running_loop().create_future())
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        await self._rotation[1]

    async def drain(self) -> None:
        """Wait until everything appended so far is durable."""
        while self._flushing is not None:
            await asyncio.shield(self._flushing)

    def close(self) -> None:
        """Let go of the segment; what was not acknowledged may be lost."""
        self._broken = self._broken or RuntimeError("the journal is closed")
        self._thread.shutdown(wait=True)
        if self._descriptor >= 0:
            self._files.close(self._descriptor)
            self._descriptor = -1

    async def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                if self._rotation is not None:
                    self._rotate()
                if self._batch is None:
                    break
                await asyncio.sleep(self._next_flush - loop.time())
                batch, self._batch = self._batch, None
                self._next_flush = loop.time() + SPACING_S
                if self._broken is None:
                    try:
                        await loop.run_in_executor(self._thread, self._write, b"".join(batch.lines))
                    except OSError as error:
                        self._broken = disk_error(self._path, error)
                batch.decide(self._broken)
        finally:
            self._flushing = None

    def _rotate(self) -> None:
        assert self._rotation is not None
        (segment, done), self._rotation = self._rotation, None
        try:
            self.open(segment)
            done.set_result(None)
        except OSError as error:
            done.set_exception(error)

    def _write(self, data: bytes) -> None:
        try:
            self._files.write(self._descriptor, data)
            self._files.sync(self._descriptor)
        except OSError:
            try:  # nobody was told of these lines: take back what of them arrived
                self._files.truncate(self._descriptor, self.size)
            except OSError:
                pass  # then a torn tail is left, which the next writer cuts off
            raise
        self.size += len(data)


class Batch:
    """Lines that become durable together."""

    __slots__ = ("_decided", "_error", "acknowledge", "lines")

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.acknowledge: list[Callable[[bool], None]] = []
        self._decided = asyncio.Event()
        self._error: Exception | None = None

    async def wait(self) -> None:
        """Return when the lines are durable. Raises InputError when they could not be made so; nothing of them is left then."""
        await self._decided.wait()
        if self._error is not None:
            raise self._error

    def decide(self, error: Exception | None) -> None:
        """Tell everyone who waits."""
        self._error = error
        for acknowledge in self.acknowledge:
            acknowledge(error is None)
        self._decided.set()
