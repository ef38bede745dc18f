"""gymflow: evaluate models and agents in environments, keep every rollout, and turn the result into a decision."""

from typing import TYPE_CHECKING, Any

from gymflow import user_roots

if TYPE_CHECKING:
    from gymflow.collecting import collect as collect

user_roots.install()

__version__ = "0.1.0"
__all__ = ["__version__", "collect"]


def __getattr__(name: str) -> Any:
    # `import gymflow` stays under 0.3 s: the engine is imported by whoever uses it.
    if name == "collect":
        from gymflow.collecting import collect

        return collect
    raise AttributeError(f"module 'gymflow' has no attribute {name!r}")
