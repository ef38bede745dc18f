"""Validation with a cache of the test's own."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gymflow.registry import Registry
from gymflow.validation import SplitCache, ValidationReport, validate_environment


@pytest.fixture
def validated(tmp_path: Path) -> Callable[..., Awaitable[ValidationReport]]:
    """`await validated(folder, …)`: the report on an environment."""

    async def validate(folder: Path, **options: Any) -> ValidationReport:
        registry = Registry(options.pop("search_dirs", ()))
        return await validate_environment(
            registry.environment(folder), registry, cache=SplitCache(tmp_path / "cache"), **options
        )

    return validate
