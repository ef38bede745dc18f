"""Builds dist/summary.json out of the measurements."""

import json
import statistics
from pathlib import Path

from lib.reading import readings
from lib.units import to_celsius

SOURCE = Path("measurement")
TARGET = Path("dist/summary.json")


def main():
    summary = {}
    for file in SOURCE.glob("*.txt"):
        values = [to_celsius(value, unit) for value, unit in readings(file.read_text())]
        summary[file.stem] = {"count": len(values), "mean": round(statistics.mean(values), 2), "max": max(values)}
    TARGET.write_text(json.dumps(summary, sort_keys=True))


main()
