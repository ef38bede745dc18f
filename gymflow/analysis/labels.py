"""People's labels beside a verdict set: how far its verifier, such as a judge, agrees with them.

A file of JSON Lines: `{"rollout_id": "run-17", "label": true}`, or `{"task_id": "q3", "repeat": 0, "label": false}` with `repeat`
0 where it is left out. A rollout that is labelled twice counts once, and has to have the same label.
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
select rollout_id, task_id, repeat, passed, outcome = 'scored' as scored from outcomes
where run_id = $run and verdict_set = $verdict_set
"""


def agreement_with(connection: duckdb.DuckDBPyConnection, run_id: str, verdict_set: str, file: str) -> Agreement:
    """Agreement of the set's passes with the labels of a file. InputError names a line that is no label, is about a
    rollout that the run has not, or contradicts another."""
    found = rows(connection, _VERDICTS, {"run": run_id, "verdict_set": verdict_set})
    by_id = {row["rollout_id"]: row for row in found}
    by_task: dict[tuple[str, int], list[str]] = {}
    for row in found:
        by_task.setdefault((row["task_id"], row["repeat"]), []).append(row["rollout_id"])
    labels = 0
    labelled: dict[str, tuple[bool, str]] = {}
    for where, keyed, label in _labels(Path(file)):
        if isinstance(keyed, str) and keyed not in by_id:
            raise InputError(f"{where}: run {run_id} has no rollout {keyed!r}")
        about = [keyed] if isinstance(keyed, str) else by_task.get(keyed, [])
        labels += not about or any(name not in labelled for name in about)
        for name in about:
            before, place = labelled.setdefault(name, (label, where))
            if before != label:
                raise InputError(f"{where}: {name} has the other label at {place}; keep one of them")
    pairs = [(by_id[name]["passed"], label) for name, (label, _) in labelled.items() if by_id[name]["scored"]]
    if labels and not pairs:
        raise InputError(f"{file}: none of its {labels} labels is about a scored rollout of run {run_id}")
    kappa, counts = cohen_kappa(pairs), detection(pairs)
    passed = [row["passed"] for row in found if row["scored"]]
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


def _labels(file: Path) -> Iterator[tuple[str, str | tuple[str, int], bool]]:
    """Where each stands, which rollouts it is about, and whether they pass."""
    for where, row in rows_of(file):
        label: Any = row.get("label")
        if label not in (True, False, 0, 1):
            raise InputError(f"{where}: label: write true or false, not {label!r}")
        if isinstance(row.get("rollout_id"), str):
            yield where, row["rollout_id"], bool(label)
        elif isinstance(row.get("task_id"), str | int):
            repeat = row.get("repeat", 0)
            if not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 0:
                raise InputError(f"{where}: repeat: write a whole number from 0, not {repeat!r}")
            yield where, (str(row["task_id"]), repeat), bool(label)
        else:
            raise InputError(f"{where}: name the rollout: rollout_id, or task_id and repeat")
