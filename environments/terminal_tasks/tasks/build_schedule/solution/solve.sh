#!/bin/sh
set -e
cd /app
python3 - <<'END'
import json
jobs = json.load(open("jobs.json"))
start = {}
def begin(name):
    if name not in start:
        start[name] = max((begin(need) + jobs[need]["minutes"] for need in jobs[name]["needs"]), default=0)
    return start[name]
end = {name: begin(name) + job["minutes"] for name, job in jobs.items()}
chain = [min(name for name in jobs if end[name] == max(end.values()))]
while found := [need for need in jobs[chain[0]]["needs"] if end[need] == start[chain[0]]]:
    chain.insert(0, min(found))
json.dump({"start": start, "total": max(end.values()), "critical": chain}, open("schedule.json", "w"))
END
