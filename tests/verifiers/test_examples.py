"""The examples in the verifiers' docstrings hold, and every verifier keeps to the contract."""

import ast
import doctest
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from gymflow.paths import shipped
from gymflow.registry import Registry

FIRST = ["composite", "episode", "exact", "json_schema", "math", "mcqa", "state", "tool_calls"]
HELPERS = {
    Path(file).stem for name in FIRST if name != "composite" for file in Registry().verifier_class(name).includes
}


@pytest.mark.parametrize("name", sorted({*FIRST, *HELPERS}))
def test_examples_in_docstrings_hold(name: str) -> None:
    module = importlib.import_module(f"gymflow.verifiers.{name}")
    result = doctest.testmod(module)
    assert result.failed == 0
    assert name.startswith("_worker") or result.attempted > 0


@pytest.mark.parametrize("name", FIRST)
def test_verifiers_are_found_and_digested_with_the_files_that_they_use(name: str) -> None:
    registry = Registry()
    cls = registry.verifier_class(name)
    assert cls.task_fields.model_json_schema()["type"] == "object"
    assert cls.__doc__ and cls.Parameters.__doc__
    assert registry.verifier_digest(name)
    source = Path(importlib.import_module(cls.__module__).__file__ or "").read_text("utf-8")
    used = _imported_helpers(source)
    assert name == "composite" or used <= set(cls.includes), "a helper that is not part of the code digest"


def test_unknown_parameters_are_refused() -> None:
    for name in FIRST:
        cls: Any = Registry().verifier_class(name)
        with pytest.raises(ValueError, match=r"extra_forbidden|Extra inputs"):
            cls.Parameters(no_such_parameter=1)


def _imported_helpers(source: str) -> set[str]:
    """Private modules that a module uses, and that these use in turn."""
    found: set[str] = set()
    pending = [source]
    while pending:
        for node in ast.walk(ast.parse(pending.pop())):
            said = node.module if isinstance(node, ast.ImportFrom) else getattr(node, "value", None)
            match = re.fullmatch(r"gymflow\.verifiers\.(_\w+)(:\w+)?", said) if isinstance(said, str) else None
            if match and f"{match[1]}.py" not in found:
                found.add(f"{match[1]}.py")
                pending.append((shipped("verifiers") / f"{match[1]}.py").read_text("utf-8"))
    return found
