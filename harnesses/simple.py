"""A tool loop over the Responses items: call the model, run the tools it asks for, let the environment answer, repeat."""

from gymflow.harnesses._shell_tools import ShellTools
from pydantic import Field

from gymflow.contracts.outcome import StopReason
from gymflow.harnesses import BaseParameters, Harness
from gymflow.items import function_calls, output_text
from gymflow.runtime.episode import Episode


class Simple(Harness):
    """Ends when the agent answers without a tool call and the environment has nothing to say to it.

    Malformed calls are answered with an error that the model sees, so that it can mend them; after
    `max_malformed` turns in a row that consist of nothing else the episode ends as `malformed_tool_calls`. Where the environment
    has a sandbox, the model gets tools to work in it; a tool of the environment with the same name stays the environment's.
    """

    uses = frozenset({"tools", "conversation", "shell"})
    includes = ("_shell_tools.py",)

    class Parameters(BaseParameters):
        max_turns: int | None = Field(None, ge=1, description="Model calls; the run's budget holds besides.")
        max_malformed: int = Field(5, ge=1, description="Turns in a row in which no tool call could be executed.")
        command_timeout_s: float = Field(120.0, gt=0, description="Longest that a command in the sandbox may take.")
        output_characters: int = Field(16_000, ge=200, description="Of a tool's output, what the model sees.")

    async def run(self, episode: Episode) -> None:
        if episode.sandbox is not None:
            own = self.parameters
            tools = ShellTools(
                episode.sandbox, timeout_s=own.command_timeout_s, output_characters=own.output_characters
            )
            for tool, answer in tools.offered():
                episode.offer(tool, answer)
        limit = self.parameters.max_turns
        malformed = 0
        while limit is None or len(episode.trajectory.turns) < limit:
            response = await episode.generate()
            if function_calls(response.output):
                await episode.call_tools(response)
                calls = episode.trajectory.turns[-1].tool_calls
                malformed = malformed + 1 if all(c.status in ("malformed", "unknown_tool") for c in calls) else 0
                if malformed >= self.parameters.max_malformed:
                    return episode.stop(StopReason.MALFORMED_TOOL_CALLS, f"{malformed} turns in a row")
            elif response.finish_reason == "length" or await episode.respond(output_text(response.output)) is None:
                return None
            if episode.done:
                return None
        return episode.stop(StopReason.MAX_TURNS, f"{limit} turns")
