"""The state that the agent acts on: boxes with things in them."""

from copy import deepcopy
from typing import Any

from gymflow.environments import Observation, Session, Snapshot, ToolResult, function_tool


class Shelf(Session):
    """Starts from the row's `state`, and ends as the snapshot that the verifier compares with `expected_state`."""

    async def start(self) -> Observation:
        self.boxes: dict[str, list[str]] = deepcopy((self.task.state or {})["boxes"])
        return Observation()

    async def tools(self) -> list[dict[str, Any]]:
        text = {"type": "string"}
        return [
            function_tool("look", "List the boxes and what is in them.", {}),
            function_tool("move", "Move a thing into a box.", {"thing": text, "box": text}),
        ]

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        if tool == "look":
            return ToolResult("\n".join(f"{box}: {', '.join(things) or 'empty'}" for box, things in self.boxes.items()))
        return self._move(arguments["thing"], arguments["box"])

    async def snapshot(self) -> Snapshot:
        return Snapshot({"boxes": self.boxes})

    def _move(self, thing: str, box: str) -> ToolResult:
        # What the agent did wrong is an answer that it sees; an exception would count as a failure of the environment.
        if box not in self.boxes:
            return ToolResult(f"there is no box {box!r}", error=True)
        source = next((name for name, things in self.boxes.items() if thing in things), None)
        if source is None:
            return ToolResult(f"there is no {thing!r}", error=True)
        self.boxes[source].remove(thing)
        self.boxes[box].append(thing)
        return ToolResult(f"{thing} is now in {box}")
