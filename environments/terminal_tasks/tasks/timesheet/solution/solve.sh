#!/bin/sh
set -e
cd /app
python3 - <<'END'
import json
worked = {}
for line in open("stamps.tsv"):
    day, name, times = line.split()
    begin, end = (int(time[:2]) * 60 + int(time[3:]) for time in times.split("-"))
    worked.setdefault(name, set()).update((day, minute) for minute in range(begin, end))
def longest(minutes):
    best = run = 0
    before = None
    for day, minute in sorted(minutes):
        run = run + 1 if before == (day, minute - 1) else 1
        best, before = max(best, run), (day, minute)
    return best
week = {name: {"minutes": len(found), "days": len({day for day, _ in found}), "longest": longest(found)} for name, found in worked.items()}
json.dump(week, open("week.json", "w"))
END
