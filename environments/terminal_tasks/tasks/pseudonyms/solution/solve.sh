#!/bin/sh
set -e
cd /app
mkdir -p clean
python3 - <<'END'
import pathlib, re
known = {}
def replace(match):
    return known.setdefault(match[0].lower(), f"user-{len(known) + 1}")
for file in sorted(pathlib.Path("mails").iterdir()):
    text = re.sub(r"[\w.+]+@\w+\.example", replace, file.read_text(), flags=re.IGNORECASE)
    pathlib.Path("clean", file.name).write_text(text)
END
