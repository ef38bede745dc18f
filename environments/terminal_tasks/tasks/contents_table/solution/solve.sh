#!/bin/sh
set -e
cd /app
python3 - <<'END'
import pathlib, re
file = pathlib.Path("guide.md")
entries, taken, code = [], {}, False
for line in file.read_text().splitlines():
    if line.startswith("```"):
        code = not code
    heading = re.fullmatch(r"(##|###) (.+)", line)
    if code or not heading:
        continue
    anchor = re.sub(r"[^a-z0-9 -]", "", heading[2].lower()).replace(" ", "-")
    count = taken[anchor] = taken.get(anchor, -1) + 1
    entries.append("  " * (len(heading[1]) - 2) + f"- [{heading[2]}](#{anchor}{f'-{count}' if count else ''})")
file.write_text(file.read_text().replace("<!-- contents -->", "\n".join(entries)))
END
