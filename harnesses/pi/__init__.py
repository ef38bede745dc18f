"""The Pi coding agent (`pi --print`), over Chat Completions."""

from pathlib import Path
from typing import Any

from gymflow.models import wire
from gymflow.runtime.foreign import Event, ForeignHarness, Job, Npm, Seen, Visit

CONTEXT_TOKENS, OUTPUT_TOKENS, RECENT_TOKENS = 128_000, 16_384, 20_000
"""Pi's own defaults: the model's window, its longest answer, and what a compaction leaves as it is."""


class Pi(ForeignHarness):
    """The leanest of the foreign ones: four tools, a short system prompt."""

    installation = Npm(
        Path(__file__).parent,
        package="@earendil-works/pi-coding-agent",
        executable="node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js",
    )
    external_licence = "MIT"

    def job(self, visit: Visit) -> Job:
        argv = [*visit.command, "--print", "--mode", "json", "--session-dir", f"{visit.state}/sessions"]
        argv += ["--model", f"gym/{visit.model}"]
        if visit.instructions:
            argv += ["--append-system-prompt", visit.instructions]
        if visit.resumed:
            argv.append("--continue")
        return Job(
            argv=[*argv, "--", visit.prompt],
            env={"PI_CODING_AGENT_DIR": visit.state, "PI_OFFLINE": "1", "PI_TELEMETRY": "0", "GYM_KEY": visit.key},
            files={f"{visit.state}/{name}": wire.dumps(text).decode() for name, text in self._files(visit).items()},
            ignore=['"type":"message_update"', '"type":"tool_execution_update"'],
        )

    def _files(self, visit: Visit) -> dict[str, Any]:
        window = self.parameters.context_tokens or CONTEXT_TOKENS
        answer = min(OUTPUT_TOKENS, window // 4)
        model = {
            "id": visit.model,
            "reasoning": False,
            "input": ["text"],
            "contextWindow": window,
            "maxTokens": answer,
        }
        provider = {
            "baseUrl": f"{visit.url}/v1",
            "api": "openai-completions",
            "apiKey": "$GYM_KEY",
            "compat": {"supportsDeveloperRole": False, "supportsReasoningEffort": False},
            "models": [model],
        }
        files: dict[str, Any] = {
            "models.json": {"providers": {"gym": provider}},
            "settings.json": {
                "retry": {"enabled": False},
                "compaction": {"reserveTokens": answer, "keepRecentTokens": min(RECENT_TOKENS, window // 8)},
            },
        }
        if visit.tools_url:
            # Anything but `direct` hides the tools behind one that writes code.
            files["mcp.json"] = {"mcpServers": {"gym": {"type": "http", "url": visit.tools_url, "exposure": "direct"}}}
        return files

    def see(self, event: Event, seen: Seen) -> None:
        body = event.body
        match body["type"]:
            case "tool_execution_start":
                seen.began(event.at, body["toolCallId"])
            case "tool_execution_end":
                seen.ended(event.at, body["toolCallId"], failed=bool(body["isError"]))
            case "compaction_end" if body.get("result"):
                seen.compactions.append(event.at)
            case "message_end" if body["message"]["role"] == "assistant":
                message = body["message"]  # of several the last one counts: it may have gone on after an error
                failed = message.get("stopReason") in ("error", "aborted")
                seen.failure = message.get("errorMessage") or message["stopReason"] if failed else None
