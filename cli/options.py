"""From the flags of `gym eval run` to a run configuration. Flags win over the configuration file."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gymflow.config import apply_overrides, load_config, parse_assignments, parse_vary
from gymflow.contracts.model import ModelSpec
from gymflow.contracts.run import RunConfig
from gymflow.errors import InputError
from gymflow.interop import IMPORTED
from gymflow.models.prices import load_prices, priced
from gymflow.models.providers import PROVIDERS
from gymflow.registry import Registry
from gymflow.suggest import closest, did_you_mean

DEFAULT_KEY = "OPENAI_API_KEY"


@dataclass
class RunOptions:
    """What was typed; None and empty mean: not said."""

    environments: list[str] = field(default_factory=list)
    benchmark: str | None = None
    split: str | None = None
    limit: int | None = None
    tasks: list[str] = field(default_factory=list)
    harness: str | None = None
    models: list[str] = field(default_factory=list)
    base_url: str | None = None
    api: str | None = None
    api_key_env: str | None = None
    repeats: int | None = None
    seed: int | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    concurrency: int | None = None
    run_budget: dict[str, Any] = field(default_factory=dict)
    prices: Path | None = None
    reuse: str | None = None
    shard: str | None = None
    strict_routing: bool = False
    skip_bad_rows: bool = False
    assignments: list[str] = field(default_factory=list)
    vary: list[str] = field(default_factory=list)


def run_config(options: RunOptions, file: Path | None) -> RunConfig:
    """The configuration that a run is planned from. Raises InputError naming the flag or the field of the file."""
    document: dict[str, Any] = {}
    if options.benchmark and not options.environments:
        options = replace(options, environments=[_environment_of(options.benchmark)])
    if file is None and not options.environments:
        raise InputError("name at least one environment, or a configuration with --config; see `gym list environments`")
    if options.environments:
        document["environments"] = [_selection(name, options) for name in options.environments]
    if options.models or options.base_url or file is None:
        document["models"] = _models(options)
    simple = {"repeats": options.repeats, "seed": options.seed, "reuse": options.reuse}
    document |= {name: value for name, value in simple.items() if value is not None}
    document |= {name: True for name in ("strict_routing", "skip_bad_rows") if getattr(options, name)}
    if options.concurrency is not None:
        document["limits"] = {"concurrency": options.concurrency}
    if sampling := {name: value for name, value in options.sampling.items() if value is not None}:
        document["sampling"] = sampling
    if run_budget := {name: value for name, value in options.run_budget.items() if value is not None}:
        document["run_budget"] = run_budget
    if options.shard:
        document["shard"] = _shard(options.shard)
    if options.vary:
        document["vary"] = parse_vary(options.vary)
    config = apply_overrides(load_config(file, document), parse_assignments(options.assignments))
    return with_prices(config, options.prices)


def _environment_of(benchmark: str) -> str:
    """The environment that has a benchmark of this name, where exactly one does."""
    known = [(one.name, str(one.details["environment"])) for one in Registry().benchmarks()]
    having = [environment for name, environment in known if name == benchmark]
    if len(having) == 1:
        return having[0]
    if having:
        raise InputError(f"--benchmark {benchmark}: name the environment, too; {', '.join(having)} have one")
    raise InputError(f"there is no benchmark {benchmark!r}; {did_you_mean(benchmark, [name for name, _ in known])}")


def _selection(name: str, options: RunOptions) -> dict[str, Any]:
    selection = {
        "name": name,
        "benchmark": options.benchmark,
        "split": options.split,
        "limit": options.limit,
        "tasks": options.tasks or None,
        "harness": {"name": options.harness} if options.harness else None,
    }
    return {key: value for key, value in selection.items() if value is not None}


def _models(options: RunOptions) -> dict[str, Any]:
    names = options.models or (["openai:"] if options.base_url else ["embedded"])
    specs = [model_spec(name, options) for name in names]
    if len(specs) == 1:
        return {"policy": specs[0]}
    labels = [spec["model"] or spec["provider"] for spec in specs]
    if len(set(labels)) < len(labels):
        raise InputError(
            f"--model names {', '.join(labels)}: each model once, or a configuration file with named models"
        )
    return dict(zip(labels, specs, strict=True))


def model_spec(name: str, options: RunOptions) -> dict[str, Any]:
    provider, _, served = name.partition(":")
    if provider not in PROVIDERS:
        if options.base_url is None and (meant := closest(provider, PROVIDERS)):
            raise InputError(
                f"--model {name}: there is no provider {provider!r}; did you mean {meant}? A served name of that spelling is "
                f"written openai:{name}"
            )
        provider, served = "openai", name
    spec: dict[str, Any] = {"provider": provider, "model": served}
    if provider in ("openai", "anthropic", "vllm"):
        key = options.api_key_env or (DEFAULT_KEY if provider == "openai" and os.environ.get(DEFAULT_KEY) else None)
        further = {"base_url": options.base_url, "api": options.api, "api_key": f"${{env:{key}}}" if key else None}
        spec |= {field: value for field, value in further.items() if value is not None}
    return spec


def one_model(name: str, options: RunOptions) -> ModelSpec:
    """The model that a name means, reached as the options say. InputError where there is no such provider or dialect."""
    try:
        return ModelSpec.model_validate(model_spec(name, options))
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"model {name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _shard(text: str) -> dict[str, int]:
    index, slash, count = text.partition("/")
    if not slash or not index.isdigit() or not count.isdigit() or not int(index) < int(count):
        raise InputError(f"--shard {text}: write i/n with 0 <= i < n, such as 0/4")
    return {"index": int(index), "count": int(count)}


def resumed_config(config: RunConfig, options: RunOptions) -> RunConfig:
    """The configuration of an existing run with what this command changes; selection and repeats may grow."""
    if any(spec.provider == IMPORTED for spec in config.models.values()):
        raise InputError(
            "the run was imported: nothing can be sampled for it here; `gym eval reverify` scores what it holds again"
        )
    for flag in ("models", "benchmark", "tasks", "vary", "shard"):
        if getattr(options, flag):
            name = flag.removesuffix("s") if flag in ("models", "tasks") else flag
            raise InputError(f"--{name} does not go with --resume: a run keeps its own; start a new run for another")
    document = config.model_dump(mode="json", exclude_unset=True)
    if options.environments:
        document["environments"] = [_selection(name, options) for name in options.environments]
    for selection in document["environments"]:
        selection |= {
            name: value for name, value in (("limit", options.limit), ("split", options.split)) if value is not None
        }
        if options.harness:
            selection["harness"] = {"name": options.harness}
    for model in document.get("models", {}).values():
        reached = {"base_url": options.base_url, "api": options.api}
        if options.api_key_env:
            reached["api_key"] = f"${{env:{options.api_key_env}}}"
        model |= {name: value for name, value in reached.items() if value is not None}
    simple = {"repeats": options.repeats, "seed": options.seed, "reuse": options.reuse}
    document |= {name: value for name, value in simple.items() if value is not None}
    document |= {name: True for name in ("strict_routing", "skip_bad_rows") if getattr(options, name)}
    if options.concurrency is not None:
        document.setdefault("limits", {})["concurrency"] = options.concurrency
    if sampling := {name: value for name, value in options.sampling.items() if value is not None}:
        document["sampling"] = document.get("sampling", {}) | sampling
    if run_budget := {name: value for name, value in options.run_budget.items() if value is not None}:
        document["run_budget"] = document.get("run_budget", {}) | run_budget
    config = apply_overrides(RunConfig.model_validate(document), parse_assignments(options.assignments))
    return with_prices(config, options.prices)


def with_prices(config: RunConfig, file: Path | None) -> RunConfig:
    """The configuration with the prices that a file lists for its models; a price that a model has already stays."""
    if file is None:
        return config
    table = load_prices(file)
    return config.model_copy(update={"models": {name: priced(spec, table) for name, spec in config.models.items()}})
