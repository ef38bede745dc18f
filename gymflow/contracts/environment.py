"""The manifest of an environment (`environment.yaml`)."""

from typing import Any, Literal

from pydantic import Field, model_validator

from gymflow.contracts.agent import ComponentRef
from gymflow.contracts.base import Contract
from gymflow.contracts.model import Sampling
from gymflow.contracts.sandbox import SandboxPart

Offer = Literal["messages", "tools", "mcp", "shell", "conversation", "own_loop"]
"""What an environment offers to a harness, and a harness may need."""

Collected = Literal["workspace", "patch"]
"""`workspace`: the folder as a tar archive. `patch`: what the agent changed of its text files, as a unified diff."""


class DatasetSpec(Contract):
    """A split: a JSONL file relative to the environment's folder, or a generator `module:function` in it."""

    file: str | None = None
    generator: str | None = Field(None, description="`tasks:generate`; called with the arguments, yields rows.")
    arguments: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_source(self) -> "DatasetSpec":
        if (self.file is None) == (self.generator is None):
            raise ValueError("a dataset has either `file` or `generator`")
        return self


class PromptTemplate(Contract):
    """Builds a task's input from its fields: `{field}` is replaced, `{{` and `}}` are literal braces."""

    system: str | None = None
    user: str


class Benchmark(Contract):
    """A named, versioned protocol over an environment; what it leaves out is the environment's."""

    version: int = 1
    description: str = ""
    split: str = "test"
    repeats: int = Field(1, ge=1)
    sampling: Sampling = Field(default_factory=lambda: Sampling())
    prompt: PromptTemplate | None = None
    harness: ComponentRef | None = None
    verifier: ComponentRef | None = Field(None, description="Another one than the environment's, such as a judge.")
    headline: str = Field("score", description="score, pass@k or pass^k.")


class Manifest(Contract):
    """An environment: dataset + verifier + state and tools + default harness."""

    name: str
    version: str
    description: str
    domain: str
    tags: list[str] = Field(default_factory=list)
    licence: str = Field(description="SPDX identifier of the data and code in this folder.")
    external_licence: str | None = Field(None, description="SPDX identifier of an external tool or dataset it needs.")
    datasets: dict[str, DatasetSpec]
    verifier: ComponentRef
    harness: ComponentRef = Field(default_factory=lambda: ComponentRef(name="single_turn"))
    session: str | None = Field(None, description="`module:Class` in this folder; without it the session is stateless.")
    session_parameters: dict[str, Any] = Field(default_factory=dict)
    sandbox: SandboxPart | None = Field(None, description="Where the agent works; a task's own part goes over it.")
    collects: list[Collected] = Field(
        default=["workspace"], description="Artifacts made of the sandbox's workdir when the episode ends."
    )
    offers: list[Offer] = Field(default=["messages"])
    prompt: PromptTemplate | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    pass_threshold: float | None = Field(
        None, description="Reward from which a rollout counts as passed; default: the top."
    )
    distributions: list[str] = Field(default_factory=list, description="Python distributions that its code needs.")
    includes: list[str] = Field(
        default_factory=list,
        description="Further folders, relative to this one, whose code it uses; part of its digest.",
    )
    fixtures: str = Field("fixtures.jsonl", description="Answers with known rewards, scored before every run.")
    benchmarks: dict[str, Benchmark] = Field(default_factory=dict)

    @property
    def passing_reward(self) -> float:
        """`passed` means: reward at least this."""
        return self.reward_range[1] if self.pass_threshold is None else self.pass_threshold


class Fixture(Contract):
    """One answer with its known reward: proves the verifier before a run. One line of `fixtures.jsonl`.

    The answer is a final text, or output items (function calls), or a script of tool calls played into a fresh session, or files that
    an agent leaves in the task's workspace.
    """

    kind: Literal["full", "none", "near_miss", "format_variant", "malformed", "empty"]
    task_id: str = Field(description="Which task of which split it answers.")
    split: str = "test"
    text: str | None = None
    output: list[dict[str, Any]] | None = None
    actions: list[dict[str, Any]] | None = Field(
        None, description="[{name, arguments}] tool calls, or [{message}] replies."
    )
    files: dict[str, str | None] | None = Field(
        None, description="Path -> content of what is written to the workspace; null removes a file."
    )
    reward: float
    swapped: dict[str, Any] | None = Field(
        None, description="Verifier fields of a wrong gold answer: with them this answer must not pass."
    )
