"""What health and diagnosis cost: `python -m tests.perf.bench_analysis [N]`.

Runs of N / 4 and of N single-turn rollouts, half of which fail, are stored; then each analysis of each runs in a process of its own,
whose wall time, CPU and peak memory are printed, and the ratio of the two peaks.
"""

import asyncio
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gymflow.analysis.diagnose import diagnose
from gymflow.analysis.health import examine
from gymflow.contracts.run import EnvironmentOfRun, VerdictSet
from gymflow.registry import Registry
from gymflow.store import Store
from tests.perf.bench_store import JUDGED, new_run, planned, record, verdict

RUN = "bench"
AT_ONCE = 256


async def fill(store: Store, count: int) -> None:
    """The run, of the real environment, so that failed rollouts are scored leniently."""
    new_run(store, RUN, count)
    manifest = Registry().environment("mcqa").manifest
    mcqa = EnvironmentOfRun(reference="mcqa", split="test", manifest=manifest)
    rows = iter(planned(count))
    async with store.writer(RUN) as writer:
        store.update_run(store.document(RUN).model_copy(update={"environments": {"mcqa": mcqa}}))
        await writer.add_verdict_set(VerdictSet(name="first", created_at=0.0, judged={"mcqa": JUDGED}))

        async def commit_some() -> None:
            for row in rows:
                await writer.commit(record(RUN, row), [verdict(RUN, row.plan_index, "first")])

        await asyncio.gather(*(commit_some() for _ in range(AT_ONCE)))
        await writer.finish()


def health(root: Path) -> str:
    """All checks."""
    report = examine(Store(root), RUN)
    return f"{sum(check.findings for check in report.checks)} findings"


def diagnosis(root: Path) -> str:
    """All labels."""
    report = asyncio.run(diagnose(Store(root), RUN))
    return f"{report.labelled} labels, {report.citations} citations"


def measured(what: Callable[[Path], str], root: Path, rollouts: int) -> float:
    """Print what it says and what it cost; the peak memory in MB."""
    wall = time.perf_counter()
    said = what(root)
    wall = time.perf_counter() - wall
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    print(f"{what.__name__:<9} {rollouts:>8} rollouts {wall:7.1f} s wall {cpu:7.1f} s CPU {peak:6.0f} MB peak   {said}")
    return peak


def main(rollouts: int) -> None:
    """Both analyses of both runs."""
    with tempfile.TemporaryDirectory() as folder:
        sizes = (rollouts // 4, rollouts)
        for size in sizes:
            asyncio.run(fill(Store(Path(folder, str(size))), size))
        for analysis in (health, diagnosis):
            peaks = []
            for size in sizes:
                with multiprocessing.get_context("spawn").Pool(1) as pool:  # so that no peak hides another
                    peaks.append(pool.apply(measured, (analysis, Path(folder, str(size)), size)))
            print(f"{analysis.__name__:<9} {peaks[1] / peaks[0]:.2f} times the memory at 4 times the rollouts")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
