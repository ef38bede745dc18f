"""Providers by name. A provider's module is imported when a run uses it."""

from importlib import import_module

from gymflow.contracts.model import ModelSpec
from gymflow.errors import InputError
from gymflow.models.base import Provider
from gymflow.suggest import did_you_mean

PROVIDERS: dict[str, tuple[str, str]] = {
    "openai": ("gymflow.models.openai:OpenAI", "any OpenAI-compatible endpoint, Chat Completions or Responses"),
    "anthropic": ("gymflow.models.anthropic:Anthropic", "the Claude models, natively"),
    "vllm": ("gymflow.models.vllm:Vllm", "vLLM servers, with exact token ids over every turn"),
    "vllm_local": ("gymflow.models.vllm_local:VllmLocal", "a vLLM server started by the run from a checkpoint"),
    "embedded": ("gymflow.models.embedded_provider:Embedded", "the small language model that the project ships"),
    "replay": ("gymflow.models.replay:Replay", "answers of a stored run; anything else is an error"),
    "scripted": ("gymflow.models.scripted:Scripted", "answers by rules, for tests and fixtures"),
}
"""Name -> where its class is, and what it talks to in a few words."""


def provider_class(name: str) -> type[Provider]:
    """The provider's class. Raises InputError, with the nearest name, for one that does not exist."""
    if name not in PROVIDERS:
        raise InputError(f"there is no model provider {name!r}; {did_you_mean(name, PROVIDERS)}")
    module, _, attribute = PROVIDERS[name][0].partition(":")
    loaded: type[Provider] = getattr(import_module(module), attribute)
    return loaded


def make_provider(spec: ModelSpec) -> Provider:
    """A provider for this model, not yet open."""
    return provider_class(spec.provider)(spec)
