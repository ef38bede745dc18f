"""What the templates of requests have in common.

A template looks for a case in an office and drafts a request about it, with the tool calls that fulfil it and the changes that
must be there afterwards. Calls and changes are written down independently of each other; the tests play the one and compare it with
the other.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .dice import Dice
from .office import Card, Event, Mail, Office, Person, ordered, shown

Item = TypeVar("Item")

Call = tuple[str, dict[str, Any]]
"""A tool and its arguments."""


class Unfit(Exception):
    """This office has no case for the template; another one may."""


@dataclass(frozen=True)
class Draft:
    """A request in the making: what fills its wording, how it is fulfilled, and how the office differs then."""

    facts: dict[str, str]
    calls: list[Call]
    changes: dict[str, Any]


@dataclass(frozen=True)
class Template:
    """One kind of request. Every wording asks for the same in other words."""

    name: str
    difficulty: str
    wordings: tuple[str, ...]
    draft: Callable[[Office, Dice], Draft]


def template(difficulty: str, *wordings: str) -> Callable[[Callable[[Office, Dice], Draft]], Template]:
    """Make a template, named after the function that drafts it."""

    def make(draft: Callable[[Office, Dice], Draft]) -> Template:
        return Template(draft.__name__.replace("_", "-"), difficulty, wordings, draft)

    return make


@dataclass
class Changes:
    """Builds what `Desk.changes` shall return, part by part. New records need no id."""

    sent: list[dict[str, Any]] = field(default_factory=list)
    mails: dict[str, dict[str, Any]] = field(default_factory=dict)
    deleted_mails: list[str] = field(default_factory=list)
    new_events: list[Event] = field(default_factory=list)
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    cancelled_events: list[str] = field(default_factory=list)
    customers: dict[str, dict[str, Any]] = field(default_factory=dict)
    new_cards: list[Card] = field(default_factory=list)
    cards: dict[str, dict[str, Any]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Without the empty parts."""
        parts: dict[str, dict[str, Any]] = {
            "mails": {"sent": ordered(self.sent), "changed": self.mails, "removed": sorted(self.deleted_mails)},
            "events": {
                "created": ordered(map(shown, self.new_events)),
                "changed": self.events,
                "removed": sorted(self.cancelled_events),
            },
            "customers": {"changed": self.customers},
            "cards": {"created": ordered(map(shown, self.new_cards)), "changed": self.cards},
        }
        kept = {name: {key: value for key, value in part.items() if value} for name, part in parts.items()}
        return {name: part for name, part in kept.items() if part}


def some(dice: Dice, items: Iterable[Item]) -> Item:
    """One of the items."""
    found = list(items)
    if not found:
        raise Unfit
    return dice.pick(found)


def enough(items: Iterable[Item], low: int, high: int) -> list[Item]:
    """All of the items, of which there must be a fair number."""
    found = list(items)
    if not low <= len(found) <= high:
        raise Unfit
    return found


def named_once(items: Sequence[Item], name: Callable[[Item], Any]) -> list[Item]:
    """The items that no other item shares its name with, so that the name says which one is meant."""
    names = [name(item) for item in items]
    return [item for item, own in zip(items, names, strict=True) if names.count(own) == 1]


def colleagues(office: Office, *besides: str) -> list[Person]:
    """Everybody but me and those with the given addresses."""
    return [p for p in office.people.values() if p.email not in (office.me.email, *besides)]


def namesakes_first(office: Office, people: Iterable[Person]) -> list[Person]:
    """Those whose first name somebody else has, too; all of them where nobody does."""
    candidates = list(people)
    first_names = [p.name.split()[0] for p in office.people.values()]
    return [p for p in candidates if first_names.count(p.name.split()[0]) > 1] or candidates


def notes_of_colleagues(office: Office) -> list[Mail]:
    """Mails from colleagues that sender and subject identify, requests to move a meeting aside."""
    titles = {event.title for event in office.events.values()}
    notes = [m for m in office.mails.values() if m.sender in office.people and m.subject not in titles]
    return [m for m in named_once(notes, lambda m: (m.sender, m.subject)) if m.sender != office.me.email]


def is_free(office: Office, email: str, start: str, minutes: int, besides: Event | None = None) -> bool:
    """Whether somebody has nothing else at a time."""
    return not any(
        email in event.attendees and event.overlaps(start, minutes)
        for event in office.events.values()
        if event is not besides
    )


def first_free_hour(
    office: Office, day: str, attendees: Iterable[str], minutes: int, besides: Event | None = None
) -> str:
    """The first full hour of a working day (9:00 to 17:00) at which everybody is free for so many minutes."""
    everybody = list(attendees)
    for hour in range(9, 17 - (minutes - 1) // 60):
        start = f"{day} {hour:02d}:00"
        if all(is_free(office, email, start, minutes, besides) for email in everybody):
            return start
    raise Unfit


def find(name: str) -> Call:
    """Look a colleague up."""
    return ("find_people", {"query": name})
