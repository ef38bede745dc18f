"""Everything that can be known about an environment before a model is started."""

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel

from gymflow.config import check_metrics, merge_environment
from gymflow.contracts.agent import ComponentRef
from gymflow.contracts.environment import Manifest
from gymflow.contracts.run import EnvironmentSelection, RunConfig
from gymflow.contracts.sandbox import SandboxSpec
from gymflow.datasets.prompt import compiled
from gymflow.environments import Session
from gymflow.errors import InputError
from gymflow.harnesses import Harness
from gymflow.models.gateway import Gateway
from gymflow.registry import EnvironmentEntry, Registry
from gymflow.registry.digests import installed_versions
from gymflow.runtime.components import validated, verifier_parameters
from gymflow.runtime.judging import ROLE as JUDGE
from gymflow.runtime.judging import judge_model
from gymflow.runtime.sandboxing import require_sandboxes
from gymflow.validation.cache import SplitCache
from gymflow.validation.licences import licence_fault
from gymflow.validation.preflight import Preflight
from gymflow.validation.report import Fault, ValidationReport
from gymflow.validation.splits import check_split
from gymflow.verifiers import Verifier

FREE_JUDGES = ("scripted", "embedded")
"""Providers whose models run here: a judge of theirs may be asked before the run."""

P = ParamSpec("P")
T = TypeVar("T")


async def validate_run(config: RunConfig, registry: Registry) -> list[ValidationReport]:
    """Validate every environment of a run as it will be used. InputError when one cannot be run."""
    reports = []
    for selection in config.environments:
        entry = registry.environment(selection.name)
        benchmark = entry.manifest.benchmarks.get(selection.benchmark or "")
        check_metrics(config.metrics, config.repeats or (benchmark.repeats if benchmark else 1))
        named = [spec.harness for spec in config.agents.values() if spec.harness]
        report = await validate_environment(entry, registry, selection, harnesses=named, config=config)
        report.require(config.skip_bad_rows)
        report.warnings += [
            f"{split.split}: {split.bad_rows} of {split.rows} rows are bad and left out"
            for split in report.splits
            if split.bad_rows
        ]
        reports.append(report)
    return reports


async def validate_environment(
    entry: EnvironmentEntry,
    registry: Registry,
    selection: EnvironmentSelection | None = None,
    harnesses: Iterable[ComponentRef] = (),
    cache: SplitCache | None = None,
    config: RunConfig | None = None,
) -> ValidationReport:
    """Check the manifest, what it refers to, every row of every split, and the verifier against its fixtures.

    `selection` is what a run changes about the environment; `harnesses` are further ones that the run uses on it; `config` is the
    run's, whose judge model scores the fixtures if it costs nothing. Nothing is raised for what is wrong with the environment:
    the report lists it.
    """
    check = _Check(entry, registry, ValidationReport(entry.name, str(entry.folder), entry.manifest.version))
    manifest = check.attempt(merge_environment, entry, selection or EnvironmentSelection(name=entry.name))
    if manifest is None:
        return check.report
    check.manifest(manifest)
    usable = True
    if manifest.sandbox is not None:
        usable = await check.sandbox(manifest.sandbox)
    for harness in (manifest.harness, *harnesses):
        left = check.attempt(check_harness, registry, manifest, harness)
        if left:
            check.report.warnings.append(
                f"harness {harness.name} leaves unused what the environment offers: {', '.join(left)}"
            )
    session = check.attempt(registry.session_class, entry)
    verifier = check.attempt(_verifier, registry, entry, manifest)
    check.report.warnings += verifier.cautions() if verifier is not None else []
    check.splits(manifest, verifier, cache or SplitCache())
    # A verdict that needs a sandbox would only say once more, for every fixture, why there is none.
    if session is not None and verifier is not None and (usable or "sandbox" not in verifier.needs):
        await check.preflight(manifest, session, verifier, config)
    return check.report


def check_harness(registry: Registry, manifest: Manifest, harness: ComponentRef) -> list[str]:
    """What the environment offers and the harness leaves unused. InputError when the harness does not exist, its parameters are
    wrong, or it needs what the environment does not offer."""
    cls = registry.harness_class(harness.name)
    validated(cls.Parameters, harness, f"harness {harness.name!r}")
    if reason := unfit(cls, manifest):
        raise InputError(f"harness {harness.name} cannot play {manifest.name}: {reason}")
    return [offer for offer in manifest.offers if offer not in cls.needs | cls.uses | {"messages"}]


def unfit(harness: type[Harness], manifest: Manifest) -> str | None:
    """Why a harness cannot play an environment, or None when it can."""
    lacking = sorted(harness.needs - set(manifest.offers))
    if not lacking:
        return None
    return f"it needs {', '.join(lacking)}, and the environment offers only {', '.join(manifest.offers)}"


@dataclass(slots=True)
class _Check:
    entry: EnvironmentEntry
    registry: Registry
    report: ValidationReport
    renders: bool = True

    def attempt(self, look: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The value, or None with the reason among the faults."""
        try:
            return look(*args, **kwargs)
        except InputError as error:
            self.report.faults.append(Fault(str(error)))
            return None

    def fault(self, path: tuple[str | int, ...], message: str) -> None:
        where = self.entry.document.where(path)
        self.report.faults.append(Fault(f"{where}: {'.'.join(map(str, path))}: {message}"))

    def manifest(self, manifest: Manifest) -> None:
        """The manifest against itself and against what is installed."""
        for name in ("licence", "external_licence"):
            value = getattr(manifest, name)
            if value is not None and (fault := licence_fault(value)):
                self.fault((name,), fault)
        low, high = manifest.reward_range
        if not low < high:
            self.fault(("reward_range",), f"must rise, not {low:g} to {high:g}")
        elif not low < manifest.passing_reward <= high:
            self.fault(("pass_threshold",), f"{manifest.passing_reward:g} is not within the range {low:g} to {high:g}")
        if not manifest.datasets:
            self.fault(("datasets",), "the environment has no split")
        if manifest.session is None and (needing := {"tools", "conversation"} & set(manifest.offers)):
            self.report.warnings.append(
                f"offers {', '.join(sorted(needing))} without a session: tools must be in the rows"
            )
        for name, version in installed_versions(manifest.distributions).items():
            if version is None:
                self.fault(("distributions",), f"{name} is not installed; `pip install {name}`")
        for prompt, path in self._prompts(manifest):
            try:
                compiled(prompt)
            except ValueError as error:
                self.fault(path, str(error))
                self.renders = self.renders and path != ("prompt",)
        if "shell" in manifest.offers and manifest.sandbox is None:
            self.fault(("offers",), "a shell needs a `sandbox`")
        self._benchmarks(manifest)

    async def sandbox(self, part: dict[str, Any]) -> bool:
        """Whether the provider, as it is here, has such a one."""
        try:
            await require_sandboxes([SandboxSpec.model_validate(part)])
        except InputError as error:
            self.report.faults.append(Fault(str(error)))
            return False
        return True

    def _prompts(self, manifest: Manifest) -> Iterable[tuple[Any, tuple[str, ...]]]:
        if manifest.prompt:
            yield manifest.prompt, ("prompt",)
        for name, benchmark in manifest.benchmarks.items():
            if benchmark.prompt:
                yield benchmark.prompt, ("benchmarks", name, "prompt")

    def _benchmarks(self, manifest: Manifest) -> None:
        for name, benchmark in manifest.benchmarks.items():
            path = ("benchmarks", name)
            if benchmark.split not in manifest.datasets:
                self.fault((*path, "split"), f"there is no split {benchmark.split!r}")
            if benchmark.harness is not None:
                self.attempt(check_harness, self.registry, manifest, benchmark.harness)
            if benchmark.verifier is not None:
                judged = manifest.model_copy(update={"verifier": benchmark.verifier})
                self.attempt(_verifier, self.registry, self.entry, judged)
            try:
                check_metrics([benchmark.headline], benchmark.repeats)
            except InputError as error:
                self.fault((*path, "headline"), str(error))

    def splits(self, manifest: Manifest, verifier: Verifier[Any] | None, cache: SplitCache) -> None:
        """Every row, against the verifier's model of a task where there is a verifier."""
        if not self.renders:
            return
        digest = self.registry.verifier_digest(manifest.verifier.name, self.entry) if verifier else ""
        fields: type[BaseModel] | None = getattr(verifier, "task_fields", None)
        for split in manifest.datasets:
            report = self.attempt(check_split, self.entry, manifest, split, fields, digest, cache)
            if report is not None:
                self.report.splits.append(report)

    async def preflight(
        self, manifest: Manifest, session: type[Session], verifier: Verifier[Any], config: RunConfig | None
    ) -> None:
        """The fixtures, if the verifier can be run without a model that is paid for."""
        if verifier.rerun == "recorded":
            self.report.warnings.append(
                "the verifier judges what it saw when an episode ended, so fixtures prove nothing of it"
            )
            return
        async with AsyncExitStack() as stack:
            judge = None
            if JUDGE in verifier.needs:
                if config is None or JUDGE not in config.models or config.models[JUDGE].provider not in FREE_JUDGES:
                    self.report.warnings.append("the verifier needs a judge model, so its fixtures were not scored")
                    return
                gateway = await stack.enter_async_context(Gateway({JUDGE: config.models[JUDGE]}))
                judge = judge_model(gateway, config, None)
            try:
                fixtures, faults = await Preflight(self.entry, manifest, session, verifier, judge).run()
            except InputError as error:
                self.report.fixture_faults.append(Fault(str(error)))
                return
        self.report.fixtures = fixtures
        self.report.fixture_faults = faults
        if verifier.task_fields.model_fields and fixtures and not any(fixture.swapped for fixture in fixtures):
            self.report.warnings.append("no fixture has `swapped`, so nothing shows that the gold answer matters")
        gold = {name for fixture in fixtures for name in fixture.gold}
        for prompt, path in self._prompts(manifest):
            for name in sorted(gold.intersection(compiled(prompt).placeholders)) if self.renders else ():
                self.report.warnings.append(
                    f"{'.'.join(path)} shows the model {{{name}}}, which the fixtures swap as the gold answer"
                )


def _verifier(registry: Registry, entry: EnvironmentEntry, manifest: Manifest) -> Verifier[Any]:
    cls = registry.verifier_class(manifest.verifier.name, entry)
    return cls(verifier_parameters(cls, manifest))
