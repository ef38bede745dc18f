"""Where things lie: the project's own files (beside the package in a checkout, inside it in a wheel), and the store."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def shipped(folder: str) -> Path:
    """The folder `environments`, `harnesses`, `verifiers`, `data` or `deployments` that came with this installation."""
    beside = PACKAGE.parent / folder
    if (PACKAGE.parent / "pyproject.toml").is_file() and beside.is_dir():
        return beside
    return PACKAGE / "_shipped" / folder


def data_dir() -> Path:
    """Datasets and the embedded model."""
    return shipped("data")


def store_root(given: str | Path | None = None) -> str:
    """The store to use: the given one, else `$GYMFLOW_STORE`, else `./gymflow-store`."""
    return str(given or os.environ.get("GYMFLOW_STORE") or "gymflow-store")


def absolute_store_root(given: str | Path | None = None) -> str:
    """The same for a process in another folder; a URL is what it is."""
    root = store_root(given)
    return root.rstrip("/") if "://" in root else str(Path(root).expanduser().absolute())
