"""A task: one row of a dataset. Rows of NVIDIA NeMo Gym datasets validate unchanged."""

from typing import Any

from pydantic import Field

from gymflow.contracts.base import OpenContract
from gymflow.contracts.sandbox import SandboxPart


class ResponsesCreateParams(OpenContract):
    """OpenAI Responses create parameters. Declared here is what the engine reads; the rest is passed on."""

    input: str | list[dict[str, Any]] | None = None
    instructions: str | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    metadata: dict[str, Any] | None = None


class AgentRef(OpenContract):
    """Routes a task to an agent by name."""

    name: str


class Task(OpenContract):
    """One task. Fields that are not declared here belong to the verifier (see `verifier_fields`)."""

    task_id: str | int | None = None
    responses_create_params: ResponsesCreateParams = Field(default_factory=ResponsesCreateParams)
    agent_ref: AgentRef | None = None
    state: dict[str, Any] | None = None
    sandbox: SandboxPart | None = Field(
        None, description="Over the environment's; `files` is the workspace at the start."
    )
    tags: list[str] = Field(default_factory=list)
    cluster: str | None = None

    @property
    def verifier_fields(self) -> dict[str, Any]:
        """The fields at the top level that the verifier declares and reads; `tools`, unless the row has such a field, are those
        on offer to the agent, `files` the workspace that its sandbox starts with, and `sandbox` the task's part of it."""
        fields = self.model_extra or {}
        given: dict[str, Any] = {}
        if tools := self.responses_create_params.tools:
            given["tools"] = tools
        if self.sandbox is not None:
            given |= {"files": self.sandbox.get("files", {}), "sandbox": _without(self.sandbox, "files")}
        return {**given, **fields} if given else fields


def _without(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}
