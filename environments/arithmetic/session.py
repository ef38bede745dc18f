"""The calculator of the `tool` variant. It keeps no state: the same call always gives the same answer."""

from typing import Any

from gymflow.environments import Session, ToolResult

from .tasks import OPERATIONS, Problem, value

LONGEST = 30
"""Digits that an operand may have; more is refused, so that no call can ask for a multiplication of gigabytes."""


class Calculator(Session):
    """Answers `calculate(a, op, b)` for whole numbers. Plain tasks list no tool, so no call of theirs arrives here."""

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        try:
            problem = _problem(**arguments)
        except (TypeError, ValueError) as error:
            return ToolResult(f"Error: {error}", error=True)
        return ToolResult(str(value(problem)))


def _problem(a: Any = None, op: Any = None, b: Any = None, **unknown: Any) -> Problem:
    if unknown:
        raise ValueError(f"calculate takes a, op and b, not {', '.join(sorted(unknown))}")
    if op not in OPERATIONS:
        raise ValueError(f"op is one of {', '.join(OPERATIONS)}, not {op!r}")
    return Problem(_whole("a", a), op, _whole("b", b))


def _whole(name: str, number: Any) -> int:
    """JSON does not tell 7 from 7.0, so both are whole; true and "7" are not numbers."""
    if isinstance(number, bool) or not isinstance(number, int | float) or number != number // 1:
        raise ValueError(f"{name} is a whole number, not {number!r}")
    if abs(number) >= 10**LONGEST:
        raise ValueError(f"{name} has more than {LONGEST} digits")
    return int(number)
