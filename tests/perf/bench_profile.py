"""What a profile costs: `python tests/perf/bench_profile.py [TASKS] [REPEATS]`.

Makes a store of binary rollouts with extracted answers, prices and one model call each (default 125 000 tasks x 8), and prints wall
and CPU time of the profile and of the scorecard, and the memory at its highest. Imports are not counted.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from gymflow.metrics.profile import profile
from gymflow.metrics.scorecard import scorecard
from gymflow.store import Store, connect
from tests.support.synthetic import write_run


@contextmanager
def measured(what: str) -> Iterator[None]:
    """Print wall and CPU time of the block, and the process's greatest memory so far."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:<44} {wall:7.2f} s   {cpu:7.2f} s CPU   {peak:7.0f} MiB at most")


def main(tasks: int, repeats: int) -> None:
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        passed = rng.random((tasks, repeats)) < rng.beta(1, 1, tasks)[:, None]
        wrong = rng.choice(["B", "C", "D", None], tasks * repeats)
        answers = np.where(passed.T.reshape(-1), "A", wrong).tolist()
        with measured(f"make {tasks * repeats} rollouts"):
            write_run(store, "r", passed, answers=answers, calls=True, cost_usd=0.001)
        with connect(store.root, runs=["r"]) as warm:
            warm.execute("select count(*) from outcomes").fetchall()
        with measured("profile"):
            report = profile(store, "r")
        with measured("scorecard"):
            scorecard(store, "r")
        [line] = report.lines
        assert line.scored == tasks * repeats and line.score.value == passed.mean()


if __name__ == "__main__":
    main(*(map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (125_000, 8)))
