"""An agent that does what the model says, as Python, until it says `done`."""

import json
import os
import sys
import time
import urllib.request
from typing import Any

URL, TOOLS = os.environ["URL"], os.environ["TOOLS"]


def post(url: str, body: dict[str, Any]) -> Any:
    asked = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.load(answer)


def tool(name: str) -> str:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}}
    return str(post(TOOLS, message)["result"]["content"][0]["text"])


def say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


history: list[Any] = [{"role": "user", "content": sys.argv[1]}]
while True:
    response = post(f"{URL}/v1/responses", {"model": "m", "input": history})
    text = response["output"][-1]["content"][0]["text"]
    say(type="said", text=text)
    if text == "done":
        break
    exec(text, {"tool": tool, "say": say, "post": post, "URL": URL, "sys": sys, "time": time})
    history += [*response["output"], {"role": "user", "content": "next"}]
