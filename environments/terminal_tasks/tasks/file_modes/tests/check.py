import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

found = {str(file.relative_to(APP)): file for file in (APP / "site").rglob("*") if file.is_file()}
assert {name: [oct(file.stat().st_mode & 0o777)[2:], file.read_text()] for name, file in found.items()} == EXPECTED
