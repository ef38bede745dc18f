"""One model call, no tools executed: the answer is whatever the model says first."""

from gymflow.harnesses import Harness
from gymflow.runtime.episode import Episode


class SingleTurn(Harness):
    """Tool calls that the model asks for stay in the response; verifiers such as `tool_calls` read them there."""

    async def run(self, episode: Episode) -> None:
        await episode.generate()
