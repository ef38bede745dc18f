"""Tools with which a model works in a sandbox: run a command, read, write, edit and list files.

What is wrong with a call (a file that is not there, text that does not occur) is said to the model; a sandbox that is broken is
not its fault and fails the rollout.
"""

import shlex
from collections.abc import Awaitable, Callable
from typing import Any

from gymflow.environments import ToolResult, function_tool
from gymflow.sandboxes import ExecResult, Sandbox, TooLarge, UnsafePath

READ_BYTES = 8 << 20
COMMAND_BYTES = 100_000
"""A kernel takes no argument of more than 128 KiB."""
LISTED = 500

Answer = Callable[[dict[str, Any]], Awaitable[ToolResult]]

_PATH = {"type": "string", "description": "Absolute, or relative to the working directory."}


class ShellTools:
    """The tools of one episode. Outputs are cut in their middle to `output_characters`."""

    def __init__(self, sandbox: Sandbox, *, timeout_s: float, output_characters: int) -> None:
        self._sandbox = sandbox
        self._timeout_s = timeout_s
        self._characters = output_characters

    def offered(self) -> list[tuple[dict[str, Any], Answer]]:
        """Each tool with what answers it."""
        limit = f"{self._timeout_s:g}"
        command = {"type": "string", "description": "A line for /bin/sh."}
        timeout = {"type": "number", "description": f"Seconds until it is killed; at most and by default {limit}."}
        return [
            (
                function_tool(
                    "run_command",
                    f"Run a shell command in the working directory {self._sandbox.spec.workdir}. Returns its output and exit code. "
                    "Each command is a new shell; files persist, variables and `cd` do not.",
                    {"command": command, "timeout": timeout},
                    ["command"],
                ),
                self._run,
            ),
            (
                function_tool(
                    "read_file",
                    "Read a text file, its lines numbered.",
                    {
                        "path": _PATH,
                        "first_line": {"type": "integer", "description": "Counted from 1; default 1."},
                        "last_line": {"type": "integer", "description": "Inclusive; default: the file's last."},
                    },
                    ["path"],
                ),
                self._read,
            ),
            (
                function_tool(
                    "write_file",
                    "Write a file, replacing what it held; folders are made.",
                    {"path": _PATH, "content": {"type": "string", "description": "The whole content."}},
                ),
                self._write,
            ),
            (
                function_tool(
                    "edit_file",
                    "Replace a passage that occurs exactly once in a file.",
                    {
                        "path": _PATH,
                        "old": {"type": "string", "description": "The passage, exactly as it stands."},
                        "new": {"type": "string", "description": "What replaces it."},
                    },
                ),
                self._edit,
            ),
            (
                function_tool(
                    "list_files",
                    "List the files below a folder with their sizes in bytes.",
                    {"path": {**_PATH, "description": "The folder; default: the working directory."}},
                    [],
                ),
                self._list,
            ),
        ]

    async def _run(self, arguments: dict[str, Any]) -> ToolResult:
        timeout_s = min(float(arguments.get("timeout") or self._timeout_s), self._timeout_s)
        if timeout_s <= 0:
            return ToolResult(f"timeout must be above 0 and at most {self._timeout_s:g} seconds", error=True)
        command = _encodable(arguments["command"])
        if "\0" in command or len(command.encode()) > COMMAND_BYTES:
            message = (
                f"a command holds no NUL character and at most {COMMAND_BYTES} bytes; write_file takes longer texts"
            )
            return ToolResult(message, error=True)
        result = await self._sandbox.exec(command, timeout_s=timeout_s)
        return ToolResult(f"{self._cut(result.text())}{_ending(result, timeout_s)}", error=not result.ok)

    async def _read(self, arguments: dict[str, Any]) -> ToolResult:
        try:
            text = await self._text(arguments["path"])
        except _Refused as error:
            return ToolResult(str(error), error=True)
        lines = text.removesuffix("\n").split("\n") if text else []
        first = max(1, arguments.get("first_line") or 1)
        shown = lines[first - 1 : arguments.get("last_line") or len(lines)]
        if not shown:
            return ToolResult(
                f"{arguments['path']} has {len(lines)} lines, none of them in that range", error=bool(lines)
            )
        return ToolResult(self._cut("\n".join(f"{number:6}\t{line}" for number, line in enumerate(shown, first))))

    async def _write(self, arguments: dict[str, Any]) -> ToolResult:
        return await self._put(arguments["path"], arguments["content"], "written")

    async def _edit(self, arguments: dict[str, Any]) -> ToolResult:
        path, old = arguments["path"], arguments["old"]
        try:
            text = await self._text(path)
        except _Refused as error:
            return ToolResult(str(error), error=True)
        count = text.count(old) if old else 0
        if count != 1:
            found = f"occurs {count} times" if count else "does not occur"
            return ToolResult(f"the passage {found} in {path}; give one that occurs exactly once", error=True)
        return await self._put(path, text.replace(old, arguments["new"]), "edited")

    async def _list(self, arguments: dict[str, Any]) -> ToolResult:
        folder = shlex.quote(self._sandbox.resolve(_encodable(arguments.get("path") or ".").replace("\0", "")))
        listed = await self._sandbox.exec(
            f"cd {folder} && find . -name .git -prune -o -type f -exec wc -c {{}} \\; 2>/dev/null | head -n {LISTED + 1}",
            timeout_s=self._timeout_s,
        )
        if not listed.ok:
            return ToolResult(f"{arguments.get('path')} is not a folder that can be listed", error=True)
        lines = sorted(listed.stdout.decode(errors="replace").splitlines(), key=lambda line: line.split(maxsplit=1)[-1])
        more = f"\n… more than {LISTED} files" if len(lines) > LISTED else ""
        return ToolResult(self._cut("\n".join(lines[:LISTED]) + more) or "there are no files")

    async def _text(self, path: str) -> str:
        path = _encodable(path)
        if "\0" in path:
            raise _Refused("a path holds no NUL character")
        try:
            content = await self._sandbox.get(path, max_bytes=READ_BYTES)
        except FileNotFoundError:
            raise _Refused(f"there is no file {path}") from None
        except (OSError, UnsafePath, TooLarge) as error:
            raise _Refused(f"{path} cannot be read: {_reason(error)}") from None
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise _Refused(f"{path} is not a text file ({len(content)} bytes); look at it with run_command") from None

    async def _put(self, path: str, content: str, done: str) -> ToolResult:
        # Through the shell, not `put`: the file is the agent's own, with its rights, and keeps its mode.
        path = _encodable(path)
        if "\0" in path:
            return ToolResult("a path holds no NUL character", error=True)
        target = shlex.quote(self._sandbox.resolve(path))
        data = content.encode("utf-8", "replace")
        folder = f'mkdir -p -- "$(dirname -- {target})"'
        result = await self._sandbox.exec(f"{folder} && cat > {target}", stdin=data, timeout_s=self._timeout_s)
        if not result.ok:
            return ToolResult(f"{path} was not {done}: {self._cut(result.text().strip())}", error=True)
        return ToolResult(f"{done} {path} ({len(data)} bytes)")

    def _cut(self, text: str) -> str:
        if len(text) <= self._characters:
            return text
        half = self._characters // 2
        return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


class _Refused(Exception):
    """What the model is told."""


def _encodable(text: str) -> str:
    """Half characters, which no command line can hold, as question marks."""
    return text.encode("utf-8", "replace").decode()


def _reason(error: Exception) -> str:
    if isinstance(error, IsADirectoryError):
        return "it is a folder"
    if isinstance(error, NotADirectoryError):
        return "a part of it is not a folder"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _ending(result: ExecResult, timeout_s: float) -> str:
    """How the command ended, on a line of its own."""
    said = {
        "exited": f"exit code {result.exit_code}",
        "timeout": f"killed: it did not end within {timeout_s:g} seconds",
        "oom": "killed: out of memory",
        "killed": "killed",
        "output_limit": "killed: it wrote too much output",
    }[result.outcome]
    cut = ", output cut" if result.truncated else ""
    return f"\n[{said}{cut}]"
