"""The thresholds of the checks, from the file beside this module or one of the user's."""

from importlib.resources import files
from pathlib import Path

import yaml
from pydantic import Field, ValidationError

from gymflow.contracts.base import Contract
from gymflow.errors import InputError


class Thresholds(Contract):
    """What each means is said in thresholds.yaml."""

    repetition_chars: int = Field(ge=1)
    repetition_times: int = Field(ge=2)
    same_call_times: int = Field(ge=2)
    same_call_share: float = Field(gt=0, le=1, allow_inf_nan=False)
    same_reasoning_chars: int = Field(ge=1)
    same_reasoning_times: int = Field(ge=2)
    tool_error_share: float = Field(ge=0, le=1, allow_inf_nan=False)
    identical_chars: int = Field(ge=1)
    clock_skew_s: float = Field(ge=0, allow_inf_nan=False)


def load_thresholds(path: Path | None = None) -> Thresholds:
    """The shipped thresholds with what `path` changes. InputError names the entry that is wrong."""
    values = yaml.safe_load(files(__package__).joinpath("thresholds.yaml").read_text())
    if path is not None:
        try:
            changed = yaml.safe_load(path.read_text()) or {}
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise InputError(f"{path}: {error}") from None
        if not isinstance(changed, dict):
            raise InputError(f"{path}: a mapping of thresholds, such as `same_call_times: 3`")
        values |= changed
    try:
        return Thresholds.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"{path}: {where}: {first['msg']}; known: {', '.join(Thresholds.model_fields)}") from None
