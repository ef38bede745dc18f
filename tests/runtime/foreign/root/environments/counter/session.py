from typing import Any

from gymflow.environments import Session, Snapshot, ToolResult, function_tool


class Counter(Session):
    count = 0

    async def tools(self) -> list[dict[str, Any]]:
        return [function_tool(name, name, {}) for name in ("add", "finish", "fail")]

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        if tool == "fail":
            raise OSError("the counter fell down")
        self.count += tool == "add"
        return ToolResult(str(self.count), reward=0.25, done=tool == "finish")

    async def snapshot(self) -> Snapshot:
        return Snapshot({"count": self.count})
