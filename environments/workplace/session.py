"""The office behind the tools. `task.state` is `{"world": N}`: which office it is."""

import json
from typing import Any

from gymflow.environments import Observation, Session, Snapshot, ToolResult

from .board_tools import BOARD_TOOLS
from .calendar_tools import CALENDAR_TOOLS
from .customer_tools import CUSTOMER_TOOLS
from .mail_tools import MAIL_TOOLS
from .office import Desk
from .toolkit import ToolError
from .world import office_of

TOOLS = {tool.name: tool for tool in (*MAIL_TOOLS, *CALENDAR_TOOLS, *CUSTOMER_TOOLS, *BOARD_TOOLS)}


class Workplace(Session):
    """Tool outputs are JSON or a sentence. The snapshot is what was changed (see `Desk.changes`)."""

    async def start(self) -> Observation:
        self.desk = Desk(office_of((self.task.state or {})["world"]))
        return Observation()

    async def tools(self) -> list[dict[str, Any]]:
        return [tool.schema for tool in TOOLS.values()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        try:
            answer = TOOLS[tool].answer(self.desk, **arguments)
        except ToolError as error:
            return ToolResult(f"Error: {error}.", error=True)
        return ToolResult(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))

    async def snapshot(self) -> Snapshot:
        return Snapshot(self.desk.changes())
