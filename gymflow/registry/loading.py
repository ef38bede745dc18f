"""From a component that was found to its code: imports, and the one class that a module holds."""

import importlib
import inspect
import re
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from gymflow.errors import InputError
from gymflow.registry.roots import Found
from gymflow.suggest import did_you_mean

C = TypeVar("C")


class BrokenPlugin(InputError):
    """A plugin that cannot be used; the message says which, and the line of its code that failed."""


def load_module(module: str, what: str, place: Path) -> ModuleType:
    """Import a plugin's module. Whatever its code raises becomes one message that names the file and line."""
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise BrokenPlugin(f"{what} ({place}) cannot be imported: {_reason(error)}") from error


def load_class(found: Found, base: type[C]) -> type[C]:
    """The component's class: the one that an entry point names, else the module's only subclass of `base`."""
    what = f"{base.__name__.lower()} {found.name!r}"
    module = load_module(found.module, what, found.place)
    if found.attribute:
        return _checked(getattr(module, found.attribute, None), base, f"{what} ({found.module}:{found.attribute})")
    return only_class(module, base, f"{what} ({found.place})")


def only_class(module: ModuleType, base: type[C], what: str) -> type[C]:
    """The one subclass of `base` that a module defines and that carries its name in camel case.

    Private classes and other subclasses may stand beside it; without a class of that name there must be exactly one.
    """
    own = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, base) and value.__module__ == module.__name__
    ]
    name = module.__name__.rpartition(".")[2]
    named = [value for value in own if _snake(value.__name__) == name]
    public = named or [value for value in own if not value.__name__.startswith("_")]
    if len(public) != 1:
        there = ", ".join(value.__name__ for value in public) or "none"
        raise BrokenPlugin(f"{what}: the module must define exactly one {base.__name__} subclass; it defines {there}")
    return public[0]


def load_attribute(package: str, reference: str, place: Path, field: str) -> Any:
    """What `module:name` refers to inside an environment's package, such as its session class or generator."""
    module_name, colon, attribute = reference.partition(":")
    if not colon or not module_name or not attribute:
        raise InputError(f"{place}: {field}: {reference!r} should read `module:name`")
    file = place.parent.joinpath(*module_name.split("."))
    if not file.with_suffix(".py").is_file() and not (file / "__init__.py").is_file():
        known = [path.stem for path in place.parent.glob("*.py")]
        raise InputError(
            f"{place}: {field}: there is no module {module_name!r} in {place.parent}; {did_you_mean(module_name, known)}"
        )
    module = load_module(f"{package}.{module_name}", f"{field} {reference!r}", file.with_suffix(".py"))
    if not hasattr(module, attribute):
        known = [name for name in vars(module) if not name.startswith("_")]
        raise InputError(
            f"{place}: {field}: module {module_name!r} has no {attribute!r}; {did_you_mean(attribute, known)}"
        )
    return getattr(module, attribute)


def _checked(value: Any, base: type[C], what: str) -> type[C]:
    if not (inspect.isclass(value) and issubclass(value, base)):
        raise BrokenPlugin(f"{what} is not a {base.__name__} subclass")
    return value


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _reason(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
    if isinstance(error, SyntaxError):
        return f"SyntaxError in line {error.lineno}: {error.msg}"
    where = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{where}"
