"""OpenAI's Codex command line (`codex exec`), over Responses.

Its plugins, apps, web search, telemetry and update checks are switched off; it works without asking, since the sandbox bounds it.
"""

from datetime import datetime
from pathlib import Path

from gymflow.models import wire
from gymflow.runtime.foreign import Event, ForeignHarness, Job, Npm, Seen, Visit

PROVIDER = "gym"
REFUSALS = ("unsupported call: ", "failed to parse function arguments: ")
"""How Codex answers calls that it cannot make; nothing else in its records says so."""


class Codex(ForeignHarness):
    """A tool call's times are those at which Codex wrote its `function_call` and the output into its session file."""

    installation = Npm(
        Path(__file__).parent,
        package="@openai/codex",
        executable="node_modules/@openai/codex-{machine}/vendor/{cpu}-unknown-linux-musl/bin/codex",
    )
    external_licence = "Apache-2.0"

    def job(self, visit: Visit) -> Job:
        further = ["resume", "--last"] if visit.resumed else []
        return Job(
            argv=[*visit.command, "exec", *further, "--json", "--skip-git-repo-check", "--", visit.prompt],
            env={"CODEX_HOME": visit.state, "GYM_KEY": visit.key},
            files={f"{visit.state}/config.toml": configuration(visit, self.parameters.context_tokens)},
            collect=[f"{visit.state}/sessions/**/*.jsonl"],
        )

    def see(self, event: Event, seen: Seen) -> None:
        body = event.body
        if not event.from_file:
            if body["type"] == "turn.failed":
                seen.failure = body["error"]["message"]
            elif body["type"] == "turn.completed":
                seen.failure = None
            return
        at, said = datetime.fromisoformat(body["timestamp"]).timestamp(), body["payload"]
        match body["type"], said.get("type"):
            case "response_item", "function_call" | "custom_tool_call":
                seen.began(at, said["call_id"])
            case "response_item", "function_call_output" | "custom_tool_call_output":
                seen.ended(at, said["call_id"], failed=str(said.get("output")).startswith(REFUSALS))
            case "event_msg", "item_completed" if (span := seen.spans.get(said["item"].get("id") or "")) is not None:
                # A command that goes on after its tool call has answered ends later: the call is what is timed.
                span.started_at = said["started_at_ms"] / 1000
                seen.ended(
                    said["completed_at_ms"] / 1000, said["item"]["id"], failed=said["item"].get("status") == "failed"
                )
            case "compacted", _:
                seen.compactions.append(at)


def configuration(visit: Visit, window: int | None) -> str:
    """`config.toml`."""
    settings: dict[str, object] = {
        "model": visit.model,
        "model_provider": PROVIDER,
        "approval_policy": "never",
        "sandbox_mode": "danger-full-access",
        "web_search": "disabled",
        "check_for_update_on_startup": False,
        "analytics.enabled": False,
        "history.persistence": "none",
        "features.plugins": False,
        "features.apps": False,
        "agents.enabled": False,
        f"model_providers.{PROVIDER}.name": PROVIDER,
        f"model_providers.{PROVIDER}.base_url": f"{visit.url}/v1",
        f"model_providers.{PROVIDER}.env_key": "GYM_KEY",
        f"model_providers.{PROVIDER}.wire_api": "responses",
        f"model_providers.{PROVIDER}.request_max_retries": 0,
        f"model_providers.{PROVIDER}.stream_max_retries": 0,
        f"model_providers.{PROVIDER}.stream_idle_timeout_ms": 3_600_000,
    }
    if window:
        settings["model_context_window"] = window
    if visit.instructions:
        settings["developer_instructions"] = visit.instructions
    if visit.tools_url:
        settings["mcp_servers.gym.url"] = visit.tools_url
        settings["mcp_servers.gym.tool_timeout_sec"] = 3600
    # Text, numbers and truth values are written alike in TOML and JSON.
    return "".join(f"{name} = {wire.dumps(value).decode()}\n" for name, value in settings.items())
