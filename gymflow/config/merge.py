"""An environment as one run uses it: manifest < benchmark < the run's own selection."""

from typing import Any

from gymflow.contracts.environment import Benchmark, Manifest
from gymflow.contracts.run import EnvironmentSelection
from gymflow.contracts.sandbox import merged
from gymflow.errors import InputError
from gymflow.registry import EnvironmentEntry
from gymflow.suggest import did_you_mean


def merge_environment(entry: EnvironmentEntry, selection: EnvironmentSelection) -> Manifest:
    """The manifest with the benchmark's prompt, harness and verifier, and the run's parameters, put in. InputError for an unknown
    benchmark or session parameter, and for a sandbox where the environment asks for none; parameters of verifiers and harnesses are
    checked against their models where those are loaded."""
    manifest = entry.manifest
    benchmark = benchmark_of(entry, selection)
    changes: dict[str, Any] = {}
    if benchmark and benchmark.prompt:
        changes["prompt"] = benchmark.prompt
    if harness := selection.harness or (benchmark.harness if benchmark else None):
        changes["harness"] = harness
    verifier = benchmark.verifier if benchmark and benchmark.verifier else manifest.verifier
    parameters = {**verifier.parameters, **selection.verifier}
    if "sandbox" in selection.verifier:
        parameters["sandbox"] = merged(verifier.parameters.get("sandbox"), selection.verifier["sandbox"])
    changes["verifier"] = verifier.model_copy(update={"parameters": parameters})
    if selection.session:
        changes["session_parameters"] = _session_parameters(entry, selection)
    if selection.sandbox:
        if manifest.sandbox is None:
            raise InputError(f"sandbox.{next(iter(selection.sandbox))}: {entry.name} asks for no sandbox")
        changes["sandbox"] = merged(manifest.sandbox, selection.sandbox)
    return manifest.model_copy(update=changes)


def benchmark_of(entry: EnvironmentEntry, selection: EnvironmentSelection) -> Benchmark | None:
    """The selected benchmark overlay, if one is selected."""
    if selection.benchmark is None:
        return None
    known = entry.manifest.benchmarks
    if selection.benchmark not in known:
        raise InputError(
            f"{entry.name} has no benchmark {selection.benchmark!r}; {did_you_mean(selection.benchmark, known)}"
        )
    return known[selection.benchmark]


def _session_parameters(entry: EnvironmentEntry, selection: EnvironmentSelection) -> dict[str, Any]:
    known = entry.manifest.session_parameters
    if unknown := [name for name in selection.session if name not in known]:
        raise InputError(
            f"{entry.name}: there is no session parameter {unknown[0]!r} in {entry.manifest_file.name}; "
            f"{did_you_mean(unknown[0], known)}"
        )
    return {**known, **selection.session}
