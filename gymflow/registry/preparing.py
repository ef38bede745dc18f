"""Installing what harnesses need beyond gymflow."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gymflow.errors import InputError
from gymflow.registry.catalog import Registry
from gymflow.suggest import did_you_mean


@dataclass(frozen=True, slots=True)
class Prepared:
    """A harness that can now be played with. `installed`: what was missing."""

    harness: str
    installed: str | None


def prepared(registry: Registry, names: Iterable[str], say: Callable[[str], None]) -> Iterator[Prepared]:
    """Install what these harnesses need, or the own harnesses of these environments; without names, what all harnesses need.

    Raises InputError for an unknown name, and with the installer's words where it failed.
    """
    for name in dict.fromkeys(
        _harness(registry, name) for name in names or [one.qualified for one in registry.found("harnesses")]
    ):
        cls = registry.harness_class(name)
        missing = cls.missing()
        cls.install(say)
        yield Prepared(name, missing)


def _harness(registry: Registry, name: str) -> str:
    if name in registry.harness_names:
        return name
    known = {one.name: one for one in registry.found("environments")} | {
        one.qualified: one for one in registry.found("environments")
    }
    if name in known or "/" in name:
        return registry.environment(name).manifest.harness.name
    names = [*(one.name for one in registry.found("harnesses")), *(one.name for one in registry.found("environments"))]
    raise InputError(f"there is no harness or environment {name!r}; {did_you_mean(name, names)}")
