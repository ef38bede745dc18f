"""What can go wrong with a sandbox. A command's own failure is never an exception; infrastructure never a return code."""

import errno
import os

from gymflow.contracts.outcome import FailureKind
from gymflow.errors import InputError, RolloutFailure


class SandboxError(RolloutFailure):
    """The sandbox or its provider misbehaved. `maybe_ran`: whether the command in question may have taken effect."""

    def __init__(self, message: str, *, maybe_ran: bool = True, cause: BaseException | None = None) -> None:
        super().__init__(FailureKind.SANDBOX_ERROR, message, cause=cause)
        self.maybe_ran = maybe_ran


class SandboxUnavailable(RolloutFailure):
    """No sandbox can be had: daemon down, quota, unknown image, a platform that cannot isolate."""

    def __init__(self, message: str, *, cause: BaseException | None = None) -> None:
        super().__init__(FailureKind.SANDBOX_UNAVAILABLE, message, cause=cause)


class SandboxLost(RolloutFailure):
    """A started sandbox is gone: stopped, killed from outside, out of memory, past its wall time."""

    def __init__(self, message: str, *, oom: bool = False, logs: str = "", cause: BaseException | None = None) -> None:
        super().__init__(FailureKind.SANDBOX_UNAVAILABLE, message, cause=cause)
        self.oom = oom
        self.logs = logs


class SandboxUnsupported(InputError):
    """Asked for what the provider cannot do; said at start, never ignored."""


class UnsafePath(ValueError):
    """A path or archive member that leads outside, or is neither file, folder nor link."""


class TooLarge(ValueError):
    """A file, folder or archive exceeds the size or the number of entries that the caller allowed."""


def file_error(number: int, path: str) -> Exception:
    """What an errno means for a file operation inside: how the sandbox has its files, never that the sandbox itself failed."""
    match number:
        case errno.EFBIG:
            return TooLarge(f"{path} is larger than allowed")
        case errno.EINVAL | errno.ENXIO:
            return UnsafePath(f"{path} is not a regular file")
        case _:
            return OSError(number, os.strerror(number), path)


def said_error(said: str, path: str) -> OSError | None:
    """The same out of what a command wrote, where it names such a reason."""
    reasons = (errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EACCES, errno.EROFS)
    return next((OSError(number, os.strerror(number), path) for number in reasons if os.strerror(number) in said), None)
