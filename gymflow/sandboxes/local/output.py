"""Reads what a command writes, without ever holding more than its caller wanted kept, nor waiting for a child that it left
behind with its output open."""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable

BLOCK = 1 << 18


class Stream:
    """The reading end of a pipe. `on_bytes(n)` hears of every n bytes read."""

    def __init__(self, keep_bytes: int, on_bytes: Callable[[int], None]) -> None:
        self.read_fd, self.write_fd = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.read_fd, False)
        # Inside it belongs to nobody, and a program may open it once more: `echo x > /dev/stdout`.
        os.fchmod(self.write_fd, 0o222)
        with contextlib.suppress(OSError):
            fcntl.fcntl(self.read_fd, fcntl.F_SETPIPE_SZ, BLOCK)
        self._keep_bytes = keep_bytes
        self._on_bytes = on_bytes
        self._kept = bytearray()
        self.truncated = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self.read_fd, self._readable)

    def _readable(self) -> None:
        if self._read() == 0:
            self._loop.remove_reader(self.read_fd)

    def _read(self) -> int:
        """Bytes of the next block: 0 at the end of the stream, -1 where there is nothing now."""
        try:
            block = os.read(self.read_fd, BLOCK)
        except BlockingIOError:
            return -1
        room = self._keep_bytes - len(self._kept)
        self._kept += block[:room] if len(block) > room else block
        self.truncated = self.truncated or len(block) > room
        self._on_bytes(len(block))
        return len(block)

    def close_writer(self) -> None:
        """Once the child has it."""
        if self.write_fd >= 0:
            os.close(self.write_fd)
            self.write_fd = -1

    def finish(self) -> bytes:
        """What was kept, with what the pipe still holds at this moment."""
        self.close_writer()
        if self.read_fd >= 0:
            self._loop.remove_reader(self.read_fd)
            # A pipe holds no more than this; whoever still writes is not waited for.
            for _ in range(8):
                if self._read() <= 0:
                    break
            os.close(self.read_fd)
            self.read_fd = -1
        return bytes(self._kept)
