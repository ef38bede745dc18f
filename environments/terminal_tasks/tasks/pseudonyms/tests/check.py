import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

assert {str(file.relative_to(APP)): file.read_text() for file in (APP / "clean").iterdir()} == EXPECTED
