#!/bin/sh
set -e
cd /app
python3 - <<'END'
import fnmatch, pathlib, tarfile
root = pathlib.Path("project")
version = (root / "VERSION").read_text().strip()
rules = (root / ".ignore").read_text().split()
def left_out(file):
    inner = file.relative_to(root)
    return (file.name.startswith(".") or any(fnmatch.fnmatch(file.name, rule) for rule in rules if not rule.endswith("/"))
            or any(part + "/" in rules for part in inner.parts[:-1]))
with tarfile.open(f"project-{version}.tar.gz", "w:gz") as tar:
    for file in sorted(root.rglob("*")):
        if file.is_file() and not left_out(file):
            tar.add(file, f"project-{version}/{file.relative_to(root)}")
END
