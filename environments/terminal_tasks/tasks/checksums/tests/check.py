import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

assert (APP / "release" / "SHA256SUMS").read_bytes().decode().splitlines() == EXPECTED
