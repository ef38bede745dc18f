"""Run configurations: a YAML file and the flags that win over it."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gymflow.contracts.run import RunConfig
from gymflow.documents import Document, Key, load_document
from gymflow.errors import InputError

FLAGS = "command line"


def load_config(file: Path | None, flags: Mapping[str, Any] | None = None) -> RunConfig:
    """The configuration in a file, in flags, or in both; flags win field by field, lists are replaced.

    0, false and "" are values like any other. References such as `${env:KEY}` stay references. InputError lists every fault with
    its file, line and field.
    """
    document = load_document(file) if file else Document(FLAGS, {})
    if not isinstance(document.data, dict):
        raise InputError(f"{document.where(())}: expected keys with values, such as `environments: …`")
    places = dict(document.places)
    data = _merged(document.data, dict(flags or {}), (), places)
    return Document(document.source, data, places).validated(RunConfig)


def check_metrics(metrics: Iterable[str], repeats: int) -> None:
    """InputError for a metric over k attempts, such as pass@k, that so many repeats can never give. A run is checked when it is
    planned: only then are the flags' and the benchmark's repeats known."""
    for metric in metrics:
        match = re.fullmatch(r".+[@^](\d+)", metric)
        if match and not 1 <= int(match[1]) <= repeats:
            raise InputError(
                f"metrics: {metric} needs at least {int(match[1]) or 1} repeats, and the run has {repeats}"
            )


def _merged(below: dict[str, Any], above: Mapping[str, Any], path: Key, places: dict[Key, str]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        inner = (*path, name)
        if isinstance(value, Mapping) and isinstance(merged.get(name), dict):
            merged[name] = _merged(merged[name], value, inner, places)
        else:
            merged[name] = value
            for place in [place for place in places if place[: len(inner)] == inner]:
                del places[place]
            places[inner] = FLAGS
    return merged
