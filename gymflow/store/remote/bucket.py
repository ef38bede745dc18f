"""Objects under a prefix of a bucket, and what a user is told when they cannot be had."""

import io
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, BinaryIO

from gymflow.errors import InputError

AT_ONCE = 64 << 20
"""Bytes up to which a file goes in one request; larger ones go in parts, which are retried one by one."""
_ABSENT = ("NoSuchKey", "404")
_NOT_MET = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
_REFUSED = (
    "AccessDenied", "AllAccessDisabled", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch", "403",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Listed:
    """An object as a listing names it."""

    etag: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Read:
    """A small object as it was read. `age_s`: seconds since it was written, by the service's own clock."""

    data: bytes
    etag: str
    age_s: float


class Bucket:
    """`s3://bucket/prefix`; credentials, region and endpoint (`AWS_ENDPOINT_URL_S3`) are boto3's to find. Every method raises
    InputError where the service refuses for good, after retries with backoff where it says 5xx or does not answer."""

    def __init__(self, url: str) -> None:
        try:
            import boto3
            from boto3.exceptions import Boto3Error
            from boto3.s3.transfer import TransferConfig
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError:
            raise InputError(f"store {url}: needs boto3; install gymflow[s3]") from None
        self.url = url
        self.requests = 0
        """HTTP requests so far, retries included."""
        self.sent = 0
        """Objects written so far."""
        self._bucket, _, prefix = url.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._errors = (BotoCoreError, Boto3Error, ClientError)
        self._transfer = TransferConfig(multipart_threshold=AT_ONCE, multipart_chunksize=AT_ONCE // 4)
        config = Config(
            retries={"mode": "standard", "total_max_attempts": 8},
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=64,
        )
        try:
            self._s3: Any = boto3.client("s3", config=config)
        except (BotoCoreError, ValueError) as error:
            raise InputError(f"store {url}: {error}") from error
        self._s3.meta.events.register("before-send.s3", self._count)

    def list(self, prefix: str = "") -> dict[str, Listed]:
        """All objects whose key begins so, by key."""
        found = {}
        with self._telling():
            pages = self._s3.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix + prefix
            )
            for page in pages:
                for entry in page.get("Contents", ()):
                    found[entry["Key"][len(self._prefix) :]] = Listed(entry["ETag"], entry["Size"])
        return found

    def read(self, key: str) -> Read | None:
        """A small object; None where there is none."""
        with self._telling():
            answer = self._get(key)
            if answer is None:
                return None
            now = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
            age = (now - answer["LastModified"]).total_seconds()
            return Read(answer["Body"].read(), answer["ETag"], age)

    def download(self, key: str, path: Path) -> str | None:
        """Write an object into a file; returns its ETag, or None where there is none."""
        with self._telling():
            answer = self._get(key)
            if answer is None:
                return None
            if answer["ContentLength"] > AT_ONCE:
                answer["Body"].close()
                self._s3.download_file(self._bucket, self._prefix + key, str(path), Config=self._transfer)
            else:
                with path.open("wb") as file:
                    shutil.copyfileobj(answer["Body"], file)
            return str(answer["ETag"])

    def upload(self, key: str, file: BinaryIO) -> str:
        """Make an object of a file, however large; returns the ETag."""
        with self._telling():
            self.sent += 1
            return self._put_large(key, file) if _size(file) > AT_ONCE else self._put(key, file)

    def upload_if(self, key: str, file: BinaryIO, etag: str | None) -> str | None:
        """The same if the object is still the one of that ETag; for None, if there is none. Of several who ask at once, one gets
        an ETag; the others get None. (Of large files it is asked for before, since a condition does not go with parts.)"""
        with self._telling():
            self.sent += 1
            if _size(file) > AT_ONCE:
                before = self._get(key)
                return self._put_large(key, file) if (before and before["ETag"]) == etag else None
            try:
                return self._put(key, file, **({"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}))
            except self._errors as error:
                if _code(error) not in (*_NOT_MET, *_ABSENT):
                    raise
            # A request that was repeated because its answer was lost may have been the one that got it.
            found = self._get(key)
            file.seek(0)
            return str(found["ETag"]) if found is not None and _equal(found["Body"], file) else None

    def put_if(self, key: str, data: bytes, etag: str | None) -> str | None:
        """The same with bytes."""
        return self.upload_if(key, io.BytesIO(data), etag)

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; one that is gone is fine."""
        with self._telling():
            for start in range(0, len(keys), 1000):  # as many as one request takes
                objects = [{"Key": self._prefix + key} for key in keys[start : start + 1000]]
                self._s3.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})

    def _put(self, key: str, file: BinaryIO, **condition: str) -> str:
        return str(self._s3.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=file, **condition)["ETag"])

    def _put_large(self, key: str, file: BinaryIO) -> str:
        self._s3.upload_fileobj(file, self._bucket, self._prefix + key, Config=self._transfer)
        return str(self._s3.head_object(Bucket=self._bucket, Key=self._prefix + key)["ETag"])

    def _get(self, key: str) -> Any:
        try:
            return self._s3.get_object(Bucket=self._bucket, Key=self._prefix + key)
        except self._errors as error:
            if _code(error) in _ABSENT:
                return None
            raise

    def _count(self, **_: Any) -> None:
        self.requests += 1

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            code = _code(error)
            if code == "NoSuchBucket":
                what = f"there is no bucket {self._bucket!r}; make it first"
            elif code in _REFUSED:
                what = f"the key was refused ({code}); check the AWS credentials and their rights"
            else:
                what = str(error)
            raise InputError(f"store {self.url}: {what}") from error


def _size(file: BinaryIO) -> int:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def _equal(one: Any, other: BinaryIO) -> bool:
    while block := one.read(1 << 20):
        if other.read(len(block)) != block:
            return False
    return not other.read(1)


def _code(error: Exception) -> str:
    answer: dict[str, Any] = getattr(error, "response", {})
    return str(answer.get("Error", {}).get("Code", ""))
