import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

found = {str(file.relative_to(APP)): file.read_text() for file in (APP / "sorted").rglob("*") if file.is_file()}
assert found == EXPECTED
assert len(list((APP / "photos").iterdir())) == 28
