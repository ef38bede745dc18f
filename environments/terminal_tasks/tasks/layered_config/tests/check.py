import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

assert (APP / "effective.json").read_text() == json.dumps(EXPECTED["config"], indent=2, sort_keys=True) + "\n"
assert (APP / "changes.txt").read_text().split() == EXPECTED["changes"]
