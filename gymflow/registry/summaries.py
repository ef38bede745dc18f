"""What `gym list` and `gym search` show of each component, the broken ones included."""

import ast
import importlib.util
import inspect
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from gymflow.contracts.environment import Manifest
from gymflow.errors import InputError
from gymflow.registry.roots import Found, Kind

if TYPE_CHECKING:
    from gymflow.registry.catalog import Registry


@dataclass(frozen=True, slots=True)
class Summary:
    """One line of a listing. `name` is qualified with its root where two roots have it; `details` differ by kind."""

    kind: str
    name: str
    description: str = ""
    root: str | None = None
    place: str | None = None
    version: str | None = None
    domain: str | None = None
    tags: list[str] = field(default_factory=list)
    licence: str | None = None
    external_licence: str | None = None
    broken: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


def environments(registry: "Registry") -> list[Summary]:
    """From the manifests alone."""
    listed = []
    for found, name in _named(registry, "environments"):
        manifest = _manifest(registry, found)
        if isinstance(manifest, str):
            listed.append(Summary("environment", name, root=found.root, place=str(found.place), broken=manifest))
            continue
        listed.append(
            Summary(
                "environment",
                name,
                manifest.description,
                found.root,
                str(found.place),
                manifest.version,
                manifest.domain,
                manifest.tags,
                manifest.licence,
                manifest.external_licence,
                details={
                    "splits": list(manifest.datasets),
                    "verifier": manifest.verifier.name,
                    "harness": manifest.harness.name,
                    "offers": list(manifest.offers),
                    "session": manifest.session,
                    "benchmarks": list(manifest.benchmarks),
                    "reward_range": list(manifest.reward_range),
                    "pass_threshold": manifest.passing_reward,
                },
            )
        )
    return listed


def benchmarks(registry: "Registry") -> list[Summary]:
    """Every benchmark overlay, with the environment that it belongs to."""
    listed = []
    for found, environment in _named(registry, "environments"):
        manifest = _manifest(registry, found)
        if isinstance(manifest, str):
            continue
        for name, benchmark in manifest.benchmarks.items():
            protocol = benchmark.model_dump(mode="json", exclude_defaults=True, exclude={"description", "version"})
            listed.append(
                Summary(
                    "benchmark",
                    name,
                    benchmark.description or manifest.description,
                    found.root,
                    str(found.place),
                    str(benchmark.version),
                    manifest.domain,
                    manifest.tags,
                    manifest.licence,
                    manifest.external_licence,
                    details={
                        "environment": environment,
                        "split": benchmark.split,
                        "repeats": benchmark.repeats,
                        "headline": benchmark.headline,
                        **protocol,
                    },
                )
            )
    return sorted(listed, key=lambda one: one.name)


def harnesses(registry: "Registry") -> list[Summary]:
    """With what they need of an environment, their parameters, and what of them is not installed."""
    listed = []
    for found, name in _named(registry, "harnesses"):
        try:
            cls = registry.harness_class(found.qualified)
        except InputError as error:
            listed.append(Summary("harness", name, root=found.root, place=str(found.place), broken=str(error)))
            continue
        missing = cls.missing()
        listed.append(
            Summary(
                "harness",
                name,
                _headline(cls),
                found.root,
                str(found.place),
                cls.version,
                licence=cls.licence,
                external_licence=cls.external_licence,
                details={
                    "needs": sorted(cls.needs),
                    "parameters": _parameters(cls.Parameters),
                    "missing": missing,
                    "installed": missing is None,
                },
            )
        )
    return listed


def verifiers(registry: "Registry") -> list[Summary]:
    """With the evidence they need, how they can be rerun, their parameters and the task fields they read."""
    listed = []
    for found, name in _named(registry, "verifiers"):
        try:
            cls = registry.verifier_class(found.qualified)
        except InputError as error:
            listed.append(Summary("verifier", name, root=found.root, place=str(found.place), broken=str(error)))
            continue
        fields: type[BaseModel] | None = getattr(cls, "task_fields", None)
        listed.append(
            Summary(
                "verifier",
                name,
                _headline(cls),
                found.root,
                str(found.place),
                cls.version,
                details={
                    "needs": sorted(cls.needs),
                    "rerun": cls.rerun,
                    "parameters": _parameters(cls.Parameters),
                    "task_fields": _parameters(fields) if fields else {},
                },
            )
        )
    return listed


def models() -> list[Summary]:
    """Model providers."""
    from gymflow.models.providers import PROVIDERS

    return [Summary("model", name, description) for name, (_, description) in sorted(PROVIDERS.items())]


def sandboxes() -> list[Summary]:
    """Sandbox providers, and the extra that installs what they need; their modules are not imported."""
    from gymflow.sandboxes.registry import PROVIDERS

    listed = []
    for name, (target, extra) in PROVIDERS.items():
        spec = importlib.util.find_spec(target.partition(":")[0])
        source = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
        description = _first_paragraph(ast.get_docstring(ast.parse(source)))
        details = {"extra": extra} if extra else {}
        listed.append(Summary("sandbox", name, description, details=details))
    return listed


def _named(registry: "Registry", kind: Kind) -> list[tuple[Found, str]]:
    found = registry.found(kind)
    count = Counter(one.name for one in found)
    return [(one, one.name if count[one.name] == 1 else one.qualified) for one in found]


def _manifest(registry: "Registry", found: Found) -> Manifest | str:
    try:
        return registry.environment(found.qualified).manifest
    except InputError as error:
        return str(error)


def _headline(cls: type) -> str:
    return _first_paragraph(inspect.getdoc(inspect.getmodule(cls)) or inspect.getdoc(cls))


def _first_paragraph(documentation: str | None) -> str:
    return (documentation or "").partition("\n\n")[0].replace("\n", " ")


def _parameters(model: type[BaseModel]) -> dict[str, str]:
    """Name -> type and default, in the notation of the source."""
    described = {}
    for name, info in model.model_fields.items():
        annotation = info.annotation
        kind = annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
        described[name] = kind if info.is_required() else f"{kind} = {info.get_default(call_default_factory=True)!r}"
    return described
