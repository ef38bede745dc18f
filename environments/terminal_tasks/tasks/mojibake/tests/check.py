import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

found = {file.name: file.read_bytes().decode() for file in (APP / "texts").iterdir()}
assert found == EXPECTED
assert (APP / "mended.txt").read_text().split() == ["menu.txt", "people.txt"]
