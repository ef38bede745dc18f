import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

for name, wanted in EXPECTED.items():
    lines = (APP / name).read_text().splitlines()
    assert [line for line in lines if line] == wanted, name
