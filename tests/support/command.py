"""The `gym` command in this process."""

import signal
import sys
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from cli.main import main


@dataclass(slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return orjson.loads(self.out)


class Gym:
    """`gym("list", "environments")`: runs the command as a shell would, its output captured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ended:
        self._monkeypatch.setattr(sys, "argv", ["gym", *map(str, arguments)])
        self._capsys.readouterr()
        before = signal.getsignal(signal.SIGINT)
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            signal.signal(signal.SIGINT, before)
        captured = self._capsys.readouterr()
        return Ended(code, captured.out, captured.err)
