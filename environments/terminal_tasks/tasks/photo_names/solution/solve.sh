#!/bin/sh
set -e
cd /app
python3 - <<'END'
import pathlib, re, shutil
taken = {}
for note in pathlib.Path("photos").glob("*.txt"):
    day, month, year, time = re.search(r"taken: (\d+)\.(\d+)\.(\d+) (\S+)", note.read_text()).groups()
    taken.setdefault(f"{year}-{month}-{day}", []).append((time, note.with_suffix(".raw")))
for day, pictures in taken.items():
    folder = pathlib.Path("sorted", day[:7])
    folder.mkdir(parents=True, exist_ok=True)
    for number, (_, picture) in enumerate(sorted(pictures), 1):
        shutil.copy(picture, folder / f"{day}_{number:02d}.raw")
END
