"""Datasets: the rows of an environment's splits, as tasks.

for task in load_rows(entry, "test"):
    items = rendered(task, manifest)
"""

from gymflow.datasets.prompt import rendered
from gymflow.datasets.rows import Row, RowFault, load_rows, read_rows
from gymflow.datasets.source import Source, dataset_digest, source_of

__all__ = ["Row", "RowFault", "Source", "dataset_digest", "load_rows", "read_rows", "rendered", "source_of"]
