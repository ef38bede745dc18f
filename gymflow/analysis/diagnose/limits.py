"""The limits of the rules, from the file beside this module."""

from importlib.resources import files

import yaml
from pydantic import Field

from gymflow.contracts.base import Contract


class Limits(Contract):
    """What each means is said in limits.yaml."""

    same_call_times: int = Field(ge=2)
    same_call_share: float = Field(gt=0, le=1)
    repetition_chars: int = Field(ge=1)
    repetition_times: int = Field(ge=2)
    suspect_repeats: int = Field(ge=2)
    suspect_reliability: float = Field(ge=0, le=1)
    giving_up: str = Field(description="A regular expression (RE2); case is ignored.")
    examples: int = Field(ge=1)
    divergences: int = Field(ge=0)
    readings: int = Field(ge=0)


def shipped_limits() -> Limits:
    """Those of limits.yaml."""
    return Limits.model_validate(yaml.safe_load(files(__package__).joinpath("limits.yaml").read_text()))
