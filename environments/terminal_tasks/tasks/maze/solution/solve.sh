#!/bin/sh
set -e
cd /app
python3 - <<'END'
import heapq
maze = open("maze.txt").read().split()
places = {sign: (x, y) for y, row in enumerate(maze) for x, sign in enumerate(row)}
heap, seen = [(0, places["S"], "")], set()
while heap:
    minutes, (x, y), way = heapq.heappop(heap)
    if (x, y) in seen:
        continue
    seen.add((x, y))
    if maze[y][x] == "E":
        break
    for letter, dx, dy in (("U", 0, -1), ("D", 0, 1), ("L", -1, 0), ("R", 1, 0)):
        sign = maze[y + dy][x + dx]
        if sign != "#":
            heapq.heappush(heap, (minutes + (5 if sign == "~" else 1), (x + dx, y + dy), way + letter))
open("way.txt", "w").write(way + "\n")
open("minutes.txt", "w").write(f"{minutes}\n")
END
