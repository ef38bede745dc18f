"""Reports that lie with a run: written whole, named after what they are about."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gymflow.contracts.base import Contract
from gymflow.store import Store
from gymflow.store.files import Files


def write_report(store: Store, run_id: str, name: str, report: Contract) -> Path:
    """`reports/<name>.json` of a run."""
    path = _folder(store, run_id) / f"{name}.json"
    Files().replace(path, report.model_dump_json(indent=1).encode())
    return path


def write_table(store: Store, run_id: str, name: str, table: pa.Table) -> Path:
    """`reports/<name>.parquet` of a run."""
    path = _folder(store, run_id) / f"{name}.parquet"
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    Files().replace(path, sink.getvalue().to_pybytes())
    return path


def _folder(store: Store, run_id: str) -> Path:
    folder = store.layout.run(run_id).reports
    Files().make_folder(folder)
    return folder
