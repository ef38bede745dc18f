#!/bin/sh
set -e
cd /app
python3 - <<'END'
import json
code, labels = [], {}
for line in open("program.txt"):
    line = line.split(";")[0].rstrip()
    if line.strip():
        words = line.split()
        if line[0] != " ":
            labels[words.pop(0)] = len(code)
        code.append(words)
registers, output, at = {}, [], 0
def value(text):
    return int(text) if text.lstrip("-").isdigit() else registers.setdefault(text, 0)
while code[at][0] != "halt":
    name, *rest = code[at]
    at += 1
    r = rest[0]
    now = registers.setdefault(r, 0)
    if name in ("set", "copy"):
        registers[r] = value(rest[1])
    elif name == "add":
        registers[r] = now + value(rest[1])
    elif name == "sub":
        registers[r] = now - value(rest[1])
    elif name == "mul":
        registers[r] = now * value(rest[1])
    elif name == "mod":
        registers[r] = now % value(rest[1])
    elif name == "out":
        output.append(now)
    elif (now == 0) == (name == "jz"):
        at = labels[rest[1]]
open("output.txt", "w").write("".join(f"{number}\n" for number in output))
json.dump(registers, open("registers.json", "w"))
END
