"""What the SDK raises, as what we raise: who has to act, and whether another attempt may help."""

from daytona import (
    DaytonaAuthenticationError,
    DaytonaConnectionError,
    DaytonaError,
    DaytonaForbiddenError,
    DaytonaRateLimitError,
)

from gymflow.errors import RolloutFailure
from gymflow.sandboxes.errors import SandboxError, SandboxUnavailable


def of_call(error: DaytonaError, doing: str) -> RolloutFailure:
    """Of a call that had nothing to do with a started sandbox."""
    match error:
        case DaytonaAuthenticationError():
            message = "Daytona does not accept the key in DAYTONA_API_KEY"
        case DaytonaForbiddenError():
            message = f"the key in DAYTONA_API_KEY may not {doing}"
        case DaytonaRateLimitError():
            message = f"Daytona's rate or quota is used up, cannot {doing}"
        case DaytonaConnectionError():
            message = f"Daytona does not answer, cannot {doing}"
        case _:
            message = f"Daytona cannot {doing}"
    return SandboxUnavailable(f"{message}: {error}", cause=error)


def of_command(error: DaytonaError, doing: str) -> RolloutFailure:
    """Of a call to a sandbox that still exists."""
    refused = isinstance(error, DaytonaAuthenticationError | DaytonaForbiddenError | DaytonaRateLimitError)
    return SandboxError(f"Daytona could not {doing}: {error}", maybe_ran=not refused, cause=error)
