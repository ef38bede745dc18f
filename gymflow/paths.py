"""Where the project's own files lie: beside the package in a checkout, inside it in a wheel."""

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
