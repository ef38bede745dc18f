"""From a run configuration to the plan of its rollouts, and what identifies the run."""

import logging
import platform
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from gymflow import __version__, keys
from gymflow.config import benchmark_of, merge_environment
from gymflow.contracts.agent import AgentSpec
from gymflow.contracts.environment import Benchmark, Manifest
from gymflow.contracts.model import ModelIdentity, Sampling
from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.contracts.run import EnvironmentOfRun, EnvironmentSelection, Fingerprint, RunConfig, RunDocument
from gymflow.contracts.task import Task
from gymflow.datasets import dataset_digest, load_rows, rendered
from gymflow.errors import InputError
from gymflow.registry import EnvironmentEntry, Registry
from gymflow.runtime.components import (
    RunAgent,
    RunEnvironment,
    effective_sampling,
    identities_of,
    run_agent,
    run_environment,
)
from gymflow.runtime.judging import ROLE as JUDGE
from gymflow.runtime.judging import judge_identity
from gymflow.runtime.routing import Router
from gymflow.runtime.sandboxing import identified
from gymflow.secrets import mask

log = logging.getLogger(__name__)

DISTRIBUTIONS = ("pydantic", "duckdb", "pyarrow", "openai", "prefect")


@dataclass(slots=True)
class Selected:
    """One environment of the run: what was selected, merged and loaded."""

    label: str
    selection: EnvironmentSelection
    entry: EnvironmentEntry
    manifest: Manifest
    benchmark: Benchmark | None
    split: str
    repeats: int
    environment: RunEnvironment
    environment_digest: str
    router: Router
    agents: dict[str, RunAgent] = field(default_factory=dict)
    specs: dict[str, AgentSpec] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    sandbox: dict[str, Any] | None = None
    """The manifest's, with what its image holds (see `identify_sandboxes`)."""


@dataclass(slots=True)
class _Row:
    """What the plan keeps of a task while it lists the repeats."""

    index: int
    task_key: str
    task_id: str
    selected: Selected
    agents: tuple[str, ...]
    sampling: dict[str, Any]
    occurrence: int


class Planner:
    """Resolves a configuration against the registry. `tasks` has to be consumed before `rollouts`."""

    def __init__(self, config: RunConfig, registry: Registry, identities: Mapping[str, ModelIdentity]) -> None:
        self.config = config
        self.registry = registry
        self.identities = identities
        self.judge = judge_identity(config.models, identities)
        self.selected = self._select()
        self._rows: list[_Row] = []

    def tasks(
        self, first_index: int = 0, known: Mapping[tuple[str, str], tuple[int, str]] | None = None
    ) -> Iterator[PlannedTask]:
        """The tasks of the selection in dataset order. A task of `known` (by environment and row digest, or task id) keeps its
        index and task key and is not yielded again."""
        known = known or {}
        index = first_index
        seen: Counter[tuple[str, str]] = Counter()
        for selected in self.selected:
            for task_id, task in self._rows_of(selected):
                key = keys.task_key(task, selected.manifest.sandbox)
                digest = keys.row_digest(task)
                occurrence = seen[selected.label, key]
                seen[selected.label, key] += 1
                old = known.get((selected.label, digest)) or known.get((selected.label, task_id))
                at, key = old or (index, key)
                self._rows.append(
                    _Row(
                        index=at,
                        task_key=key,
                        task_id=task_id,
                        selected=selected,
                        agents=self._agents(selected, task),
                        sampling=_row_sampling(task),
                        occurrence=occurrence,
                    )
                )
                if old is None:
                    index += 1
                    yield PlannedTask(
                        task_index=at,
                        task_key=key,
                        row_digest=digest,
                        environment=selected.label,
                        split=selected.split,
                        task_id=task_id,
                        tags=task.tags,
                        cluster=task.cluster,
                        task=task.model_dump(mode="python", exclude_none=True),
                    )

    async def identify_sandboxes(self) -> None:
        """Ask the providers what their images hold, which is part of the rollout keys. Call it before `tasks`."""
        for selected in self.selected:
            selected.sandbox = await identified(selected.manifest.sandbox)

    async def preflight(self) -> None:
        """Whether the harnesses can play here. Raises InputError. Call it after `tasks`, when all agents are known."""
        for selected in self.selected:
            for agent in selected.agents.values():
                await agent.harness.preflight(selected.manifest)

    def warn_of_defaults(self) -> None:
        """Say how many tasks refer to an agent that the run does not have, once per name. Call it after `tasks`."""
        for selected in self.selected:
            for wanted, count in sorted(selected.router.defaulted.items()):
                log.warning(
                    "%s: %d tasks refer to agent %r, which is neither in `agents` nor a harness; they are played by %r",
                    selected.label,
                    count,
                    wanted,
                    selected.manifest.harness.name,
                )

    def rollouts(
        self, first_index: int = 0, first_chunk: int = 0, known: frozenset[tuple[int, str, int]] = frozenset()
    ) -> Iterator[PlannedRollout]:
        """Repeat by repeat, so that a run that is cut short has seen all tasks equally often. What is in `known` (task index,
        agent, repeat) is planned already. A shard has every n-th rollout of the whole plan, so that shards that grow by the same
        repeats stay apart."""
        size, index, listed, place = self.config.limits.chunk_size, first_index, 0, -1
        shard = self.config.shard
        for repeat in range(max((row.selected.repeats for row in self._rows), default=0)):
            for row in self._rows:
                if repeat >= row.selected.repeats:
                    continue
                seed = self._seed(row, repeat)
                for agent in row.agents:
                    place += 1
                    if (row.index, agent, repeat) in known:
                        continue
                    key = keys.rollout_key(
                        row.selected.digests[agent],
                        row.task_key,
                        row_sampling=row.sampling,
                        seed=seed,
                        repeat=repeat,
                        occurrence=row.occurrence,
                    )
                    if shard is None or place % shard.count == shard.index:
                        yield PlannedRollout(
                            plan_index=index,
                            task_index=row.index,
                            task_key=row.task_key,
                            task_id=row.task_id,
                            environment=row.selected.label,
                            split=row.selected.split,
                            agent=agent,
                            repeat=repeat,
                            seed=seed,
                            chunk=first_chunk + listed // size,
                            rollout_key=key,
                        )
                        listed += 1
                    index += 1

    def document(self, run_id: str, name: str | None = None) -> RunDocument:
        """`run.json`. Call it after `tasks`, when all agents are known."""
        return RunDocument(
            run_id=run_id,
            name=name or self.config.name or "+".join(selected.label for selected in self.selected),
            created_at=time.time(),
            config=mask(self.config),
            fingerprint=self.fingerprint(),
            environments={
                one.label: EnvironmentOfRun(
                    reference=one.selection.name,
                    split=one.split,
                    benchmark=one.selection.benchmark,
                    manifest=one.manifest,
                )
                for one in self.selected
            },
            agents={selected.label: selected.specs for selected in self.selected},
            identities=dict(self.identities),
            versions={"gymflow": __version__, "python": platform.python_version(), "platform": platform.platform()}
            | {name: version(name) for name in DISTRIBUTIONS},
        )

    def fingerprint(self) -> Fingerprint:
        """Digests of the configuration without selection, repeats and shard, which may grow."""
        config, selected = self.config, self.selected
        by_label = {one.label: one for one in selected}
        harnesses = {
            label: [one.manifest.harness.model_dump(mode="json"), _dump(one.selection.harness)]
            for label, one in by_label.items()
        }
        used = {one.selection.harness.name for one in selected if one.selection.harness}
        used |= {one.manifest.harness.name for one in selected}
        used |= {spec.harness.name for spec in config.agents.values() if spec.harness}
        return Fingerprint(
            sampling={
                "model": keys.digest(
                    {name: one.model_dump(mode="json") for name, one in self.identities.items() if name != JUDGE}
                ),
                "harness": keys.digest(
                    {
                        "code": {name: self.registry.harness_digest(name) for name in sorted(used)},
                        "by_environment": harnesses,
                        "agents": {name: spec.model_dump(mode="json") for name, spec in config.agents.items()},
                    }
                ),
                "prompt": keys.digest({label: _dump(one.manifest.prompt) for label, one in by_label.items()}),
                "sampling": keys.digest(
                    {
                        "sampling": {
                            name: keys.sampling_digest(effective_sampling(config, name, None))
                            for name in config.models
                            if name != JUDGE
                        },
                        "benchmarks": {
                            label: _dump(one.benchmark.sampling if one.benchmark else None)
                            for label, one in by_label.items()
                        },
                        "budgets": config.budgets.model_dump(mode="json"),
                        "seed": config.seed,
                    }
                ),
                "dataset": keys.digest(
                    {label: dataset_digest(one.entry, one.split) for label, one in by_label.items()}
                ),
                "environment": keys.digest({label: one.environment_digest for label, one in by_label.items()}),
                "sandbox": keys.digest({label: one.sandbox for label, one in by_label.items()}),
                "engine": keys.digest(keys.SAMPLING_PROTOCOL),
            },
            scoring={
                "verifier": keys.digest(
                    {label: one.environment.judged.model_dump(mode="json") for label, one in by_label.items()}
                ),
                "judge": keys.digest(self.judge),
            },
        )

    def _select(self) -> list[Selected]:
        names = Counter(self.registry.environment(one.name).name for one in self.config.environments)
        chosen: list[Selected] = []
        for selection in self.config.environments:
            entry = self.registry.environment(selection.name)
            manifest = merge_environment(entry, selection)
            benchmark = benchmark_of(entry, selection)
            split = selection.split or (benchmark.split if benchmark else "test")
            label = manifest.name if names[entry.name] == 1 else f"{manifest.name}:{selection.benchmark or split}"
            if label in {one.label for one in chosen}:
                raise InputError(f"{label} is selected twice; select different splits or benchmarks of it")
            explicit = selection.harness or (benchmark.harness if benchmark else None)
            chosen.append(
                Selected(
                    label=label,
                    selection=selection,
                    entry=entry,
                    manifest=manifest,
                    benchmark=benchmark,
                    split=split,
                    repeats=self.config.repeats or (benchmark.repeats if benchmark else 1),
                    environment=run_environment(self.registry, entry, manifest, self.judge),
                    environment_digest=self.registry.environment_digest(entry, manifest),
                    router=Router(self.config, manifest, explicit, self.registry.harness_names),
                )
            )
        return chosen

    def _rows_of(self, selected: Selected) -> Iterator[tuple[str, Task]]:
        """The selected tasks with rendered input, by id."""
        selection, taken = selected.selection, 0
        wanted = set(selection.tasks or ())
        rows = load_rows(
            selected.entry,
            selected.split,
            manifest=selected.manifest,
            task_fields=selected.environment.verifier.task_fields,
            skip_bad=self.config.skip_bad_rows,
        )
        for task in rows if selection.limit != 0 else ():
            task_id = str(task.task_id)
            if selection.tasks is not None and task_id not in wanted:
                continue
            create = task.responses_create_params.model_copy(update={"input": rendered(task, selected.manifest)})
            yield task_id, task.model_copy(update={"responses_create_params": create})
            wanted.discard(task_id)
            taken += 1
            if taken == selection.limit:
                return
        if wanted and selection.limit is None:
            raise InputError(f"{selected.label}: split {selected.split!r} has no task {', '.join(sorted(wanted))}")

    def _agents(self, selected: Selected, task: Task) -> tuple[str, ...]:
        specs = selected.router.agents(task)
        for name, spec in specs.items():
            if name not in selected.specs:
                self._add_agent(selected, name, spec)
        return tuple(specs)

    def _add_agent(self, selected: Selected, name: str, spec: AgentSpec) -> None:
        if spec.model not in self.config.models:
            known = ", ".join(self.config.models)
            raise InputError(f"agent {name!r}: there is no model {spec.model!r} in `models`; there are: {known}")
        assert spec.harness is not None
        benchmark = selected.benchmark.sampling if selected.benchmark else None
        sampling: Sampling = effective_sampling(self.config, spec.model, benchmark)
        selected.specs[name] = spec
        selected.agents[name] = agent = run_agent(self.registry, spec, sampling)
        selected.digests[name] = keys.agent_digest(
            environment_digest=selected.environment_digest,
            harness_digest=self.registry.harness_digest(spec.harness.name),
            harness_parameters=agent.harness.parameters.model_dump(mode="json"),
            model=self.identities[spec.model],
            sampling=sampling,
            auxiliary=identities_of(self.identities, ("user",)),
            budgets=self.config.budgets.model_dump(mode="json"),
            sandbox=selected.sandbox,
        )

    def _seed(self, row: _Row, repeat: int) -> int | None:
        if self.config.seed is None:
            return None
        return keys.derived_seed(self.config.seed, row.task_key, row.occurrence, repeat)


def _row_sampling(task: Task) -> dict[str, Any]:
    create = task.responses_create_params
    return {
        name: value
        for name in ("temperature", "top_p", "max_output_tokens")
        if (value := getattr(create, name)) is not None
    }


def _dump(value: Any) -> Any:
    return None if value is None else value.model_dump(mode="json", exclude_none=True)
