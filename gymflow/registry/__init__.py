"""Finds components: environments, harnesses and verifiers of three kinds of root, models, sandboxes.

registry = Registry(search_dirs=["./my_plugins"])
entry = registry.environment("mcqa")          # or "root:mcqa", or "./path/of/an/environment"
registry.verifier_class(entry.manifest.verifier.name, entry)
"""

from gymflow.registry.catalog import EnvironmentEntry, Registry
from gymflow.registry.loading import BrokenPlugin, load_attribute
from gymflow.registry.roots import Found, Kind
from gymflow.registry.summaries import Summary

__all__ = ["BrokenPlugin", "EnvironmentEntry", "Found", "Kind", "Registry", "Summary", "load_attribute"]
