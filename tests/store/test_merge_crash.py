"""A merge dies at every durable operation in turn: the sources stay as they are, and merging again gives the same bytes."""

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymflow.store import Store
from gymflow.store.files import Files
from gymflow.store.merge import merge_runs

COUNT = 3
KILLED = 77


def write(store: Store, build: Any, run_id: str, planned: list[int]) -> None:
    store.create_run(build.document(run_id, 1.0), map(build.task, range(2 * COUNT)), map(build.planned, planned))

    async def fill() -> None:
        async with store.writer(run_id) as writer:
            await writer.add_verdict_set(build.verdict_set("first"))
            for index in planned:
                await writer.commit(build.record(run_id, index), [build.verdict(run_id, index)])
            await writer.finish()

    asyncio.run(fill())


def content(store: Store, run_id: str) -> dict[str, bytes]:
    """Its files, the lease of a process that died left aside."""
    layout = store.layout.run(run_id)
    paths = [path for path in layout.folder.rglob("*") if path.is_file() and path != layout.lease]
    return {str(path.relative_to(layout.folder)): path.read_bytes() for path in paths}


def died(root: Path, files: Files) -> bool:
    """Whether a process that merges with these files was killed before its end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            merge_runs(Store(root), ["s0", "s1"], "m", files)
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, KILLED)
    return status == KILLED


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True], ids=["into a new run", "into one merged before"])
def test_a_merge_that_was_killed_is_made_again(
    tmp_path: Path, build: Any, dying: Callable[[int, bool], Files], again: bool
) -> None:
    template = tmp_path / "template"
    store = Store(template)
    for run_id, planned in (("s0", range(COUNT)), ("s1", range(COUNT, 2 * COUNT))):
        write(store, build, run_id, list(planned))
    shutil.copytree(template, tmp_path / "whole")
    whole = Store(tmp_path / "whole")
    merge_runs(whole, ["s0", "s1"], "m")
    if again:
        merge_runs(store, ["s0"], "m")
    for number in range(1, 200):
        root = tmp_path / str(number)
        shutil.copytree(template, root)
        killed = died(root, dying(number, False))
        after = Store(root)
        assert all(content(after, run_id) == content(store, run_id) for run_id in ("s0", "s1"))
        left = content(after, "m")
        assert left in ({}, content(store, "m"), content(whole, "m"))
        if not killed:
            assert left == content(whole, "m") and number > 10
            return
        assert {document.run_id for document in after.runs()} <= {"s0", "s1", "m"}
        merge_runs(after, ["s1", "s0"], "m")
        assert content(after, "m") == content(whole, "m")
        shutil.rmtree(root)
    raise AssertionError("the merge never came to its end")
