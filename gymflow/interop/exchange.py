"""`gym eval import` and `gym eval export`, for code."""

import re
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from gymflow.contracts.agent import ComponentRef
from gymflow.contracts.environment import Manifest
from gymflow.contracts.exchange import ExportReport, ImportReport
from gymflow.contracts.run import VerdictSet
from gymflow.errors import InputError
from gymflow.interop import IMPORTED, format_module
from gymflow.interop.importing import Source, Target, import_foreign
from gymflow.interop.ours import own_rollouts
from gymflow.interop.restoring import restore
from gymflow.interop.rollouts import ForeignRollout, OwnRollout
from gymflow.interop.shapes import of_shape
from gymflow.registry import Registry
from gymflow.runtime.components import verifier_parameters
from gymflow.store import Store
from gymflow.suggest import did_you_mean

RECORDED = "recorded"
"""The verifier of an imported run for which none was named."""


async def import_file(
    store: Store,
    file: Path,
    format: str,
    registry: Registry,
    *,
    inputs: Path | None = None,
    environment: str | None = None,
    verifier: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    run_id: str | None = None,
    name: str | None = None,
) -> ImportReport:
    """Make a run of a file. `environment` or `verifier` names what it can be rescored with; `inputs` holds the rows that were
    asked, where the format keeps them apart. InputError names the file, the line and the field that cannot be read."""
    module = format_module(format)
    if not file.exists():
        raise InputError(f"there is no file {file}")

    def again() -> Iterator[ForeignRollout | OwnRollout]:
        return of_shape(module.read(file, inputs), file, format)

    source = again()
    first = next(source, None)
    if first is None:
        raise InputError(f"{file} holds no rollout")
    title = name or file.stem
    if isinstance(first, OwnRollout):
        given = {
            "--inputs": inputs,
            "--environment": environment,
            "--verifier": verifier,
            "--set": parameters,
            "--name": name,
        }
        if ignored := [option for option, value in given.items() if value]:
            raise InputError(
                f"{file} is a run of gymflow and comes back as it was; leave out {', '.join(ignored)} (`gym eval reverify` "
                "judges it otherwise)"
            )
        return await restore(store, first, source, again, run_id or _free_id(store, first), format)
    label, reference, manifest = _environment(registry, title, environment, verifier, parameters or {})
    target = Target(
        run_id=run_id or f"{_slug(title)}-{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(2)}",
        name=title,
        format=format,
        label=label,
        reference=reference,
        manifest=manifest,
        verifier=_verifier(registry, reference, manifest),
    )
    return await import_foreign(store, _foreign(chain([first], source)), _checked(again), target)


def export_run(store: Store, run: str, format: str, output: Path, *, verdict_set: str | None = None) -> ExportReport:
    """Write a run's stored rollouts, with the rewards of a verdict set (default: the current one). InputError where the output
    exists already."""
    module = format_module(format)
    reader = store.run(run)
    chosen = _with_those_taken_over(reader.verdict_sets, verdict_set)
    counts: Counter[str] = Counter()

    def counted() -> Iterator[OwnRollout]:
        for own in own_rollouts(reader):
            verdict = own.verdict_of(chosen)
            counts["rollouts"] += 1
            own.format = format if own.run else None
            counts["without"] += verdict is None or verdict.verdict is None
            yield own

    files = module.write(counted(), chosen, output)
    if not counts["rollouts"]:
        raise InputError(f"run {reader.run_id} holds no rollout yet; nothing was written")
    return ExportReport(
        run_id=reader.run_id,
        format=format,
        verdict_set=chosen[0] if chosen else None,
        files=[str(path) for path in files],
        rollouts=counts["rollouts"],
        without_reward=counts["without"],
        missing=reader.planned() - counts["rollouts"],
    )


def _with_those_taken_over(verdict_sets: Sequence[VerdictSet], name: str | None) -> list[str]:
    """A set by name, the current one if none is given, and the sets that its untouched verdicts are in."""
    by_name = {one.name: one for one in verdict_sets}
    if name is not None and name not in by_name:
        raise InputError(f"the run has no verdict set {name!r}; {did_you_mean(name, by_name)}")
    found: list[str] = []
    at = name or (verdict_sets[-1].name if verdict_sets else None)
    while at is not None and at not in found:
        found.append(at)
        at = by_name[at].refers_to if at in by_name else None
    return found


def _environment(
    registry: Registry, title: str, environment: str | None, verifier: str | None, parameters: Mapping[str, Any]
) -> tuple[str, str, Manifest]:
    """Label, reference and manifest of the imported run's environment."""
    if environment is not None:
        entry = registry.environment(environment)
        ref = entry.manifest.verifier
        if verifier is not None:
            ref = ComponentRef(name=verifier)
        ref = ref.model_copy(update={"parameters": ref.parameters | dict(parameters)})
        return entry.name, environment, entry.manifest.model_copy(update={"verifier": ref})
    manifest = Manifest(
        name=_slug(title),
        version="0",
        description="Rollouts of another tool.",
        domain=IMPORTED,
        licence="NOASSERTION",
        datasets={},
        verifier=ComponentRef(name=verifier or RECORDED, parameters=dict(parameters)),
        pass_threshold=1.0,
    )
    return manifest.name, "", manifest


def _verifier(registry: Registry, reference: str, manifest: Manifest) -> Any:
    cls = registry.verifier_class(manifest.verifier.name, registry.environment(reference) if reference else None)
    return cls(verifier_parameters(cls, manifest))


def _foreign(source: Iterator[ForeignRollout | OwnRollout]) -> Iterator[ForeignRollout]:
    for rollout in source:
        if not isinstance(rollout, ForeignRollout):
            raise InputError("the file mixes rollouts that gymflow exported with others; import them apart")
        yield rollout


def _checked(again: Source) -> Source:
    return lambda: _foreign(again())


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", text.lower()).strip("_")[:40] or IMPORTED


def _free_id(store: Store, first: OwnRollout) -> str:
    """The run's own id; another one where the store has it already."""
    run_id = first.record.rollout.run_id
    if not store.layout.run(run_id).document.exists():
        return run_id
    return f"{run_id}-{IMPORTED}-{secrets.token_hex(2)}"
