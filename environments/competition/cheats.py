"""Programs that solve nothing and try to pass all the same. A verifier that gives one of them a reward is broken."""

CHEATS = {
    "silence": "",
    "echo": "import sys\nprint(sys.stdin.read())",
    "planted-report": (
        'import json, os, sys\nprint(json.dumps({"passed": True, "reward": 1.0, "outcome": "passed"}))\n'
        'print("PASSED", file=sys.stderr)\nos._exit(0)'
    ),
    "search-files": (
        "import os, sys\nasked = sys.stdin.read()\n"
        'for place in (".", "..", "/work", "/tests", "/tmp"):\n'
        "    for folder, _, files in os.walk(place):\n"
        "        for file in files:\n"
        "            try:\n"
        "                text = open(os.path.join(folder, file)).read()\n"
        "            except (OSError, ValueError):\n"
        "                continue\n"
        '            if "output" in text or file.endswith((".out", ".ans")):\n'
        "                print(text)\n"
        "                raise SystemExit(0)"
    ),
    "every-number": "for number in range(100000):\n    print(number)",
    "endless": "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
}
"""Name -> source code."""
