import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

assert (APP / "guide.md").read_text() == EXPECTED
