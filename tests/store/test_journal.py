"""The journal: framing, torn tails, damage, group commit."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gymflow.errors import InputError
from gymflow.store import encoding
from gymflow.store.files import Files
from gymflow.store.journal import Fault, Journal, checks, frame, scan, torn_at

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(st.characters()), values, max_size=4),
    max_leaves=12,
)
LINES = [frame(b'"seq":%d,"text":"%s"' % (number, b"x" * number)) for number in range(4)]


def journal(folder: Path, files: Files | None = None) -> Journal:
    opened = Journal(folder, files or Files())
    opened.open(folder / "000000.jsonl")
    return opened


def ignored(durable: bool) -> None:
    pass


@given(st.dictionaries(st.text(st.characters()), JSON, min_size=1))
def test_any_value_makes_one_line_that_checks_and_reads_back(value: dict[str, Any]) -> None:
    text, flags = encoding.dumps(value)
    line = frame(b'"value":' + text)
    assert line.count(b"\n") == 1 and checks(line[:-1])
    read = encoding.loads(line[:-1], flags)["value"]
    assert encoding.dumps(read)[0] == text
    if not flags:
        assert read == value


@given(st.integers(0, sum(map(len, LINES))))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_a_journal_cut_anywhere_keeps_every_whole_line(tmp_path: Path, at: int) -> None:
    path = tmp_path / "000000.jsonl"
    path.write_bytes(b"".join(LINES)[:at])
    faults: list[Fault] = []
    kept = [line + b"\n" for _, line in scan(path, faults)]
    assert b"".join(kept) == b"".join(LINES)[: sum(map(len, kept))]
    assert faults == []
    assert torn_at(path) == (None if sum(map(len, kept)) == at else sum(map(len, kept)))


@pytest.mark.parametrize("at", range(0, sum(map(len, LINES)) + 1, 7))
async def test_rs_append_after_torn(tmp_path: Path, at: int) -> None:
    path = tmp_path / "000000.jsonl"
    whole = b"".join(LINES)
    path.write_bytes(whole[:at])
    kept = whole[: whole[:at].rfind(b"\n") + 1]
    for number in range(2):
        opened = journal(tmp_path)
        await opened.submit(LINES[number], ignored).wait()
        opened.close()
        path.write_bytes(path.read_bytes() + LINES[3][:-5])
    opened = journal(tmp_path)
    opened.close()
    assert path.read_bytes() == kept + LINES[0] + LINES[1]


def test_damage_in_the_middle_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "000000.jsonl"
    whole = b"".join(LINES)
    damaged_at = len(LINES[0]) + 25
    path.write_bytes(whole[:damaged_at] + b"\x00" + whole[damaged_at + 1 :])
    faults: list[Fault] = []
    assert [line for _, line in scan(path, faults)] == [LINES[0][:-1], LINES[2][:-1], LINES[3][:-1]]
    assert [(fault.offset, fault.length) for fault in faults] == [(len(LINES[0]), len(LINES[1]))]


async def test_a_damaged_last_line_with_its_newline_is_kept_and_appended_behind(tmp_path: Path) -> None:
    path = tmp_path / "000000.jsonl"
    path.write_bytes(LINES[0] + LINES[1].replace(b"x", b"y"))
    opened = journal(tmp_path)
    await opened.submit(LINES[2], ignored).wait()
    opened.close()
    faults: list[Fault] = []
    assert [line for _, line in scan(path, faults)] == [LINES[0][:-1], LINES[2][:-1]]
    assert len(faults) == 1


async def test_rollouts_that_wait_together_share_an_fsync(tmp_path: Path, hooked: Any) -> None:
    operations: list[str] = []
    opened = journal(tmp_path, hooked(lambda operation, *_: operations.append(operation)))
    operations.clear()
    await asyncio.gather(*(opened.submit(frame(b'"seq":%d' % n), ignored).wait() for n in range(500)))
    opened.close()
    assert operations.count("sync") <= 2
    assert sum(1 for _ in scan(tmp_path / "000000.jsonl")) == 500


async def test_a_slow_disk_does_not_stop_the_event_loop(tmp_path: Path, hooked: Any) -> None:
    def hook(operation: str, *_: Any) -> None:
        if operation == "sync":
            time.sleep(0.2)

    opened = journal(tmp_path, hooked(hook))
    written = asyncio.ensure_future(opened.submit(LINES[0], ignored).wait())
    ticks = 0
    while not written.done():
        await asyncio.sleep(0.005)
        ticks += 1
    opened.close()
    assert ticks > 10


async def test_a_segment_rotates_while_rollouts_keep_coming(tmp_path: Path) -> None:
    opened = journal(tmp_path)
    stop = False

    async def keep_writing(number: int) -> int:
        count = 0
        while not stop:
            await opened.submit(frame(b'"writer":%d,"seq":%d' % (number, count)), ignored).wait()
            count += 1
        return count

    writers = [asyncio.ensure_future(keep_writing(number)) for number in range(8)]
    await asyncio.sleep(0.05)
    await asyncio.wait_for(opened.rotate(tmp_path / "000001.jsonl"), timeout=5)
    await asyncio.sleep(0.05)
    stop = True
    written = sum(await asyncio.gather(*writers))
    opened.close()
    found = [sum(1 for _ in scan(tmp_path / name)) for name in ("000000.jsonl", "000001.jsonl")]
    assert sum(found) == written and min(found) > 0


async def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, full_disk: Callable[[int], Files]) -> None:
    opened = journal(tmp_path, full_disk(5))
    await opened.submit(LINES[0], ignored).wait()
    told: list[bool] = []
    with pytest.raises(InputError, match="no space left on the disk; every rollout reported done so far is safe"):
        for _ in range(3):
            await opened.submit(LINES[1], told.append).wait()
    with pytest.raises(InputError, match="no space left"):
        opened.submit(LINES[2], told.append)
    opened.close()
    assert told[-2:] == [False, False]
    lines = orjson.loads(b"[" + (tmp_path / "000000.jsonl").read_bytes().strip().replace(b"\n", b",") + b"]")
    assert len(lines) == 1 + told.count(True)


def test_a_line_that_was_doubled_by_hand_counts_once_and_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "000000.jsonl"
    path.write_bytes(LINES[0] + LINES[1] + LINES[1] + LINES[2])
    faults: list[Fault] = []
    assert [line + b"\n" for _, line in scan(path, faults)] == LINES[:3]
    assert [(fault.offset, fault.reason) for fault in faults] == [(len(LINES[0] + LINES[1]), "the line is there twice")]
