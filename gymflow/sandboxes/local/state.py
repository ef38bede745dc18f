"""Where local sandboxes of all processes are written down: one small file each, with labels and what to remove. No secrets."""

import json
import os
import stat
import tempfile
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path

from gymflow.sandboxes.errors import SandboxUnavailable


@dataclass(frozen=True, slots=True)
class Entry:
    """One sandbox. `init`: pid and start time of its first process, whose end ends all."""

    sandbox_id: str
    labels: dict[str, str]
    cgroups: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    init: tuple[int, int] | None = None
    provider: str = "local"

    @property
    def path(self) -> Path:
        return folder() / f"{self.sandbox_id}.json"

    def write(self) -> None:
        """Whole or not at all."""
        temporary = self.path.with_suffix(".part")
        temporary.write_text(json.dumps(asdict(self)))
        temporary.replace(self.path)


def entries(provider: str = "local") -> list[Entry]:
    """All of a provider that are written down."""
    found = []
    for path in sorted(folder().glob("*.json")):
        try:
            fields = json.loads(path.read_text())
            fields["init"] = tuple(fields["init"]) if fields["init"] else None
            found.append(Entry(**fields))
        except (OSError, ValueError, TypeError):
            continue
    return [entry for entry in found if entry.provider == provider]


@lru_cache(maxsize=1)
def folder() -> Path:
    """This user's own; refused where someone else could have put it there."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    path = Path(base, f"gymflow-{os.getuid()}")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise SandboxUnavailable(f"{path} belongs to someone else or is open to others; remove it")
    return path
