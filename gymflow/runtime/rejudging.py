"""What a rescoring judges with: the verifiers and the judge model of a run, with what is changed of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gymflow.contracts.agent import ComponentRef
from gymflow.contracts.model import ModelIdentity, ModelSpec
from gymflow.contracts.run import RunConfig, RunDocument, VerdictSet
from gymflow.contracts.verdict import Judged
from gymflow.documents import Document
from gymflow.errors import InputError
from gymflow.models.gateway import Gateway
from gymflow.registry import Registry
from gymflow.runtime.components import RunEnvironment, run_environment
from gymflow.runtime.judging import ROLE as JUDGE
from gymflow.runtime.judging import judge_identity

NOT_RERUN = ("recorded", "live")
"""Verifiers whose verdict came from what is gone: a running system, or an environment's own word."""

JUDGED_BY = {
    "verifier": "the verifier",
    "version": "its version",
    "code_digest": "its code",
    "parameter_digest": "its parameters",
    "judge": "the judge model",
}
"""What of a `Judged` differs, in words."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a rescoring does otherwise than the run: parameters over the run's, another verifier, fields of the judge model. With
    `failed_only` only rollouts without a reward in the current set are judged again, by what judged that set."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    verifier: str | None = None
    judge: Mapping[str, Any] = field(default_factory=dict)
    failed_only: bool = False


def with_judge(
    document: RunDocument, changes: Mapping[str, Any], completed: VerdictSet | None
) -> tuple[RunConfig, dict[str, ModelIdentity]]:
    """The run's configuration and identities, with the judge model of the set to complete, and the changes that are given."""
    before = document.config.models.get(JUDGE)
    given = before.model_dump(exclude_unset=True) if before else {}
    asked = next((one.judge for one in completed.judged.values() if one.judge), None) if completed else None
    if asked is not None and asked != judge_identity(document.config.models, document.identities):
        given = (given if given.get("provider") == asked["provider"] else {}) | asked
    elif not changes:
        return document.config, document.identities
    spec = Document("--set judge", given | dict(changes)).validated(ModelSpec)
    config = document.config.model_copy(update={"models": document.config.models | {JUDGE: spec}})
    return config, document.identities | Gateway({JUDGE: spec}).identities()


def environments_of(
    registry: Registry,
    document: RunDocument,
    change: Change,
    judge: dict[str, Any] | None,
    completed: VerdictSet | None,
) -> tuple[dict[str, RunEnvironment], dict[str, str]]:
    """The environments with the changed verifiers, and why others cannot be judged again. A parameter goes to the verifiers that
    have it. InputError where they would not judge as the set to complete was judged."""
    environments: dict[str, RunEnvironment] = {}
    refused: dict[str, str] = {}
    unknown = dict(change.parameters)
    for label, one in document.environments.items():
        entry = registry.environment(one.reference) if one.reference else None
        before = one.manifest.verifier
        if completed is not None:
            before = ComponentRef(name=completed.judged[label].verifier, parameters=completed.parameters.get(label, {}))
            if label not in completed.parameters:
                refused[label] = f"verdict set {completed.name} took its verdicts over from {before.name!r}: they stay"
                continue
        name = change.verifier or before.name
        known = registry.verifier_class(name, entry).Parameters.model_fields
        parameters = dict(before.parameters) if name == before.name else {}
        for parameter in known.keys() & change.parameters.keys():
            parameters[parameter] = change.parameters[parameter]
            unknown.pop(parameter, None)
        ref = ComponentRef(name=name, parameters=parameters)
        environment = run_environment(registry, entry, one.manifest.model_copy(update={"verifier": ref}), judge)
        if environment.verifier.rerun in NOT_RERUN:
            refused[label] = f"verifier {name!r} is {environment.verifier.rerun}: its verdicts cannot be made again"
        else:
            environments[label] = environment
            if completed is not None:
                _same_judging(label, completed, environment.judged)
    if unknown:
        names = {one.verifier.__class__.__name__: one.verifier.Parameters.model_fields for one in environments.values()}
        known_ones = "; ".join(f"{name}: {', '.join(fields) or 'none'}" for name, fields in names.items())
        raise InputError(f"no verifier of the run has a parameter {', '.join(unknown)}; parameters of {known_ones}")
    return environments, refused


def _same_judging(label: str, completed: VerdictSet, now: Judged) -> None:
    """InputError where a set would hold verdicts that came about differently."""
    before = completed.judged[label]
    differing = [what for field, what in JUDGED_BY.items() if getattr(before, field) != getattr(now, field)]
    if differing:
        raise InputError(
            f"{label}: --failed-only completes verdict set {completed.name} as it was judged, by {before.verifier!r}, and now "
            f"{' and '.join(differing)} differ; leave --failed-only out to judge every rollout"
        )
