"""What a comparison costs: `python tests/perf/bench_compare.py [TASKS] [REPEATS]`.

Two runs of binary rollouts (default 25 000 tasks x 4 each), then of graded ones, where no two differences are equal. Imports are not
counted.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from gymflow.analysis.compare import compare
from gymflow.store import Store, connect
from tests.perf.bench_profile import measured
from tests.support.synthetic import write_run


def main(tasks: int, repeats: int) -> None:
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        chance = rng.beta(1, 1, tasks)[:, None]
        for name in ("base", "candidate"):
            write_run(store, name, rng.random((tasks, repeats)) < chance, cost_usd=0.001)
            write_run(store, f"graded-{name}", rng.random((tasks, repeats)))
        with connect(store.root) as warm:
            warm.execute("select count(*) from outcomes").fetchall()
        for kind in ("", "graded-"):
            with measured(f"compare 2 x {tasks * repeats} {kind or 'binary '}rollouts"):
                report = compare(store, f"{kind}base", [f"{kind}candidate"])
            assert report.candidates[0].score.tasks == tasks


if __name__ == "__main__":
    main(*(map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (25_000, 4)))
