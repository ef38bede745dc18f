import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

assert json.loads((APP / "dist" / "summary.json").read_text()) == EXPECTED["summary"]
for name, text in EXPECTED["measurements"].items():
    assert (APP / name).read_text() == text
