"""What differs between two runs, from what identifies them: vary one thing, and a difference has one cause."""

from typing import Any

from gymflow.analysis.compare.sides import Side
from gymflow.contracts.run import VerdictSet
from gymflow.metrics.summaries import model_name

RELEASE = "a release score, not an explanation"


def varies(base: Side, candidate: Side) -> list[str]:
    """Names among model, harness, prompt, sampling, dataset, environment, sandbox, engine, verifier and judge, sorted."""
    found = set(base.document.fingerprint.differing(candidate.document.fingerprint))
    models = _models(base), _models(candidate)
    if all(models):  # the fingerprint has all models of a run, and only one of them may be compared
        found = found - {"model"} | ({"model"} if models[0] != models[1] else set())
    if _harnesses(base) != _harnesses(candidate):
        found.add("harness")
    return sorted(found | _scoring(base, candidate))


def details(base: Side, candidate: Side) -> list[str]:
    """The same in words: names of models and harnesses, values of settings, as far as the runs' documents say them."""
    lines = []
    names = [{model_name(one) for one in _models(side).values()} for side in (base, candidate)]
    if names[0] != names[1]:
        lines.append(f"model {_said(names[0])} → {_said(names[1])}")
    configs = [
        side.document.config.model_dump(mode="json", include={"sampling", "budgets", "seed"})
        for side in (base, candidate)
    ]
    settings = [_flat(config) for config in configs]
    for key in sorted(settings[0].keys() | settings[1].keys()):
        before, after = settings[0].get(key), settings[1].get(key)
        if before != after:
            lines.append(f"{key} {_shown(before)} → {_shown(after)}")
    harnesses = [_harnesses(side) for side in (base, candidate)]
    for environment in sorted(harnesses[0].keys() & harnesses[1].keys()):
        before, after = (one[environment] for one in harnesses)
        if before != after:
            lines.append(f"harness of {environment}: {_harness(before)} → {_harness(after)}")
    return lines + _verifiers(base.verdict_set, candidate.verdict_set)


def _verifiers(base: VerdictSet | None, candidate: VerdictSet | None) -> list[str]:
    """How what judged differs, by environment: another verifier, other parameters, or other code."""
    if base is None or candidate is None:
        return []
    lines = []
    for environment in sorted(base.judged.keys() & candidate.judged.keys()):
        before, after = base.judged[environment], candidate.judged[environment]
        if before.verifier != after.verifier:
            lines.append(f"verifier of {environment}: {before.verifier} → {after.verifier}")
            continue
        parameters = [_flat(one.parameters.get(environment, {}), "verifier.") for one in (base, candidate)]
        for key in sorted(parameters[0].keys() & parameters[1].keys()):
            if parameters[0][key] != parameters[1][key]:
                lines.append(f"{key} {_shown(parameters[0][key])} → {_shown(parameters[1][key])}")
        if before.code_digest != after.code_digest:
            lines.append(f"verifier of {environment}: other code")
    return lines


def headline(name: str, found: list[str], said: list[str]) -> str:
    """The first line of a comparison: `varies: model (a → b)`, after the name of the candidate where there is one."""
    subject = f"{name} varies" if name else "varies"
    if not found:
        return f"{subject}: nothing; the same setting was sampled twice"
    explained = f" ({'; '.join(said)})" if said else ""
    return f"{subject}: {', '.join(found)}{explained}" + (f": {RELEASE}" if len(found) > 1 else "")


def _models(side: Side) -> dict[str, Any]:
    """Identity of the compared agent's model, by environment."""
    document = side.document
    found = {}
    for environment, agents in document.agents.items():
        spec = agents.get(side.agent)
        if spec is not None and spec.model in document.identities:
            found[environment.partition(":")[0]] = document.identities[spec.model]
    return found


def _harnesses(side: Side) -> dict[str, Any]:
    """Harness and parameters of the compared agent, by environment."""
    agents = side.document.agents.items()
    return {
        environment.partition(":")[0]: specs[side.agent].harness for environment, specs in agents if side.agent in specs
    }


def _scoring(base: Side, candidate: Side) -> set[str]:
    """By the verdict sets in force, which a rescoring may have changed since the run was planned."""
    if base.verdict_set is None or candidate.verdict_set is None:
        return set()
    sides = [
        {environment.partition(":")[0]: one.model_dump() for environment, one in side.judged.items()}
        for side in (base.verdict_set, candidate.verdict_set)
    ]
    found = set()
    for environment in sides[0].keys() & sides[1].keys():
        before, after = sides[0][environment], sides[1][environment]
        for name in before.keys() | after.keys():
            if before.get(name) != after.get(name):
                found.add("judge" if name == "judge" else "verifier")
    return found


def _flat(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _said(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "unknown"


def _harness(ref: Any) -> str:
    if ref is None:
        return "unknown"
    return f"{ref.name} {ref.parameters}" if ref.parameters else str(ref.name)


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)
