import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

lines = (APP / "report.csv").read_text().split("\n")
assert [line.strip() for line in lines if line.strip()] == EXPECTED
