"""Anthropic's Claude Code command line (`claude -p`), over Messages.

Everything that it would tell Anthropic or fetch from there is switched off, and tools are offered to the model at once instead of
behind a search; it works without asking, since the sandbox bounds it.
"""

from pathlib import Path
from typing import Any

from gymflow.models import wire
from gymflow.runtime.foreign import Event, ForeignHarness, Job, Npm, Seen, Visit

NEED_THE_NETWORK = ("WebFetch", "WebSearch")


class ClaudeCode(ForeignHarness):
    """Subagents and compactions are told apart."""

    installation = Npm(
        Path(__file__).parent,
        package="@anthropic-ai/claude-code",
        executable="node_modules/@anthropic-ai/claude-code-{machine}/claude",
    )
    external_licence = "LicenseRef-Anthropic-Commercial-Terms"

    def job(self, visit: Visit) -> Job:
        argv = [*visit.command, "-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"]
        argv += ["--model", visit.model, "--disallowedTools", ",".join(NEED_THE_NETWORK)]
        files = {}
        if visit.instructions:
            argv += ["--append-system-prompt", visit.instructions]
        if visit.tools_url:
            servers = {"gym": {"type": "http", "url": visit.tools_url}}
            files[f"{visit.state}/mcp.json"] = wire.dumps({"mcpServers": servers}).decode()
            argv += ["--mcp-config", f"{visit.state}/mcp.json", "--strict-mcp-config"]
        if visit.resumed:
            argv.append("--continue")
        window = self.parameters.context_tokens
        return Job(
            argv=[*argv, "--", visit.prompt],
            env={
                "CLAUDE_CONFIG_DIR": visit.state,
                "ANTHROPIC_BASE_URL": visit.url,
                "ANTHROPIC_API_KEY": visit.key,
                "IS_SANDBOX": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1",
                "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
                "CLAUDE_CODE_MAX_RETRIES": "0",
                "ENABLE_TOOL_SEARCH": "false",
                "API_TIMEOUT_MS": "3600000",
                "MCP_TOOL_TIMEOUT": "3600000",
                **({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(window)} if window else {}),
            },
            files=files,
        )

    def see(self, event: Event, seen: Seen) -> None:
        body = event.body
        match body["type"]:
            case "assistant":
                if (spawner := body.get("parent_tool_use_id")) is not None:
                    seen.subagents[body["message"]["id"]] = spawner
                for block in blocks(body):
                    if block["type"] == "tool_use":
                        seen.began(event.at, block["id"])
            case "user":
                for block in blocks(body):
                    if block["type"] == "tool_result":
                        seen.ended(event.at, block["tool_use_id"], failed=bool(block.get("is_error")))
            case "system" if body["subtype"] == "compact_boundary":
                seen.compactions.append(event.at)
            case "result":
                words = body.get("result") or "; ".join(body.get("errors") or ()) or body["subtype"]
                seen.failure = words if body["is_error"] else None


def blocks(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of the message that an event carries; text alone is none."""
    content = body["message"]["content"]
    return content if isinstance(content, list) else []
