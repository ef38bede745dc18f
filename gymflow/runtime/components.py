"""A run's parts, instantiated: what a run document names becomes objects that rollouts are played and scored with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from gymflow import keys
from gymflow.canonical import canonical_json
from gymflow.contracts.agent import AgentSpec, ComponentRef
from gymflow.contracts.environment import Manifest
from gymflow.contracts.model import ModelIdentity, Sampling
from gymflow.contracts.run import RunConfig
from gymflow.contracts.sandbox import SandboxSpec, merged, sandbox_of
from gymflow.contracts.task import Task
from gymflow.contracts.verdict import Judged
from gymflow.environments import Session
from gymflow.errors import InputError
from gymflow.harnesses import Harness
from gymflow.registry import EnvironmentEntry, Registry
from gymflow.runtime.judging import ROLE as JUDGE
from gymflow.runtime.judging import JudgeModel
from gymflow.store import StoredRollout
from gymflow.verifiers import Verifier


@dataclass(slots=True)
class RunAgent:
    """A harness in one environment on one model of the run."""

    harness: Harness
    model: str
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class RunTask:
    """A task with what all its repeats share: the verifier's validated fields, or why they do not fit it, and their digest."""

    task: Task
    fields: BaseModel | None
    fault: str | None
    fields_digest: str

    @property
    def input(self) -> list[dict[str, Any]]:
        """The rendered input, as Responses items."""
        given = self.task.responses_create_params.input
        return [{"role": "user", "content": given}] if isinstance(given, str) else given or []


@dataclass(slots=True)
class RunEnvironment:
    """An environment as merged for this run."""

    manifest: Manifest
    session: type[Session]
    verifier: Verifier[Any]
    judged: Judged
    code: bytes = b"{}"
    """The verifier's code, as `gymflow.registry.Registry.verifier_code` in canonical JSON."""
    judge: JudgeModel | None = None
    judged_digest: str = field(init=False)

    def __post_init__(self) -> None:
        self.judged_digest = keys.digest(self.judged.model_dump(mode="json"))

    @property
    def stateless(self) -> bool:
        """Whether the session is the base class, which has nothing to set up, say or keep."""
        return self.session is Session

    def task(self, row: Mapping[str, Any]) -> RunTask:
        """A planned task row, prepared for playing and scoring."""
        task = Task.model_validate(row)
        fields, fault = None, None
        try:
            fields = self.verifier.task_fields.model_validate(task.verifier_fields)
        except ValidationError as error:
            fault = f"the task does not fit the verifier: {error}"
        return RunTask(task, fields, fault, keys.digest(task.verifier_fields))

    def sandbox(self, task: Task, harness: Harness) -> SandboxSpec | None:
        """What the harness gets to work in on this task; None where nobody asks for a sandbox or it would not be used."""
        if "shell" not in harness.needs | harness.uses:
            return None
        return sandbox_of(self.manifest.sandbox, task.sandbox)

    def open_session(self, task: Task, seed: int) -> Session:
        """A fresh session for one rollout."""
        return self.session(task, seed=seed, parameters=self.manifest.session_parameters)


class PreparedTasks:
    """Tasks prepared for scoring, which repeats share: of a large run so many as `kept`, not all."""

    def __init__(self, environments: Mapping[str, RunEnvironment], kept: int) -> None:
        self._environments = environments
        self._kept = kept
        self._tasks: dict[int, RunTask] = {}

    def of(self, stored: StoredRollout) -> RunTask:
        """The task of a stored rollout."""
        task = self._tasks.get(stored.task_index)
        if task is None:
            if len(self._tasks) >= self._kept:
                self._tasks.clear()
            task = self._tasks[stored.task_index] = self._environments[stored.environment].task(stored.task)
        return task


def run_environment(
    registry: Registry, entry: EnvironmentEntry | None, manifest: Manifest, judge: dict[str, Any] | None
) -> RunEnvironment:
    """Session class and verifier of an environment, with the manifest as merged for the run. `entry` is None for
    imported rollouts that belong to no environment of ours. `judge`: see `judge_identity`.

    InputError where the verifier needs a judge model and there is none.
    """
    name = manifest.verifier.name
    cls = registry.verifier_class(name, entry)
    parameters = verifier_parameters(cls, manifest)
    verifier = cls(parameters)
    judging = JUDGE in verifier.needs
    if judging and judge is None:
        raise InputError(
            f"{manifest.name}: verifier {name!r} asks a judge model; name one under `models: judge:`, or with "
            "--set models.judge.provider=… --set models.judge.model=…"
        )
    return RunEnvironment(
        manifest=manifest,
        session=registry.session_class(entry) if entry else Session,
        verifier=verifier,
        judged=Judged(
            verifier=name,
            version=verifier.version,
            code_digest=registry.verifier_digest(name, entry),
            parameter_digest=keys.digest(parameters.model_dump(mode="json")),
            judge=judge if judging else None,
        ),
        code=canonical_json(registry.verifier_code(name, entry)),
    )


def give_judge(environments: Iterable[RunEnvironment], judge: JudgeModel | None) -> None:
    """Let the verifiers that need a judge model ask this one."""
    for environment in environments:
        if JUDGE in environment.verifier.needs:
            environment.judge = judge


def run_agent(registry: Registry, spec: AgentSpec, sampling: Sampling) -> RunAgent:
    """The harness of an agent whose spec is complete."""
    assert spec.harness is not None
    cls = registry.harness_class(spec.harness.name)
    parameters = validated(cls.Parameters, spec.harness, f"harness {spec.harness.name!r}")
    return RunAgent(harness=cls(parameters), model=spec.model, sampling=sampling)


def verifier_parameters(verifier: type[Verifier[Any]], manifest: Manifest) -> BaseModel:
    """The verifier's parameters. One that judges in a sandbox does so, unless told otherwise, in the kind that the agent worked in:
    the same image and limits, its files those that the agent left. InputError as `validated`."""
    ref = manifest.verifier
    if manifest.sandbox is not None and "sandbox" in verifier.Parameters.model_fields:
        own = {name: value for name, value in manifest.sandbox.items() if name not in ("files", "env")}
        if own.get("network") == "gateway":
            del own["network"]
        ref = ref.model_copy(
            update={"parameters": {**ref.parameters, "sandbox": merged(own, ref.parameters.get("sandbox"))}}
        )
    return validated(verifier.Parameters, ref, f"verifier {ref.name!r}")


def effective_sampling(config: RunConfig, model: str, benchmark: Sampling | None) -> Sampling:
    """The run's sampling over the benchmark's over the model's own."""
    layers = [config.models[model].sampling, benchmark or Sampling(), config.sampling]
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= {name: value for name, value in layer if value is not None and value != {}}
    return Sampling(**merged)


def validated(parameters: type[BaseModel], ref: ComponentRef, what: str) -> BaseModel:
    """A component's parameters. InputError names the one that is wrong, and those that exist."""
    try:
        return parameters.model_validate(ref.parameters)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        known = ", ".join(parameters.model_fields) or "none"
        raise InputError(f"{what}: parameter {where!r}: {first['msg']}; parameters: {known}") from None


def identities_of(identities: Mapping[str, ModelIdentity], roles: tuple[str, ...]) -> dict[str, ModelIdentity]:
    """The auxiliary models of a run, by role."""
    return {role: identities[role] for role in roles if role in identities}
