import json
from pathlib import Path

APP, EXPECTED = Path("/app"), json.loads(Path("/tests/expected.json").read_text())

maze = EXPECTED["maze"]
[(x, y)] = [(row.index("S"), number) for number, row in enumerate(maze) if "S" in row]
minutes = 0
for letter in (APP / "way.txt").read_text().strip():
    dx, dy = {"U": (0, -1), "D": (0, 1), "L": (-1, 0), "R": (1, 0)}[letter]
    x, y = x + dx, y + dy
    assert maze[y][x] != "#"
    minutes += 5 if maze[y][x] == "~" else 1
assert maze[y][x] == "E"
assert minutes == EXPECTED["minutes"] == int((APP / "minutes.txt").read_text())
