"""What can go wrong, told apart by who has to act.

`InputError` is the user's to mend and ends a command with exit code 2 and one message. `RolloutFailure` is infrastructure:
the rollout gets no reward, its kind says whether another attempt may help. `StopEpisode` is neither: the agent used up a
declared budget, and its evidence is scored as it stands.
"""

from gymflow.contracts.outcome import FailureKind, StopReason


class InputError(Exception):
    """Bad input or configuration. The message names the file, line and field where there is one, and what to do."""


class RunLocked(InputError):
    """Another live process writes this run."""


class RunIncomplete(Exception):
    """The run ended before all planned rollouts were durable; it can be resumed. Exit code 3."""


class DiskRefused(InputError, RunIncomplete):
    """The disk does not take what is to be stored. What was acknowledged is safe; once there is room the run goes on."""


class GateFailed(Exception):
    """A gate did not hold. Exit code 4. `held`: what it was held against, where that is not stored."""

    def __init__(self, message: str, held: object = None) -> None:
        super().__init__(message)
        self.held = held


class RolloutFailure(Exception):
    """Infrastructure failed under a rollout; never a reward of zero."""

    def __init__(self, kind: FailureKind, message: str, *, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.__cause__ = cause


class StopEpisode(Exception):
    """A declared budget is exhausted, or the agent's own doing ended the episode; the evidence at hand is scored."""

    def __init__(self, reason: StopReason, detail: str = "") -> None:
        super().__init__(detail or reason.value)
        self.reason = reason
        self.detail = detail
