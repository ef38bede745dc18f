"""From a task to the input that the model sees."""

import re
from functools import lru_cache
from typing import Any

from gymflow.canonical import canonical_json
from gymflow.contracts.environment import Manifest, PromptTemplate
from gymflow.contracts.task import Task
from gymflow.suggest import did_you_mean

_TOKEN = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}|[{}]")


_DECLARED = frozenset(Task.model_fields)


def rendered(task: Task, manifest: Manifest) -> list[dict[str, Any]]:
    """The task's input as Responses items: its own, or what the manifest's prompt makes of its fields.

    An environment with a session may begin without any. ValueError when a task has neither or both, or lacks a placeholder.
    """
    own = task.responses_create_params.input
    prompt = compiled(manifest.prompt) if manifest.prompt else None
    if own is None:
        if prompt is not None:
            return prompt.render(task)
        if manifest.session is None:
            raise ValueError("the row has no input, and the environment no prompt that makes one")
        return []
    if prompt is not None and prompt.placeholders and not prompt.missing(task):
        raise ValueError("the row has its own input and also fills the environment's prompt; keep one of them")
    return [{"role": "user", "content": own}] if isinstance(own, str) else own


@lru_cache(maxsize=64)
def compiled(template: PromptTemplate) -> "Prompt":
    """The template taken apart, once."""
    return Prompt(template)


class Prompt:
    """A prompt template: `{field}` is replaced by the task's field, text as it is, anything else as JSON.

    ValueError at construction for a brace that is neither part of a placeholder nor doubled.
    """

    def __init__(self, template: PromptTemplate) -> None:
        self._messages = [("user", _parts(template.user, "user"))]
        if template.system is not None:
            self._messages.insert(0, ("system", _parts(template.system, "system")))
        self.placeholders = sorted({name for _, parts in self._messages for name in parts[1::2]})

    def missing(self, task: Task) -> list[str]:
        """Placeholders that the task has no value for."""
        return [name for name in self.placeholders if _field(task, name) is None]

    def render(self, task: Task) -> list[dict[str, Any]]:
        """The messages. ValueError names a placeholder that the task does not fill."""
        if missing := self.missing(task):
            hint = did_you_mean(missing[0], task.verifier_fields)
            raise ValueError(f"the prompt's placeholder {{{missing[0]}}} is not in the row; {hint}")
        return [{"role": role, "content": _filled(parts, task)} for role, parts in self._messages]


def _field(task: Task, name: str) -> Any:
    return getattr(task, name) if name in _DECLARED else task.verifier_fields.get(name)


def _filled(parts: list[str], task: Task) -> str:
    return "".join(_text(_field(task, part)) if position % 2 else part for position, part in enumerate(parts))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value).decode()


def _parts(text: str, field: str) -> list[str]:
    """Literal text and placeholder names in turn, beginning and ending with literal text."""
    parts = [""]
    end = 0
    for match in _TOKEN.finditer(text):
        parts[-1] += text[end : match.start()]
        end = match.end()
        if match[1]:
            parts += [match[1], ""]
        elif len(match[0]) == 2:
            parts[-1] += match[0][0]
        else:
            shown = text[match.start() : match.start() + 20]
            raise ValueError(f"prompt.{field}: {shown!r} is no placeholder; write {{{{ and }}}} for literal braces")
    parts[-1] += text[end:]
    return parts
