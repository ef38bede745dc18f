"""Several verifiers in one: a weighted mean or sum of components, multiplied by gates.

>>> total({"answer": 1.0, "format": 0.0}, {"answer": 3.0, "format": 1.0}, "mean")
0.75
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from gymflow.errors import InputError
from gymflow.registry import Registry
from gymflow.verifiers import BaseParameters, Evidence, Rerun, Verdict, Verifier, VerifierError, VerifierTimeout

_WEAKEST: tuple[Rerun, ...] = ("live", "recorded", "replay", "stateless")


class Component(BaseModel):
    """One verifier of a composite. A `gate` multiplies the total by its reward instead of adding to it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    verifier: str
    name: str | None = Field(None, description="Under which its reward is reported; default: the verifier's name.")
    parameters: dict[str, Any] = Field(default_factory=dict)
    weight: float = Field(1.0, gt=0, allow_inf_nan=False)
    gate: bool = False

    @property
    def label(self) -> str:
        """The reported name."""
        return self.name or self.verifier


class CompositeTask(BaseModel):
    """All fields of the row; each component reads its own."""

    model_config = ConfigDict(extra="allow")


class Composite(Verifier[CompositeTask]):
    """Reward: the weighted mean (or sum) of the components' rewards, times the gates'.

    A component that cannot decide makes the whole undecided; none counts as zero. What it needs and how it can be rerun is the union
    and the weakest of its components'. Its code digest covers every verifier in this folder.
    """

    includes = (".",)
    distributions = ("math-verify", "latex2sympy2-extended", "sympy", "jsonschema")

    class Parameters(BaseParameters):
        """Components with different names; at least one is no gate."""

        components: tuple[Component, ...] = Field(min_length=1)
        total: Literal["mean", "sum"] = "mean"

        @model_validator(mode="after")
        def _distinct(self) -> "Composite.Parameters":
            labels = [component.label for component in self.components]
            if len(set(labels)) < len(labels):
                raise ValueError("two components have the same name; set `name` on one of them")
            if all(component.gate for component in self.components):
                raise ValueError("a composite of gates alone has nothing to add up")
            return self

    def __init__(self, parameters: BaseModel | None = None) -> None:
        super().__init__(parameters)
        registry = Registry()
        self._parts = {one.label: _part(registry, one) for one in self.parameters.components}
        self.__dict__.update(  # what other verifiers declare once depends on the components here
            needs=frozenset().union(*(part.needs for part in self._parts.values())),
            extracts=any(part.extracts for part in self._parts.values()),
            rerun=min((part.rerun for part in self._parts.values()), key=_WEAKEST.index),
            task_fields=_task_fields(self._parts),
        )

    def lenient(self) -> BaseModel | None:
        """Every component that has a lenient twin, lenient."""
        twins = {label: part.lenient() for label, part in self._parts.items()}
        if not any(twins.values()):
            return None
        components = tuple(
            component.model_copy(update={"parameters": twin.model_dump()})
            if (twin := twins[component.label])
            else component
            for component in self.parameters.components
        )
        lenient: BaseModel = self.parameters.model_copy(update={"components": components})
        return lenient

    def cautions(self) -> list[str]:
        """Those of the components."""
        return [f"component {label}: {caution}" for label, part in self._parts.items() for caution in part.cautions()]

    async def open(self) -> None:
        """Open the components."""
        for part in self._parts.values():
            await part.open()

    async def close(self) -> None:
        """Close the components."""
        for part in self._parts.values():
            await part.close()

    async def verify(self, task: CompositeTask, evidence: Evidence) -> Verdict:
        """Raises VerifierError, with the component's name, where one cannot decide."""
        row = task.model_dump(exclude_unset=True)
        verdicts = dict(
            zip(
                self._parts,
                await asyncio.gather(*(_verdict(label, part, row, evidence) for label, part in self._parts.items())),
                strict=True,
            )
        )
        rewards = {label: verdict.reward for label, verdict in verdicts.items()}
        gates = [component.label for component in self.parameters.components if component.gate]
        weights = {one.label: one.weight for one in self.parameters.components if not one.gate}
        reward = total(rewards, weights, self.parameters.total)
        for gate in gates:
            reward *= rewards[gate]
        reasons = [f"{label}: {verdict.reason}" for label, verdict in verdicts.items() if verdict.reason]
        return Verdict(
            reward=reward,
            components=rewards,
            extracted_answer=next((one.extracted_answer for one in verdicts.values() if one.extracted_answer), None),
            reason="; ".join(reasons) or None,
            anchors=tuple(anchor for verdict in verdicts.values() for anchor in verdict.anchors),
            masked=any(verdict.masked for verdict in verdicts.values()),
            details={label: verdict.details for label, verdict in verdicts.items() if verdict.details},
        )


def total(rewards: Mapping[str, float], weights: Mapping[str, float], how: Literal["mean", "sum"]) -> float:
    """Weighted sum of the rewards that have a weight, or that sum over the weights."""
    added = sum(rewards[label] * weight for label, weight in weights.items())
    return added / sum(weights.values()) if how == "mean" else added


def _part(registry: Registry, component: Component) -> Verifier[Any]:
    cls = registry.verifier_class(component.verifier)
    try:
        return cls(cls.Parameters.model_validate(component.parameters))
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise InputError(f"composite component {component.label!r}: parameters: {faults}") from None


async def _verdict(label: str, part: Verifier[Any], row: dict[str, Any], evidence: Evidence) -> Verdict:
    try:
        return await part.verify(part.task_fields.model_validate(row), evidence)
    except VerifierTimeout as error:
        raise VerifierTimeout(f"component {label}: {error}") from error
    except Exception as error:
        failed = VerifierError(f"component {label}: {error}")
        failed.failure = getattr(error, "failure", failed.failure)
        raise failed from error


def _task_fields(parts: Mapping[str, Verifier[Any]]) -> type[BaseModel]:
    """A task model that checks a row against every component's."""

    def check(task: BaseModel) -> BaseModel:
        faults = []
        for label, part in parts.items():
            try:
                part.task_fields.model_validate(task.model_dump(exclude_unset=True))
            except ValidationError as error:
                faults += [f"{label}: {'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        if faults:
            raise ValueError("; ".join(faults))
        return task

    validators: dict[str, Any] = {"each": model_validator(mode="after")(check)}
    return create_model("CompositeTask", __base__=CompositeTask, __validators__=validators)
