"""A run: what was asked for, and what identifies it."""

from typing import Any, Literal

from pydantic import Field

from gymflow.contracts.agent import AgentSpec, ComponentRef
from gymflow.contracts.base import SCHEMA_VERSION, Contract
from gymflow.contracts.environment import Manifest
from gymflow.contracts.model import ModelIdentity, ModelSpec, Sampling
from gymflow.contracts.sandbox import SandboxPart
from gymflow.contracts.verdict import Judged

AUXILIARY_ROLES = ("judge", "user")
"""Names in a run's `models` map that serve verifiers and simulated users instead of being evaluated."""


class EnvironmentSelection(Contract):
    """One environment of a run, with what this run changes about it."""

    name: str = Field(description="Name, `root:name`, or the path of an environment's folder.")
    benchmark: str | None = None
    split: str | None = Field(None, description="Default: the benchmark's split, else `test`.")
    limit: int | None = Field(None, ge=0, description="First N tasks of the split; 0 selects none.")
    tasks: list[str] | None = Field(None, description="Only these task ids.")
    harness: ComponentRef | None = Field(None, description="Explicit harness; wins over all routing.")
    verifier: dict[str, Any] = Field(
        default_factory=dict, description="Verifier parameters that differ from the manifest."
    )
    session: dict[str, Any] = Field(
        default_factory=dict, description="Session parameters that differ from the manifest."
    )
    sandbox: SandboxPart = Field(
        default_factory=dict, description="What of the sandbox differs from the manifest, such as its provider."
    )


class Budgets(Contract):
    """What one rollout may use; an exhausted budget ends it with a stop reason and its evidence is scored."""

    max_turns: int | None = Field(64, ge=1)
    max_calls: int | None = Field(None, ge=1)
    max_tokens: int | None = Field(None, ge=1, description="Prompt + completion tokens over all calls.")
    max_cost_usd: float | None = Field(None, gt=0)
    wall_time_s: float | None = Field(None, gt=0, description="The agent's wall time.")


class RunBudget(Contract):
    """What all rollouts of a run may use together. Used up, it ends the run as incomplete; a resume with more goes on."""

    max_calls: int | None = Field(None, ge=1, description="Model calls of all roles.")
    max_tokens: int | None = Field(None, ge=1, description="Prompt + completion tokens of all roles.")
    max_cost_usd: float | None = Field(None, gt=0)
    wall_time_s: float | None = Field(None, gt=0, description="From the start, or from the resume.")


class Limits(Contract):
    """How the engine runs; nothing here changes what a model sees."""

    concurrency: int = Field(64, ge=1, description="Rollouts in flight.")
    max_attempts: int = Field(2, ge=1, description="Attempts of one rollout when infrastructure fails it.")
    verifier_timeout_s: float = Field(120.0, gt=0)
    environment_timeout_s: float = Field(120.0, gt=0, description="Longest that one session or tool call may take.")
    unreachable_s: float = Field(
        30.0, ge=0, description="How long a dead endpoint pauses the run before it ends incomplete."
    )
    chunk_size: int = Field(256, ge=1)
    max_failures: int | None = Field(
        None, ge=1, description="End the run as incomplete after this many failed rollouts."
    )


class Shard(Contract):
    """The i-th of n parts of a plan, for several machines."""

    index: int = Field(ge=0)
    count: int = Field(ge=1)


class RunConfig(Contract):
    """Everything that `gym eval run` can be told; also the parameter form of the evaluate deployment."""

    name: str | None = Field(None, description="Default: the environments' names.")
    environments: list[EnvironmentSelection] = Field(min_length=1)
    models: dict[str, ModelSpec] = Field(default_factory=lambda: {"policy": ModelSpec(provider="embedded")})
    agents: dict[str, AgentSpec] = Field(
        default_factory=dict, description="Named agents; empty: one agent per model, on each environment's harness."
    )
    repeats: int | None = Field(None, ge=1, description="Default: the benchmark's, else 1.")
    seed: int | None = Field(0, description="Each repeat's sampling seed derives from it; null sends none.")
    sampling: Sampling = Field(default_factory=lambda: Sampling(), description="Wins over a model's and a benchmark's.")
    budgets: Budgets = Field(default_factory=lambda: Budgets(), description="Of each rollout.")
    run_budget: RunBudget = Field(default_factory=lambda: RunBudget(), description="Of the whole run.")
    limits: Limits = Field(default_factory=lambda: Limits())
    reuse: Literal["run", "store", "none"] = "run"
    strict_routing: bool = False
    metrics: list[str] = Field(default_factory=list, description="Further metrics of the scorecard, such as pass@4.")
    shard: Shard | None = None
    skip_bad_rows: bool = Field(False, description="Leave unreadable dataset rows out, counted, instead of refusing.")
    vary: dict[str, list[Any]] = Field(default_factory=dict, description="An ablation over one field.")

    @property
    def title(self) -> str:
        """The run's name, or its environments'."""
        return self.name or "+".join(selection.name.rpartition("/")[2] for selection in self.environments)

    @property
    def models_sampled(self) -> list[str]:
        """Models that are evaluated: all but those with an auxiliary role such as `judge` or `user`."""
        return [name for name in self.models if name not in AUXILIARY_ROLES]


class Fingerprint(Contract):
    """Named digests of what a run sampled with and scored with."""

    sampling: dict[str, str] = Field(
        description="model, harness, prompt, sampling, dataset, environment, sandbox, engine."
    )
    scoring: dict[str, str] = Field(description="verifier, judge.")

    def differing(self, other: "Fingerprint") -> list[str]:
        """Names of the sampling digests in which two runs differ, sorted."""
        return sorted(
            k for k in self.sampling.keys() | other.sampling.keys() if self.sampling.get(k) != other.sampling.get(k)
        )


class VerdictSet(Contract):
    """One complete scoring of a run's rollouts. Its name is derived from what judged, so the same verifier finds it again."""

    name: str
    created_at: float
    judged: dict[str, Judged] = Field(description="By environment.")
    refers_to: str | None = Field(None, description="The set whose untouched verdicts a partial rescoring took over.")
    parameters: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Of the verifiers, all of them, by environment."
    )
    code: dict[str, str] = Field(
        default_factory=dict, description="By environment: the artifact that holds the verifier's code."
    )


class EnvironmentOfRun(Contract):
    """One environment of a run, as merged for it."""

    reference: str = Field(description="Name or folder under which the registry finds it.")
    split: str
    benchmark: str | None = None
    manifest: Manifest


class RunDocument(Contract):
    """`run.json`: what a run is. Secrets are references or masked."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    name: str
    created_at: float
    config: RunConfig
    fingerprint: Fingerprint
    environments: dict[str, EnvironmentOfRun] = Field(description="By the name that rollouts of this run carry.")
    agents: dict[str, dict[str, AgentSpec]] = Field(description="By environment and name; every agent has a harness.")
    identities: dict[str, ModelIdentity] = Field(description="By model name in the run.")
    versions: dict[str, str] = Field(description="gymflow, python, platform and the distributions that matter.")
    accepted_drift: list[str] = Field(
        default_factory=list, description="Fingerprint fields that a resume was allowed to change."
    )
    merged_from: list[str] = Field(
        default_factory=list, description="Runs that it was put together from; empty for a run that sampled itself."
    )
    tests_decision: str | None = Field(None, description="Id of the decision whose prediction this run tests.")
