"""The `apptainer` command.

Command line: https://apptainer.org/docs/user/1.4/cli.html
"""

from collections.abc import Sequence
from pathlib import Path

from gymflow.sandboxes.interface import ExecResult
from gymflow.sandboxes.local.layout import PATH, Arguments
from gymflow.sandboxes.local.tool import Tool

ADVICE = (
    "https://apptainer.org/docs/admin/latest/installation.html tells how to install it "
    "(no rights are needed where the kernel has user namespaces)"
)


def found() -> Tool:
    """The one on PATH. Raises SandboxUnavailable."""
    return Tool.found("apptainer", ADVICE)


async def call(tool: Tool, arguments: Arguments, *, home: Path, join: Sequence[str] = ()) -> ExecResult:
    """Run it. `home`: a folder of the user, for what it writes down; `join`: control groups."""
    environment = {
        "PATH": f"{PATH}:{Path(tool.path).parent}",
        "HOME": str(home),
        "APPTAINER_CONFIGDIR": str(home / "config"),
        "APPTAINER_CACHEDIR": str(home / "cache"),
        "APPTAINER_TMPDIR": str(home),
    }
    return await tool.call(arguments.words, env=environment, stage=arguments.staged, join=join)
