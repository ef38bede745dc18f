"""`--set` and `--vary`: changes of a configuration by dotted keys."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gymflow.contracts.run import RunConfig
from gymflow.documents import Document, Key, parse_document, parse_value
from gymflow.errors import InputError
from gymflow.suggest import did_you_mean

SHORT = ("verifier", "session", "sandbox", "harness")
"""First parts of keys that stand for a field of every environment of the run."""


def parse_assignments(texts: Iterable[str]) -> dict[str, Any]:
    """`["sampling.temperature=0", "verifier.mode=strict"]` as typed values by key."""
    values: dict[str, Any] = {}
    for text in texts:
        key, value = _split(text, "--set")
        if key in values:
            raise InputError(f"--set {text}: {key} is set twice")
        values[key] = parse_value(value)
    return values


def parse_vary(texts: Iterable[str]) -> dict[str, list[Any]]:
    """`["sampling.temperature=0,0.7"]` as the values by key. A value that holds a comma needs the form `key=["a,b", c]`."""
    values: dict[str, list[Any]] = {}
    for text in texts:
        key, value = _split(text, "--vary")
        if key in values:
            raise InputError(f"--vary {text}: {key} is varied twice")
        values[key] = _values(text, value)
    return values


def apply_overrides(config: RunConfig, overrides: Mapping[str, Any], source: str = "--set") -> RunConfig:
    """A new configuration with the values put in; the given one stays as it is.

    Keys are paths into RunConfig; a list's element is named by its index or its `name`. `verifier.K`, `session.K`, `sandbox.K`,
    `harness` and `harness.K` mean that parameter in every environment of the run. InputError names the key; `source` says where it was written.
    """
    if not overrides:
        return config
    data = config.model_dump()
    for key, value in overrides.items():
        for path in _targets(key, data, source):
            _assign(data, path, value, f"{source} {key}")
    return Document(source, data).validated(RunConfig)


def expand_vary(config: RunConfig) -> list[RunConfig]:
    """One configuration for each value of the varied field, named after it; the configuration itself where nothing varies."""
    if not config.vary:
        return [config]
    if len(config.vary) > 1:
        raise InputError(f"an ablation varies one field, not {', '.join(config.vary)}; run one after the other")
    [(key, values)] = config.vary.items()
    if not values:
        raise InputError(f"vary.{key}: name the values")
    for position, value in enumerate(values):
        if value in values[:position] and any(
            type(value) is type(other) for other in values[:position] if other == value
        ):
            raise InputError(f"vary.{key}: {value!r} is named twice")
    base = config.model_copy(update={"vary": {}})
    name = config.name or "+".join(selection.name for selection in config.environments)
    return [
        apply_overrides(base, {key: value}, "vary").model_copy(update={"name": f"{name} {key}={_shown(value)}"})
        for value in values
    ]


def _split(text: str, flag: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key or not all(key.split(".")):
        raise InputError(f"{flag} {text}: write key=value, such as sampling.temperature=0")
    return key, value


def _values(text: str, value: str) -> list[Any]:
    if value.startswith("["):
        listed = parse_document(value, f"--vary {text}").data
    else:
        listed = [parse_value(part.strip()) for part in value.split(",")] if value else []
    if not isinstance(listed, list) or not listed:
        raise InputError(f"--vary {text}: name the values, such as key=1,2")
    return listed


def _shown(value: Any) -> str:
    if isinstance(value, dict) and "name" in value:
        return str(value["name"])
    return str(value).lower() if isinstance(value, bool | None) else str(value)


def _targets(key: str, data: dict[str, Any], source: str) -> Iterator[Key]:
    first, *rest = key.split(".")
    if first not in SHORT:
        yield (first, *rest)
        return
    if first != "harness" and not rest:
        raise InputError(f"{source} {key}: name the parameter, such as {first}.PARAMETER=value")
    for index, selection in enumerate(data["environments"]):
        if first != "harness":
            yield ("environments", index, first, *rest)
        elif not rest:
            yield ("environments", index, "harness", "name")
        elif selection["harness"] is None:
            raise InputError(
                f"{source} {key}: {selection['name']} runs on its default harness; name the one that is meant "
                f"with --harness, or write agents.NAME.harness.parameters.{'.'.join(rest)}"
            )
        else:
            yield ("environments", index, "harness", "parameters", *rest)


def _assign(data: Any, path: Key, value: Any, what: str) -> None:
    *parents, last = path
    for position, part in enumerate(parents):
        inner = _child(data, part, what)
        if inner is None:
            inner = data[part] = {}
        if not isinstance(inner, dict | list):
            raise InputError(f"{what}: {'.'.join(map(str, path[: position + 1]))} is a single value, it has no parts")
        data = inner
    if isinstance(data, list):
        data[_index(data, last, what)] = value
    else:
        data[last] = value


def _child(data: dict[str, Any] | list[Any], part: str | int, what: str) -> Any:
    return data[_index(data, part, what)] if isinstance(data, list) else data.get(str(part))


def _index(data: list[Any], part: str | int, what: str) -> int:
    names = [element.get("name") if isinstance(element, dict) else None for element in data]
    if part in names:
        return names.index(part)
    if str(part).isdigit() and int(part) < len(data):
        return int(part)
    raise InputError(f"{what}: there is no {part!r} in the list; {did_you_mean(str(part), filter(None, names))}")
