"""A process that is killed before or after any request: nothing acknowledged is lost here, and what is in the bucket is a run."""

import asyncio
import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from gymflow.store import Store, remote
from gymflow.store.files import Files
from gymflow.store.remote import claim, mirror
from gymflow.store.remote.bucket import Listed, Read

pytestmark = pytest.mark.slow
URL = "s3://bucket/prefix"


class Killed(BaseException):
    """SIGKILL at this point."""


class MemoryBucket:
    """The requests of `Bucket` on a dictionary; `deadly` is the number of the one that kills, `late` once it is done."""

    def __init__(self, objects: dict[str, bytes], deadly: int | None = None, late: bool = False) -> None:
        self.url, self.objects, self.deadly, self.late = URL, objects, deadly, late
        self.requests = self.sent = 0

    @contextmanager
    def _request(self) -> Iterator[None]:
        self.requests += 1
        dies = self.deadly is not None and self.requests >= self.deadly
        if dies and not (self.late and self.requests == self.deadly):
            raise Killed
        yield
        if dies:
            raise Killed

    def _etag(self, key: str) -> str:
        return hashlib.md5(self.objects[key]).hexdigest()

    def list(self, prefix: str = "") -> dict[str, Listed]:
        with self._request():
            return {k: Listed(self._etag(k), len(self.objects[k])) for k in self.objects if k.startswith(prefix)}

    def read(self, key: str) -> Read | None:
        with self._request():
            return Read(self.objects[key], self._etag(key), 0.0) if key in self.objects else None

    def download(self, key: str, path: Path) -> str | None:
        with self._request():
            if key not in self.objects:
                return None
            path.write_bytes(self.objects[key])
            return self._etag(key)

    def upload(self, key: str, file: BinaryIO) -> str:
        with self._request():
            self.objects[key] = file.read()
        return self._etag(key)

    def upload_if(self, key: str, file: BinaryIO, etag: str | None) -> str | None:
        with self._request():
            if (self._etag(key) if key in self.objects else None) != etag:
                return None
            self.objects[key] = file.read()
        return self._etag(key)

    def put_if(self, key: str, data: bytes, etag: str | None) -> str | None:
        return self.upload_if(key, io.BytesIO(data), etag)

    def delete(self, keys: Any) -> None:
        with self._request():
            for key in keys:
                self.objects.pop(key, None)


class WhenAsked:
    """An upload that does nothing of itself."""

    def __init__(self, one: mirror.Mirror, run_id: str, held: claim.Claim) -> None:
        self.push = lambda: one.push(run_id, held)
        self.held, self.error, self.ended = held, None, False

    def stop(self) -> None:
        self.held._stop.set()

    def end(self) -> None:
        if not self.ended:
            self.ended = True
            self.push()
            self.held.release()


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(Files, "sync", lambda self, descriptor: None)
    monkeypatch.setattr(Files, "sync_file", lambda self, path: None)
    monkeypatch.setattr(mirror, "Upload", WhenAsked)
    monkeypatch.setattr(claim, "alive", lambda pid: False)  # they all are this process

    @contextmanager
    def process(name: str, bucket: MemoryBucket) -> Iterator[Store]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
            patch.setattr(remote, "_open", {})
            patch.setattr(mirror, "Bucket", lambda url: bucket)
            yield Store(URL)

    return process


async def work(store: Store, build: Any, acknowledged: set[int]) -> None:
    """Commits with uploads between them, a conversion and a merge."""
    async with store.writer("r") as writer:
        push = store._mirror._uploads["r"].push

        async def commit(*indices: int) -> None:
            for index in indices:
                if writer.status(index) is None:
                    await writer.commit(build.record("r", index), [build.verdict("r", index)])
                acknowledged.add(index)

        await writer.add_verdict_set(build.verdict_set())
        await commit(0, 1)
        push()
        store.artifacts.put(b"a patch")
        await commit(2)
        push()
        await writer.roll()
        push()
        await commit(3)
        push()
        await writer.finish()
    await asyncio.to_thread(remote.settle)


def parts_in(objects: dict[str, bytes]) -> set[str]:
    return {key.partition("/parts/")[2] for key in objects if "/parts/" in key}


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_process_is_killed_at_any_request(machines: Any, build: Any, late: bool, tmp_path: Path) -> None:
    deadly = 1
    while True:
        objects: dict[str, bytes] = {}
        acknowledged: set[int] = set()
        a, b, c = f"a{deadly}", f"b{deadly}", f"c{deadly}"
        try:
            with machines(a, MemoryBucket(objects, deadly, late)) as store:
                build.run(store, "r", 4)
                asyncio.run(work(store, build, acknowledged))
            break
        except Killed:
            pass
        with machines(b, MemoryBucket(objects)) as store:
            if "r" in store.run_ids():
                reader = store.run("r")
                assert reader.completed_indices() <= acknowledged
                assert len(list(reader.records(range(4)))) == len(reader.completed_indices())
        with machines(a, MemoryBucket(objects)) as store:
            if not store.holds("r"):
                assert not acknowledged
                build.run(store, "r", 4)
            assert store.run("r").completed_indices() == acknowledged
            asyncio.run(work(store, build, acknowledged))
        assert not list((tmp_path / a).glob("gymflow/stores/*/runs/.leftover*"))
        with machines(c, MemoryBucket(objects)) as store:
            reader = store.run("r")
            assert reader.completed_indices() == {0, 1, 2, 3}
            assert len(reader.verdicts_of(range(4))) == 4
            named = {f"{table}/{part.file}" for table, parts in reader.manifest.parts.items() for part in parts}
        assert named == parts_in(objects)
        assert not any(key.endswith("writer.lease") for key in objects)
        deadly += 1
    assert deadly > 20
