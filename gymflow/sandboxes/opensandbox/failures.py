"""What the SDK raises, as what we raise: who has to act, and whether another attempt may help."""

from opensandbox.exceptions import (
    SandboxApiException,
    SandboxConnectionException,
    SandboxException,
    SandboxRateLimitException,
    SandboxTimeoutException,
)

from gymflow.errors import RolloutFailure
from gymflow.sandboxes.errors import SandboxError, SandboxUnavailable

REFUSED = (401, 403)


def is_missing(error: SandboxException) -> bool:
    """Whether the server does not know what was asked for."""
    return isinstance(error, SandboxApiException) and error.status_code == 404


def of_call(error: SandboxException, doing: str) -> RolloutFailure:
    """Of a call that had nothing to do with a started sandbox."""
    match error:
        case SandboxRateLimitException():
            message = f"the OpenSandbox server's rate or quota is used up, cannot {doing}"
        case SandboxApiException() if error.status_code in REFUSED:
            message = "the OpenSandbox server does not accept the key in OPEN_SANDBOX_API_KEY"
        case SandboxConnectionException() | SandboxTimeoutException():
            message = f"the OpenSandbox server does not answer, cannot {doing}"
        case _:
            message = f"the OpenSandbox server cannot {doing}"
    return SandboxUnavailable(f"{message}: {error}", cause=error)


def of_command(error: SandboxException, doing: str) -> RolloutFailure:
    """Of a call to a sandbox that still exists."""
    refused = isinstance(error, SandboxApiException) and error.status_code is not None and error.status_code < 500
    return SandboxError(f"OpenSandbox could not {doing}: {error}", maybe_ran=not refused, cause=error)
