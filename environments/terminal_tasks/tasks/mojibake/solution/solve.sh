#!/bin/sh
set -e
cd /app
python3 - <<'END'
import pathlib
mended = []
for file in sorted(pathlib.Path("texts").iterdir()):
    text = file.read_bytes().decode()
    try:
        right = text.encode("latin-1").decode()
    except UnicodeError:
        continue
    if right != text:
        file.write_bytes(right.encode())
        mended.append(file.name)
pathlib.Path("mended.txt").write_text("".join(name + "\n" for name in mended))
END
