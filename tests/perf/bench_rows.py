"""How fast rows are read and validated: CPU time in one process, so that a busy machine says the same.

python tests/perf/bench_rows.py --rows 100000
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gymflow.datasets import load_rows, read_rows, source_of
from gymflow.datasets.jsonl import read_jsonl
from gymflow.registry import Registry
from gymflow.validation import SplitCache
from gymflow.validation.splits import check_split
from tests.support.environments import write_environment

OPTIONS = [{"A": "the red one"}, {"B": "the blue one"}, {"C": "the green one"}]


def main() -> None:
    """Print rows per CPU second for each layer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    count = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            {
                "task_id": f"t{n}",
                "question": f"Which of the {n} boxes is it?",
                "options": OPTIONS,
                "expected_answer": "A",
            }
            for n in range(count)
        ]
        environment = write_environment(Path(folder) / "env", rows=rows, verifier={"name": "mcqa"})
        size = (environment / "test.jsonl").stat().st_size / count
        registry = Registry()
        entry = registry.environment(environment)
        fields = registry.verifier_class("mcqa").task_fields
        source = source_of(entry, "test")
        cache = SplitCache(Path(folder) / "cache")

        def rate(name: str, work: Callable[[], object]) -> None:
            started, wall = time.process_time(), time.perf_counter()
            work()
            spent = time.process_time() - started
            print(f"{name:34}{count / spent:10,.0f} rows/CPU s   {time.perf_counter() - wall:6.2f} s wall", flush=True)

        print(f"{count} rows of {size:.0f} bytes")
        rate("json.loads alone", lambda: [json.loads(line) for line in (environment / "test.jsonl").open()])
        rate("read_jsonl (exact)", lambda: sum(1 for _ in read_jsonl(environment / "test.jsonl")))
        rate("load_rows (tasks with ids)", lambda: sum(1 for _ in load_rows(entry, "test")))
        rate("read_rows (with verifier, prompt)", lambda: sum(1 for _ in read_rows(source, entry.manifest, fields)))
        rate("check_split (with duplicates)", lambda: check_split(entry, entry.manifest, "test", fields, "", cache))


if __name__ == "__main__":
    main()
