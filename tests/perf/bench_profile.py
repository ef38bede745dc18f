"""What a profile costs: `python tests/perf/bench_profile.py [TASKS] [REPEATS]`.

Makes runs of binary rollouts with extracted answers, prices and one model call each (default 125 000 tasks x 8, and a quarter of
it), and prints wall and CPU time of the profile and of the scorecard, and the memory at its highest: each in a process of its own, so
that none hides another, and with the ratio of the two sizes. Imports are not counted in the times.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from gymflow.metrics.profile import profile
from gymflow.metrics.scorecard import scorecard
from gymflow.store import Store
from tests.support.synthetic import write_run


@contextmanager
def measured(what: str) -> Iterator[None]:
    """Print wall and CPU time of the block, and the process's greatest memory so far."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:<44} {wall:7.2f} s   {cpu:7.2f} s CPU   {peak:7.0f} MiB at most")


def apart(function: Callable[..., None], *arguments: object) -> None:
    """Call a function in a process of its own, so that its memory is not counted here."""
    process = get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == 0


def make(folder: str, run_id: str, tasks: int, repeats: int) -> None:
    """A run in which every second rollout passes, more or less."""
    rng = np.random.default_rng(1)
    passed = rng.random((tasks, repeats)) < rng.beta(1, 1, tasks)[:, None]
    wrong = rng.choice(np.array(["B", "C", "D", None], object), tasks * repeats)
    answers = np.where(passed.T.reshape(-1), "A", wrong).tolist()
    with measured(f"make {tasks * repeats} rollouts"):
        write_run(Store(folder), run_id, passed, answers=answers, calls=True, cost_usd=0.001)


def peak_of(function: Callable[..., None], *arguments: object) -> float:
    """Call a function in a process of its own; the greatest memory that it had, in MiB."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_then_peak, (function, arguments))


def _then_peak(function: Callable[..., None], arguments: tuple[object, ...]) -> float:
    function(*arguments)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_profile(folder: str, run_id: str, rollouts: int) -> None:
    """The profile of a run, after that of a tiny one: imports are not counted."""
    store = Store(folder)
    profile(store, "tiny")
    with measured(f"profile of {rollouts} rollouts"):
        report = profile(store, run_id)
    assert report.lines[0].scored == rollouts


def in_scorecard(folder: str, run_id: str, rollouts: int) -> None:
    """The scorecard of a run, likewise."""
    store = Store(folder)
    scorecard(store, "tiny")
    with measured(f"scorecard of {rollouts} rollouts"):
        scorecard(store, run_id)


def main(tasks: int, repeats: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sizes = {"tiny": 10, "quarter": tasks // 4, "whole": tasks}
        for name, size in sizes.items():
            apart(make, folder, name, size, repeats)
        for function in (in_profile, in_scorecard):
            small, large = (peak_of(function, folder, name, sizes[name] * repeats) for name in ("quarter", "whole"))
            print(f"{'':<44} {large / small:.2f} times the memory at 4 times the rollouts")


if __name__ == "__main__":
    main(*(map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (125_000, 8)))
