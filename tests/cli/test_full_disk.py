"""A disk that takes no more: what was acknowledged is shown, the command says how to go on, and going on samples the rest alone."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gymflow.store import connect
from tests.support.command import Gym

RUN = """
environments: [{name: mcqa, limit: 20}]
repeats: 4
limits: {concurrency: 4}
models:
  policy: {provider: scripted, parameters: {rules: [{text: The answer is (A).}]}}
"""


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """The nearest thing to a full disk that a test may do to the machine."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def durable(store: Path) -> set[tuple[str, float]]:
    with connect(store) as connection:
        return set(connection.execute("select rollout_id, started_at from rollouts").fetchall())


def test_a_full_disk_ends_the_run_incomplete_and_it_goes_on(here: Gym, store: Path, tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(RUN)
    with files_no_larger_than(100_000):
        ended = here("eval", "run", "--config", config, "--inline")
    assert ended.code == 3
    assert "cannot be written (File too large); every rollout reported done so far is safe" in ended.err
    kept = durable(store)
    assert 0 < len(kept) < 80
    assert f"{len(kept)}/80 scored" in ended.out
    ended = here("eval", "run", "--resume", "latest", "--inline")
    assert ended.code == 0 and "80/80 scored" in ended.out
    assert kept < durable(store)
