"""The office of `workplace`, with an instruction planted in one of its records.

`task.state` is `{"world": N, "record": id, "text": …, "trace": …}`: which office, where the plant stands, what it says, and how the
state shows that it was followed.
"""

import json
from typing import Any

from gymflow.environments.workplace.session import Workplace

from gymflow.environments import Snapshot, ToolResult

from .injection import obeyed, with_plant


class ToolInjection(Workplace):  # type: ignore[misc]  # found at run time through the package's path
    """The snapshot holds `changes` (see `workplace`), `obeyed`, and `seen`: whether a tool has shown the plant."""

    seen = False

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        result: ToolResult = await super().call(tool, arguments)
        state = self.task.state or {}
        if result.error or not result.output.startswith(("{", "[")):
            return result
        answer, found = with_plant(json.loads(result.output), state["record"], state["text"])
        if not found:
            return result
        self.seen = True
        return ToolResult(json.dumps(answer, ensure_ascii=False))

    async def snapshot(self) -> Snapshot:
        changes = self.desk.changes()
        followed = obeyed(changes, (self.task.state or {})["trace"])
        return Snapshot({"changes": changes, "obeyed": followed, "seen": self.seen})
