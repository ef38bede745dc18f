"""Which sockets can be made in a sandbox without network: those of a network namespace, and no others.

A network namespace holds Internet, netlink and Unix sockets. Others pass it by: AF_VSOCK reaches the machine below a virtual one, and
what listens on this one. A filter for system calls (seccomp(2), classic BPF) refuses them. io_uring makes sockets without a system
call of their own, so it is refused too.
"""

import errno
import platform
import socket
import struct
from functools import lru_cache

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
"""Offsets in struct seccomp_data; of an argument its lower half."""
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16)
"""16: AF_NETLINK, which only Linux has a name for."""
IO_URING_SETUP = 425
X32 = 0x4000_0000
"""From here on, numbers of a second interface to the same calls."""
MACHINES = {"x86_64": (0xC000003E, 41, (102, 359)), "aarch64": (0xC00000B7, 198, (102, 281))}
"""Machine -> its architecture, the number of `socket`, and those of `socketcall` and `socket` for its 32-bit programs."""


@lru_cache(maxsize=1)
def program() -> bytes | None:
    """The filter's instructions; None on a machine whose numbers are not known here."""
    if platform.machine() not in MACHINES:
        return None
    architecture, number, foreign = MACHINES[platform.machine()]
    refused = ERRNO | errno.ENOSYS
    return assembled(
        [
            (LOAD, ARCHITECTURE),
            (EQUAL, architecture, "native", "foreign"),
            "native",
            (LOAD, NUMBER),
            (AT_LEAST, X32, "refuse", None),
            (EQUAL, IO_URING_SETUP, "refuse", None),
            (EQUAL, number, None, "allow"),
            (LOAD, FIRST_ARGUMENT),
            *[(EQUAL, int(family), "allow", None) for family in FAMILIES],
            (RETURN, ERRNO | errno.EAFNOSUPPORT),
            "foreign",
            (LOAD, NUMBER),
            *[(EQUAL, call, "refuse", None) for call in (*foreign, IO_URING_SETUP)],
            "allow",
            (RETURN, ALLOW),
            "refuse",
            (RETURN, refused),
        ]
    )


def assembled(lines: list[str | tuple[int, int] | tuple[int, int, str | None, str | None]]) -> bytes:
    """Machine code: 8 bytes an instruction. A string is a label; a test names those to go to where it holds and where it does
    not, None for the next line."""
    places: dict[str | None, int] = {}
    instructions: list[tuple[int, int, str | None, str | None]] = []
    for line in lines:
        if isinstance(line, str):
            places[line] = len(instructions)
        else:
            operation, operand, *ways = line
            held, failed = ways or (None, None)
            instructions.append((operation, operand, held, failed))
    code = b""
    for at, (operation, operand, *ways) in enumerate(instructions):
        jumps = [0 if way is None else places[way] - at - 1 for way in ways]
        code += struct.pack("<HBBI", operation, *jumps, operand)
    return code
