"""Other tools' files are read field by field. Where one has not the shape of its format, the user is told in which rollout."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from gymflow.contracts.task import Task
from gymflow.errors import InputError
from gymflow.interop.rollouts import ForeignRollout, OwnRollout


def of_shape(
    rollouts: Iterator[ForeignRollout | OwnRollout], file: Path, format: str
) -> Iterator[ForeignRollout | OwnRollout]:
    """The same rollouts. Raises InputError with the file and the rollout's number, from 1, for one that cannot be read."""
    number = 1
    while True:
        try:
            rollout = next(rollouts)
            if isinstance(rollout, ForeignRollout):
                _require(rollout)
        except StopIteration:
            return
        except InputError:
            raise
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(
                f"{file}: rollout {number} has not the shape of {format}: {_said(error)}; mend it, or leave it out"
            ) from error
        yield rollout
        number += 1


def _require(rollout: ForeignRollout) -> None:
    """What is taken over as the file has it."""
    Task.model_validate(rollout.task)
    if rollout.repeat is not None and type(rollout.repeat) is not int:
        raise TypeError(f"its number among the repeats is {rollout.repeat!r}")
    if rollout.snapshot is not None and not isinstance(rollout.snapshot, dict):
        raise TypeError(f"its state is {rollout.snapshot!r}, and no object")


def _said(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
