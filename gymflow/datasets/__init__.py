"""Datasets: the rows of an environment's splits, as tasks.

selected = load_split(entry, manifest, "test", task_fields=verifier.task_fields, limit=100)
for row in selected.rows:
    row.task_id, row.task
"""

from gymflow.datasets.rows import (
    Row,
    RowFault,
    Selected,
    load_split,
    prompt_of,
    read_split,
    split_digest,
    split_file,
)

__all__ = ["Row", "RowFault", "Selected", "load_split", "prompt_of", "read_split", "split_digest", "split_file"]
