#!/bin/sh
set -e
cd /app
sed -i 's/Path("measurement")/Path("measurements")/; s/    TARGET.write_text/    TARGET.parent.mkdir(exist_ok=True)\n    TARGET.write_text/' build.py
sed -i 's/(value - 32) \* 9 \/ 5/(value - 32) * 5 \/ 9/' lib/units.py
python3 - <<'END'
import pathlib
file = pathlib.Path("lib/reading.py")
file.write_text(file.read_text().replace("        value, unit = line.split()\n", "        line = line.partition('#')[0].strip()\n        if not line:\n            continue\n        value, unit = line.split()\n"))
END
python3 build.py
