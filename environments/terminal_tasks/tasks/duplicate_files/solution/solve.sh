#!/bin/sh
set -e
cd /app
python3 - <<'END'
import json, pathlib
groups = {}
for file in pathlib.Path("papers").rglob("*"):
    if file.is_file() and file.stat().st_size:
        groups.setdefault(file.read_bytes(), []).append(str(file))
found = sorted(sorted(paths) for paths in groups.values() if len(paths) > 1)
pathlib.Path("duplicates.json").write_text(json.dumps(found))
END
