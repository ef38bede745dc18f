import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

assert [int(line) for line in (APP / "output.txt").read_text().split()] == EXPECTED["output"]
assert json.loads((APP / "registers.json").read_text()) == EXPECTED["registers"]
