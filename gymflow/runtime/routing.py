"""Which agent plays which task."""

from collections import Counter
from dataclasses import dataclass, field

from gymflow.contracts.agent import AgentSpec, ComponentRef
from gymflow.contracts.environment import Manifest
from gymflow.contracts.run import RunConfig
from gymflow.contracts.task import Task
from gymflow.errors import InputError


@dataclass(slots=True)
class Router:
    """Resolves a task's agents in one environment. `defaulted` counts references that fell back to the default harness."""

    config: RunConfig
    manifest: Manifest
    explicit: ComponentRef | None
    harness_names: frozenset[str]
    defaulted: Counter[str] = field(default_factory=Counter)

    def agents(self, task: Task) -> dict[str, AgentSpec]:
        """Agent name -> spec with its harness. Explicit harness > the `agents` map > a harness of that name > default."""
        wanted = task.agent_ref.name if task.agent_ref else None
        named = self.config.agents
        if wanted is not None and wanted in named and self.explicit is None:
            return {wanted: self._completed(named[wanted], None)}
        if named and (wanted is None or self.explicit is not None):
            return {name: self._completed(spec, self.explicit) for name, spec in named.items()}
        harness = self.explicit or self._referred(wanted)
        return {
            self._name(harness.name, model): AgentSpec(harness=harness, model=model)
            for model in self.config.models_sampled
        }

    def _completed(self, spec: AgentSpec, explicit: ComponentRef | None) -> AgentSpec:
        return spec.model_copy(update={"harness": explicit or spec.harness or self.manifest.harness})

    def _referred(self, wanted: str | None) -> ComponentRef:
        if wanted is None:
            return self.manifest.harness
        if wanted in self.harness_names:
            return ComponentRef(name=wanted)
        if self.config.strict_routing:
            raise InputError(
                f"{self.manifest.name}: a task refers to agent {wanted!r}, which is neither in `agents` nor a harness; "
                "name it in `agents`, or leave out --strict-routing"
            )
        self.defaulted[wanted] += 1
        return self.manifest.harness

    def _name(self, harness: str, model: str) -> str:
        return harness if len(self.config.models_sampled) == 1 else f"{harness}@{model}"
