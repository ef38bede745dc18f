"""What the office's tools have in common: their declaration, their errors, and how results are paged."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from gymflow.environments import function_tool

from .office import Desk, Person

PAGE_SIZE = 10

_ADDRESS = re.compile(r"[a-z0-9._+-]+@[a-z0-9-]+(\.[a-z0-9-]+)+")


class ToolError(Exception):
    """What the agent did wrong, in words that it sees."""


@dataclass(frozen=True)
class Tool:
    """A tool: its declaration, and the function that answers it (called with the desk and the arguments)."""

    schema: dict[str, Any]
    answer: Callable[..., Any]

    @property
    def name(self) -> str:
        return str(self.schema["name"])


def tool(
    answer: Callable[..., Any], description: str, properties: dict[str, Any], optional: Iterable[str] = ()
) -> Tool:
    """A tool named after its function; all properties but the optional ones are required."""
    left_out = set(optional)
    required = [name for name in properties if name not in left_out]
    return Tool(function_tool(answer.__name__, description, properties, required), answer)


def text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def choice(description: str, options: Iterable[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(options), "description": description}


def number(description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "description": description}


def texts(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": description}


PAGE = number("Page of the results, from 1; there are 10 results on a page.")


def page_of(results: list[dict[str, Any]], page: int) -> dict[str, Any]:
    """One page, and how much there is in all."""
    page = int(page)  # JSON does not tell 2 from 2.0
    pages = max(1, -(-len(results) // PAGE_SIZE))
    if page > pages:
        raise ToolError(f"there are only {pages} pages")
    shown = results[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    return {"total": len(results), "page": page, "pages": pages, "results": shown}


def matches(query: str, *where: str) -> bool:
    """Whether every word of the query occurs, in any case; an empty query matches everything."""
    haystack = " ".join(where).lower()
    return all(word in haystack for word in query.lower().split())


def found(kind: str, records: dict[str, Any], key: str) -> Any:
    """The record with this id."""
    record = records.get(key.strip())
    if record is None:
        raise ToolError(f"there is no {kind} {key!r}; search for its id")
    return record


def colleague(desk: Desk, email: str) -> Person:
    """Who has this address here."""
    person = desk.office.people.get(email.strip().lower())
    if person is None:
        raise ToolError(f"nobody here has the address {email!r}; look people up with find_people")
    return person


def address(email: str) -> str:
    """A well-formed address, in lower case."""
    cleaned = email.strip().lower()
    if not _ADDRESS.fullmatch(cleaned):
        raise ToolError(f"{email!r} is not an e-mail address")
    return cleaned


def prose(name: str, value: str) -> str:
    """Text with its white space evened out; empty text is an error."""
    cleaned = " ".join(value.split())
    if not cleaned:
        raise ToolError(f"{name} is empty")
    return cleaned


def day(name: str, value: str) -> str:
    try:
        return date.fromisoformat(value.strip()).isoformat()
    except ValueError:
        raise ToolError(f"{name} must be a day as YYYY-MM-DD, not {value!r}") from None


def time(name: str, value: str) -> str:
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo or len(value.strip()) < len("2027-01-01 09:00"):
        raise ToolError(f"{name} must be a time as YYYY-MM-DD HH:MM, not {value!r}")
    return moment.strftime("%Y-%m-%d %H:%M")
