"""People's labels beside a verdict set: how far its verifier, such as a judge, agrees with them.

A file of JSON Lines: `{"rollout_id": "run-17", "label": true}`, or `{"task_id": "q3", "repeat": 0, "label": false}` with `repeat`
0 where it is left out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from gymflow.contracts.reverification import Agreement
from gymflow.errors import InputError
from gymflow.interop.lines import rows_of
from gymflow.metrics.agreement import cohen_kappa, corrected_rate, detection
from gymflow.metrics.summaries import rows

_VERDICTS = """
select rollout_id, task_id, repeat, passed from outcomes
where run_id = $run and verdict_set = $verdict_set and outcome = 'scored'
"""


def agreement_with(connection: duckdb.DuckDBPyConnection, run_id: str, verdict_set: str, file: str) -> Agreement:
    """Agreement of the set's passes with the labels of a file. InputError names a line that is no label, or fits no rollout of
    the run."""
    found = rows(connection, _VERDICTS, {"run": run_id, "verdict_set": verdict_set})
    by_id = {row["rollout_id"]: row["passed"] for row in found}
    by_task: dict[tuple[str, int], list[bool]] = {}
    for row in found:
        by_task.setdefault((row["task_id"], row["repeat"]), []).append(row["passed"])
    labels = 0
    pairs: list[tuple[bool, bool]] = []
    for keyed, label in _labels(Path(file)):
        labels += 1
        judged = [by_id[keyed]] if isinstance(keyed, str) and keyed in by_id else by_task.get(keyed, [])  # type: ignore[arg-type]
        pairs += [(one, label) for one in judged]
    if labels and not pairs:
        raise InputError(f"{file}: none of its {labels} labels is about a scored rollout of run {run_id}")
    kappa, counts = cohen_kappa(pairs), detection(pairs)
    passed = [row["passed"] for row in found]
    rate = sum(passed) / len(passed) if passed else 0.0
    return Agreement(
        labels=labels,
        matched=len(pairs),
        observed=kappa.observed,
        kappa=kappa.value,
        kappa_standard_error=kappa.standard_error,
        reason=kappa.reason,
        true_pass=counts.true_pass,
        false_pass=counts.false_pass,
        false_fail=counts.false_fail,
        true_fail=counts.true_fail,
        sensitivity=counts.sensitivity,
        specificity=counts.specificity,
        corrected_pass_rate=corrected_rate(rate, counts.sensitivity, counts.specificity),
    )


def _labels(file: Path) -> Iterator[tuple[str | tuple[str, int], bool]]:
    for where, row in rows_of(file):
        label: Any = row.get("label")
        if label not in (True, False, 0, 1):
            raise InputError(f"{where}: label: write true or false, not {label!r}")
        if isinstance(row.get("rollout_id"), str):
            yield row["rollout_id"], bool(label)
        elif isinstance(row.get("task_id"), str | int):
            yield (str(row["task_id"]), int(row.get("repeat") or 0)), bool(label)
        else:
            raise InputError(f"{where}: name the rollout: rollout_id, or task_id and repeat")
