import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

lines = [line.split() for line in (APP / "crontab").read_text().splitlines() if line.strip()]
assert [" ".join(line) for line in lines] == EXPECTED
