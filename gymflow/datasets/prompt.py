"""From a row to the input that the model sees."""

import re
from typing import Any

from gymflow.canonical import canonical_json
from gymflow.contracts.environment import PromptTemplate
from gymflow.suggest import did_you_mean

_TOKEN = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}|[{}]")


class Prompt:
    """A prompt template, taken apart once.

    `{field}` is replaced by the row's field: text as it is, anything else as JSON. ValueError at construction for a brace that is
    neither part of a placeholder nor doubled.
    """

    def __init__(self, template: PromptTemplate) -> None:
        self._messages = [("user", _parts(template.user, "user"))]
        if template.system is not None:
            self._messages.insert(0, ("system", _parts(template.system, "system")))
        self.placeholders = sorted({name for _, parts in self._messages for name in parts[1::2]})

    def fills(self, row: dict[str, Any]) -> bool:
        """Whether the row has a value for every placeholder."""
        return all(row.get(name) is not None for name in self.placeholders)

    def render(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """The messages. ValueError names the placeholders that the row does not fill."""
        if not self.fills(row):
            missing = [name for name in self.placeholders if row.get(name) is None]
            known = [name for name, value in row.items() if value is not None]
            raise ValueError(
                f"the prompt's placeholder {{{missing[0]}}} is not in the row; {did_you_mean(missing[0], known)}"
            )
        return [{"role": role, "content": _filled(parts, row)} for role, parts in self._messages]


def _filled(parts: list[str], row: dict[str, Any]) -> str:
    return "".join(_text(row[part]) if position % 2 else part for position, part in enumerate(parts))


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
