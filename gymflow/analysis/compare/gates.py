"""Gates: conditions on a comparison that a release has to meet.

score >= -0.01                  the candidate's score less the base's
score.low >= -0.03              the lower end of that difference's interval (non-inferiority)
score[tag=hard] >= -0.05        over the tasks of one slice
absolute pass_rate >= 80%       the candidate's own value, over all of its tasks
coverage >= 95%                 the share of the candidate's planned rollouts that are scored
cost_usd <= +10%                the difference in percent of the base
lost <= 3                       tasks that pass on the base, and not on the candidate

A condition on differences does not hold where fewer than half of the common tasks are scored on both sides.
"""

import operator
import re
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from gymflow.contracts.comparison import CandidateLine, Difference, GateResult
from gymflow.documents import load_document
from gymflow.errors import InputError
from gymflow.metrics.magnitudes import TOO_LARGE
from gymflow.suggest import did_you_mean

COSTS = ("prompt_tokens", "completion_tokens", "cost_usd", "turns", "duration_s")
QUALITY = ("score", "pass_rate")
COUNTS = ("gained", "lost")
COVERAGE = "coverage"
OPERATORS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_FORM = re.compile(
    r"(?P<absolute>absolute\s+)?(?P<metric>\w+)(?:\.(?P<end>\w+))?(?:\[(?P<by>[^=\]]+)=(?P<value>[^\]]*)\])?"
    r"\s*(?P<operator>>=|<=|>|<)\s*(?P<bound>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<percent>%)?"
)


@dataclass(frozen=True, slots=True)
class Gate:
    """A parsed condition."""

    text: str
    metric: str
    operator: str
    bound: float
    percent: bool = False
    absolute: bool = False
    end: str | None = None
    slice: tuple[str, str] | None = None

    def judge(self, line: CandidateLine) -> GateResult:
        """Whether it holds for a candidate. What is undefined, or rests on fewer than half of the pairs, does not hold."""
        if self.absolute or self.metric == COVERAGE:
            observed, reason = self._of_candidate(line)
        else:
            observed, reason = self._observed(line)
            if line.overlap.scored * 2 < line.overlap.tasks:
                reason = f"only {line.overlap.scored} of {line.overlap.tasks} common tasks are scored on both sides"
        passed = observed is not None and reason is None and bool(OPERATORS[self.operator](observed, self.bound))
        return GateResult(gate=self.text, run_id=line.run_id, observed=observed, passed=passed, reason=reason)

    def _of_candidate(self, line: CandidateLine) -> tuple[float | None, str | None]:
        """Its own value, whatever the base has."""
        by, value = self.slice or (None, None)
        own = next((one for one in line.alone if (one.by, one.value) == (by, value)), None)
        if own is None:
            return None, f"no task is in {by}={value}"
        found = own.costs[self.metric] if self.metric in COSTS else getattr(own, self.metric)
        if found is None:
            return None, "no task has it"
        return _known(100 * found if self.percent else found)

    def _observed(self, line: CandidateLine) -> tuple[float | None, str | None]:
        if self.metric in COUNTS:
            return float(getattr(line.flips, self.metric)), None
        found = self._difference(line)
        if found is None:
            return None, f"no task is in {'='.join(self.slice or ())}"
        value = getattr(found.interval, self.end, None) if self.end else found.difference
        if value is None:
            return None, found.reason or "it is not defined"
        if not self.percent:
            return value, None
        if found.base:
            return _known(100 * (value / abs(found.base)))
        return (0.0, None) if value == 0 else (None, "the base is 0")  # nothing of nothing is no change

    def _difference(self, line: CandidateLine) -> Difference | None:
        if self.slice is not None:
            cut = next((one for one in line.slices if (one.by, one.value) == self.slice), None)
            return None if cut is None else getattr(cut, self.metric)
        return line.costs.get(self.metric) or getattr(line, self.metric)


def _known(observed: float) -> tuple[float | None, str | None]:
    return (observed, None) if isfinite(observed) else (None, TOO_LARGE)


def parse_gate(text: str, source: str = "--gate") -> Gate:
    """One condition in the form above. Raises InputError naming what is wrong with it."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise InputError(f'{source} {text!r}: write METRIC OPERATOR NUMBER, such as "score >= -0.01"')
    gate = Gate(
        text=text.strip(),
        metric=found["metric"],
        operator=found["operator"],
        bound=float(found["bound"]),
        percent=found["percent"] is not None,
        absolute=found["absolute"] is not None,
        end=found["end"],
        slice=(found["by"].strip(), found["value"].strip()) if found["by"] else None,
    )
    known = [*QUALITY, *COSTS, *COUNTS, COVERAGE]
    if gate.metric not in known:
        raise InputError(f"{source} {text!r}: no metric {gate.metric!r}; {did_you_mean(gate.metric, known)}")
    if gate.end not in (None, "low", "high"):
        raise InputError(f"{source} {text!r}: an interval has ends .low and .high, not .{gate.end}")
    if gate.end and gate.absolute:
        raise InputError(f"{source} {text!r}: .{gate.end} is an end of the difference's interval; leave out absolute")
    if gate.slice and gate.metric not in QUALITY:
        raise InputError(f"{source} {text!r}: only {' and '.join(QUALITY)} are compared by slices")
    if gate.metric == COVERAGE and (gate.absolute or gate.end):
        raise InputError(f"{source} {text!r}: coverage is the candidate's own share and stands alone")
    if gate.metric in COUNTS and (gate.percent or gate.absolute or gate.end):
        raise InputError(f"{source} {text!r}: {gate.metric} is a number of tasks and stands alone")
    return gate


def read_gates(path: Path) -> list[Gate]:
    """A gates file (YAML): a list of conditions, or a map with the list under `gates`. Raises InputError with file and line."""
    document = load_document(path)
    mapped = isinstance(document.data, dict) and list(document.data) == ["gates"]
    listed = document.data["gates"] if mapped else document.data
    if not isinstance(listed, list) or not listed:
        raise InputError(f'{path}: write a list of conditions, such as\ngates:\n  - "score >= -0.01"')
    gates = []
    for index, text in enumerate(listed):
        place = document.places.get(("gates", index) if mapped else (index,), str(path))
        if not isinstance(text, str):
            raise InputError(f'{place}: {text!r} is no condition; write one in quotes, such as "score >= -0.01"')
        gates.append(parse_gate(text, place))
    return gates
