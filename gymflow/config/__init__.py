"""From what people write to a RunConfig, and from an environment to what a run makes of it.

Merge order: manifest < benchmark < configuration file < flags.
"""

from gymflow.config.merge import benchmark_of, merge_environment
from gymflow.config.overrides import apply_overrides, expand_vary, parse_assignments, parse_vary
from gymflow.config.run import check_metrics, load_config

__all__ = [
    "apply_overrides",
    "benchmark_of",
    "check_metrics",
    "expand_vary",
    "load_config",
    "merge_environment",
    "parse_assignments",
    "parse_vary",
]
