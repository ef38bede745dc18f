import json
import tarfile
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

with tarfile.open(APP / "project-1.4.2.tar.gz", "r:gz") as tar:
    members = tar.getmembers()
    assert all(member.isfile() or member.isdir() for member in members)
    found = {member.name.removeprefix("./"): tar.extractfile(member).read().decode() for member in members if member.isfile()}
assert found == EXPECTED
