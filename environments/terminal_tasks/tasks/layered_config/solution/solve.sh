#!/bin/sh
set -e
cd /app
python3 - <<'END'
import json, pathlib
layers = [json.loads(pathlib.Path("config", f"{name}.json").read_text()) for name in ("base", "site", "host")]
def merge(below, above):
    merged = dict(below)
    for key, value in above.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merge(below.get(key) if isinstance(below.get(key), dict) else {}, value)
        else:
            merged[key] = value
    return merged
def leaves(value, path=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield ".".join(path), value
total = merge(merge(layers[0], layers[1]), layers[2])
pathlib.Path("effective.json").write_text(json.dumps(total, indent=2, sort_keys=True) + "\n")
before = dict(leaves(layers[0]))
changed = sorted(path for path, value in leaves(total) if path not in before or before[path] != value)
pathlib.Path("changes.txt").write_text("".join(path + "\n" for path in changed))
END
