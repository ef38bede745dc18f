import json
import sqlite3
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

assert json.loads((APP / "answers.json").read_text()) == EXPECTED["answers"]
database = sqlite3.connect(f"file:{APP / 'library.db'}?mode=ro", uri=True)
counts = {table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("author", "book", "loan")}
assert counts == {"author": 3, "book": 8, "loan": 30}
