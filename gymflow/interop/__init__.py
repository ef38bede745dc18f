"""Other tools' rollouts, in and out: a format is a module with `read` and `write`."""

from importlib import import_module
from typing import Any

from gymflow.errors import InputError
from gymflow.suggest import did_you_mean

IMPORTED = "imported"
"""Split, harness and model provider of rollouts that were not sampled here."""

FORMATS = {
    "nemo-gym": ("nemo_gym", "NVIDIA NeMo Gym rollouts, JSON Lines"),
    "ng-trajectory": ("ng_trajectory", "NeMo Gym rollouts with their trajectory records, JSON Lines"),
    "atif": ("atif", "Agent Trajectory Interchange Format (Harbor), JSON, one file or a folder"),
    "inspect": ("inspect_log", "Inspect AI logs, .eval or .json"),
}
"""Name -> module, and what it is in a few words."""


def format_module(name: str) -> Any:
    """The module of a format. InputError with the nearest name for one that does not exist."""
    if name not in FORMATS:
        raise InputError(f"there is no format {name!r}; {did_you_mean(name, FORMATS)}")
    return import_module(f"gymflow.interop.{FORMATS[name][0]}")
