"""What a comparison costs: `python tests/perf/bench_compare.py [TASKS] [REPEATS]`.

Two runs of binary rollouts (default 25 000 tasks x 4 each, and a quarter of it), then of graded ones, where no two differences are
equal: each in a process of its own, with the ratio of memory of the two sizes. Imports are not counted in the times.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from gymflow.analysis.compare import compare
from gymflow.store import Store
from tests.perf.bench_profile import apart, measured, peak_of
from tests.support.synthetic import write_run


def make(folder: str, tasks: int, repeats: int) -> None:
    """Both sides have the same chances."""
    rng = np.random.default_rng(1)
    store = Store(folder)
    chance = rng.beta(1, 1, tasks)[:, None]
    for name in ("base", "candidate"):
        write_run(store, f"{tasks}-{name}", rng.random((tasks, repeats)) < chance, cost_usd=0.001)
        write_run(store, f"{tasks}-graded-{name}", rng.random((tasks, repeats)))


def in_comparison(folder: str, size: int, repeats: int, kind: str) -> None:
    """One comparison, after a tiny one: imports are not counted."""
    store = Store(folder)
    compare(store, "10-base", ["10-candidate"])
    with measured(f"compare 2 x {size * repeats} {kind or 'binary-'}rollouts"):
        report = compare(store, f"{size}-{kind}base", [f"{size}-{kind}candidate"])
    assert report.candidates[0].score.tasks == size


def main(tasks: int, repeats: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for size in (10, tasks // 4, tasks):
            apart(make, folder, size, repeats)
        for kind in ("", "graded-"):
            small, large = (peak_of(in_comparison, folder, size, repeats, kind) for size in (tasks // 4, tasks))
            print(f"{'':<44} {large / small:.2f} times the memory at 4 times the rollouts")


if __name__ == "__main__":
    main(*(map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (25_000, 4)))
