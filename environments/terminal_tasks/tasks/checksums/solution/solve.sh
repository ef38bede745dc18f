#!/bin/sh
set -e
cd /app
cd release
python3 - <<'END'
import hashlib, os, pathlib
files = [file for file in pathlib.Path(".").rglob("*") if file.is_file() and file.suffix != ".bak" and file.name != "SHA256SUMS"]
lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file}\n" for file in sorted(files, key=os.fsencode)]
pathlib.Path("SHA256SUMS").write_text("".join(lines), encoding="utf-8")
END
