#!/bin/sh
set -e
cd /app
python3 - <<'END'
import re
hits, errors = {}, {}
for line in open("access.log"):
    path, status = re.search(r'"GET ([^ ?]+)[^"]*" (\d+)', line).groups()
    hits[path] = hits.get(path, 0) + 1
    errors[path] = errors.get(path, 0) + (int(status) >= 500)
with open("report.csv", "w") as out:
    out.write("path,requests,errors\n")
    for path in sorted(hits, key=lambda path: (-errors[path], path))[:5]:
        out.write(f"{path},{hits[path]},{errors[path]}\n")
END
