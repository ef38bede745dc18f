"""The Pi coding agent (`pi --print`), over Chat Completions."""

from pathlib import Path

from gymflow.models import wire
from gymflow.runtime.foreign import Event, ForeignHarness, Job, Npm, Seen, Visit


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
        model = {
            "id": visit.model,
            "reasoning": False,
            "input": ["text"],
            "contextWindow": 128_000,
            "maxTokens": 16_384,
        }
        provider = {
            "baseUrl": f"{visit.url}/v1",
            "api": "openai-completions",
            "apiKey": "$GYM_KEY",
            "compat": {"supportsDeveloperRole": False, "supportsReasoningEffort": False},
            "models": [model],
        }
        files = {"models.json": {"providers": {"gym": provider}}, "settings.json": {"retry": {"enabled": False}}}
        if visit.instructions:
            argv += ["--append-system-prompt", visit.instructions]
        if visit.tools_url:
            files["mcp.json"] = {"mcpServers": {"gym": {"type": "http", "url": visit.tools_url, "exposure": "direct"}}}
        if visit.resumed:
            argv.append("--continue")
        return Job(
            argv=[*argv, "--", visit.prompt],
            env={"PI_CODING_AGENT_DIR": visit.state, "PI_OFFLINE": "1", "PI_TELEMETRY": "0", "GYM_KEY": visit.key},
            files={f"{visit.state}/{name}": wire.dumps(content).decode() for name, content in files.items()},
            ignore=['"type":"message_update"', '"type":"tool_execution_update"'],
        )

    def see(self, event: Event, seen: Seen) -> None:
        pass
