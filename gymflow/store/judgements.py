"""What judge models said, by the digest of the question: the same question to the same judge is answered once per store."""

from pathlib import Path

import orjson
from pydantic import ValidationError

from gymflow.contracts.trajectory import ModelCall
from gymflow.store.encoding import dumps
from gymflow.store.files import Files
from gymflow.store.remote import mirror_of

NEVER_KEPT = ("content_filter", "refusal", "length")
"""Finish reasons of answers that are no answers: another attempt may give one."""


class Judgements:
    """Model calls under `judgements/ab/abcdef….json`. Writing one twice is harmless: either answer serves."""

    def __init__(self, folder: Path, files: Files) -> None:
        self._folder = folder
        self._files = files

    def find(self, key: str) -> ModelCall | None:
        """The call that answered a question; None where none is kept. A file that cannot be read counts as none."""
        path = self._path(key)
        if not path.exists() and (mirror := mirror_of(path)) is not None:
            mirror.shared.fetch(path)
        try:
            return ModelCall.model_validate(orjson.loads(path.read_bytes()))
        except (FileNotFoundError, orjson.JSONDecodeError, ValidationError):
            return None

    def keep(self, key: str, call: ModelCall) -> None:
        """Keep a call durably, if it was answered; what an endpoint filtered or cut off is not."""
        if call.status != "ok" or call.finish_reason in NEVER_KEPT:
            return
        path = self._path(key)
        self._files.make_folder(path.parent)
        self._files.replace(path, dumps(call)[0])

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"
