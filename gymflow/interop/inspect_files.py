"""The two files that an Inspect log can be: a JSON document, or a ZIP archive with a header and one entry a sample."""

import contextlib
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
import pyarrow as pa

from gymflow.errors import InputError
from gymflow.store.encoding import dumps

VERSION = 2
ZSTANDARD = 93
"""ZIP's number for a method that Python's zipfile knows only from 3.14 on."""
MOST_BYTES = 1 << 30
"""Of one entry, unpacked."""

Row = dict[str, Any]


@dataclass(slots=True)
class LogFile:
    """A log whose header was read; samples come one by one."""

    file: Path
    header: Row
    document: Row | None = None

    @property
    def eval(self) -> Row:
        """What was evaluated."""
        found: Row = self.header.get("eval") or {}
        return found

    @property
    def headline(self) -> str | None:
        """The scorer whose metric the log puts first."""
        results = self.header.get("results") or {}
        found = (results.get("headline") or {}).get("score")
        scores = results.get("scores") or []
        return found or (scores[0].get("name") if scores else None)

    def samples(self) -> Iterator[tuple[str, Row]]:
        """Name and content of every sample."""
        if self.document is not None:
            for sample in self.document.get("samples") or ():
                yield f"{sample.get('id')} epoch {sample.get('epoch')}", sample
            return
        with _archive(self.file) as archive:
            for info in archive.infolist():
                if info.filename.startswith("samples/") and info.filename.endswith(".json"):
                    yield info.filename.removeprefix("samples/").removesuffix(".json"), _entry(self.file, archive, info)


def open_log(file: Path) -> LogFile:
    """Read a log's header. InputError for what is no log of version 2."""
    if zipfile.is_zipfile(file):
        with _archive(file) as archive:
            names = set(archive.namelist())
            name = next((one for one in ("header.json", "_journal/start.json") if one in names), None)
            if name is None:
                raise InputError(f"{file}: no header.json in it; this is no log of Inspect")
            log = LogFile(file, _entry(file, archive, archive.getinfo(name)))
    else:
        try:
            document = orjson.loads(file.read_bytes())
        except OSError as error:
            raise InputError(f"{file}: {error.strerror or error}") from error
        except orjson.JSONDecodeError as error:
            raise InputError(f"{file}: neither an .eval archive nor JSON: {error}") from None
        log = LogFile(file, document, document)
    if not isinstance(log.header, dict) or log.header.get("version") != VERSION or "eval" not in log.header:
        raise InputError(f"{file}: version: no log of Inspect of version {VERSION}")
    return log


@contextlib.contextmanager
def _archive(file: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{file}: cannot be read: {error}") from error


def _entry(file: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Row:
    if info.file_size > MOST_BYTES:
        raise InputError(f"{file}: {info.filename} is larger than {MOST_BYTES} bytes")
    try:
        data = _zstandard(file, info) if info.compress_type == ZSTANDARD else archive.read(info)
        value = orjson.loads(data)
    except (NotImplementedError, zipfile.BadZipFile, OSError, orjson.JSONDecodeError, struct.error) as error:
        raise InputError(f"{file}: {info.filename}: cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{file}: {info.filename}: a JSON object is needed")
    return value


def _zstandard(file: Path, info: zipfile.ZipInfo) -> bytes:
    """The bytes of an entry: its data stands behind a local header of 30 bytes, a name and extra fields."""
    with file.open("rb") as stream:
        stream.seek(info.header_offset)
        name, extra = struct.unpack("<HH", stream.read(30)[26:30])
        stream.seek(name + extra, 1)
        packed = stream.read(info.compress_size)
    data: bytes = pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read(info.file_size)
    return data


class Samples:
    """A log that is being written; put in place when all samples are in. InputError where the file exists already."""

    def __init__(self, output: Path) -> None:
        if output.suffix not in (".eval", ".json"):
            raise InputError(f"--output {output}: a log of Inspect ends in .eval or .json")
        if output.exists():
            raise InputError(f"{output} exists already; name another --output")
        self.header: Row | None = None
        self._output = output
        self._draft = output.with_name(f".{output.name}.draft")
        self._count = 0

    def __enter__(self) -> Self:
        try:
            self._output.parent.mkdir(parents=True, exist_ok=True)
            self._archive = zipfile.ZipFile(self._draft, "w", zipfile.ZIP_DEFLATED)
        except OSError as error:
            raise InputError(f"{self._output}: {error.strerror or error}") from error
        return self

    def add(self, name: str, sample: Row) -> None:
        """One sample."""
        self._archive.writestr(f"samples/{name}.json", dumps(sample)[0])
        self._count += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self.header is not None:
                self.header["eval"]["dataset"]["samples"] = self._count
                self._archive.writestr("header.json", dumps(self.header)[0])
            self._archive.close()
            if kind is None and self.header is not None:
                self._finish()
        finally:
            self._draft.unlink(missing_ok=True)

    def _finish(self) -> None:
        if self._output.suffix == ".eval":
            self._draft.replace(self._output)
            return
        document = self._output.with_name(f".{self._output.name}.json.draft")
        with zipfile.ZipFile(self._draft) as archive, document.open("wb") as stream:
            stream.write(dumps(self.header)[0][:-1] + b',"samples":[')
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            for number, name in enumerate(names):
                stream.write((b"," if number else b"") + archive.read(name))
            stream.write(b"]}")
        document.replace(self._output)
