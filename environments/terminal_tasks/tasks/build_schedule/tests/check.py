import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

assert json.loads((APP / "schedule.json").read_text()) == EXPECTED
