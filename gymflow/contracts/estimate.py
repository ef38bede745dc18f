"""A number with what is known about its error."""

from typing import Literal

from pydantic import Field

from gymflow.contracts.base import Contract

Method = Literal["wilson", "t", "bootstrap", "discordant"]


class Interval(Contract):
    """An interval of the report's confidence level (default 95 %)."""

    low: float
    high: float
    method: Method


class Estimate(Contract):
    """A mean over tasks. Whatever is undefined is null, and `reason` says why."""

    value: float | None
    standard_error: float | None = None
    interval: Interval | None = None
    tasks: int = Field(description="Tasks that the value is a mean of.")
    groups: int = Field(description="Independent groups of tasks: clusters where they are given, else the tasks.")
    reason: str | None = None
