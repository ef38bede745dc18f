"""Requests to a bucket: conditions, lost answers, large files, and what a user is told."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gymflow.errors import InputError
from gymflow.store import Store
from gymflow.store.remote import bucket as buckets
from gymflow.store.remote.bucket import Bucket


def test_of_several_who_put_on_one_condition_one_gets_it(bucket: Bucket) -> None:
    with ThreadPoolExecutor(4) as pool:
        first = list(pool.map(lambda n: bucket.put_if("k", b"%d" % n, None), range(4)))
        (etag,) = filter(None, first)
        second = list(pool.map(lambda n: bucket.put_if("k", b"%d again" % n, etag), range(4)))
    assert sum(one is not None for one in second) == 1


@pytest.mark.parametrize("exists", [False, True])
def test_a_conditional_put_whose_answer_was_lost_is_known_to_have_been_done(
    bucket: Bucket, service: Any, exists: bool
) -> None:
    etag = bucket.upload("k", io.BytesIO(b"before")) if exists else None
    answers = iter([True])
    service.lose = lambda method, path: method == "PUT" and next(answers, False)
    assert bucket.put_if("k", b"ours", etag) is not None
    assert service.refused == 1
    assert bucket.put_if("k", b"another's", None) is None


def test_a_large_file_goes_in_parts_and_comes_back_as_it_was(
    bucket: Bucket, service: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "AT_ONCE", 20 << 20)
    small_parts = Bucket(bucket.url)
    data = b"0123456789abcdef" * (11 << 17)
    (tmp_path / "large").write_bytes(data)
    with (tmp_path / "large").open("rb") as file:
        etag = small_parts.upload("large", file)
    assert any("partNumber" in path for _, path in service.seen)
    assert small_parts.list()["large"] == buckets.Listed(etag, len(data))
    assert small_parts.download("large", tmp_path / "back") == etag
    assert (tmp_path / "back").read_bytes() == data


def test_a_listing_longer_than_a_page_is_whole(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket._s3.meta.events.register(
        "before-parameter-build.s3.ListObjectsV2", lambda params, **_: params.update(MaxKeys=2)
    )
    for number in range(5):
        bucket.upload(f"runs/{number}", io.BytesIO())
    assert list(bucket.list("runs/")) == [f"runs/{number}" for number in range(5)]


def test_what_is_not_there_is_none(bucket: Bucket, tmp_path: Any) -> None:
    assert bucket.read("nothing") is None
    assert bucket.download("nothing", tmp_path / "file") is None
    assert not (tmp_path / "file").exists()
    bucket.delete(["nothing"])


@pytest.mark.parametrize(("code", "said"), [("AccessDenied", "the key was refused"), ("NoSuchBucket", "make it first")])
def test_a_service_that_refuses_is_told_in_one_sentence(bucket: Bucket, service: Any, code: str, said: str) -> None:
    service.status, service.code = 403 if code == "AccessDenied" else 404, code
    service.refuse = lambda method, path: True
    for attempt in (
        bucket.list,
        lambda: bucket.read("k"),
        lambda: bucket.put_if("k", b"", None),
        lambda: bucket.delete(["k"]),
    ):
        with pytest.raises(InputError, match=f"^store s3://.*{said}"):
            attempt()


def test_without_boto3_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(InputError, match=r"install gymflow\[s3\]"):
        Bucket("s3://bucket/prefix")


@pytest.mark.parametrize("address", ["s3://", "s3:///prefix"])
def test_an_address_without_a_bucket_is_refused(address: str) -> None:
    with pytest.raises(InputError, match=f"^store '{address}' names no bucket; write s3://bucket/prefix"):
        Store(address)
