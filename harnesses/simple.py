"""A tool loop over the Responses items: call the model, run the tools it asks for, let the environment answer, repeat."""

from pydantic import Field

from gymflow.contracts.outcome import StopReason
from gymflow.harnesses import BaseParameters, Harness
from gymflow.items import function_calls, output_text
from gymflow.runtime.episode import Episode


class Simple(Harness):
    """Ends when the agent answers without a tool call and the environment has nothing to say to it.

    Malformed calls are answered with an error that the model sees, so that it can mend them; after
    `max_malformed` turns in a row that consist of nothing else the episode ends as `malformed_tool_calls`.
    """

    class Parameters(BaseParameters):
        max_turns: int | None = Field(None, ge=1, description="Model calls; the run's budget holds besides.")
        max_malformed: int = Field(5, ge=1, description="Turns in a row in which no tool call could be executed.")

    async def run(self, episode: Episode) -> None:
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
