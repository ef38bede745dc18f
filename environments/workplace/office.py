"""The records of the office, and the desk on which one rollout works with them.

Days are `YYYY-MM-DD`, times `YYYY-MM-DD HH:MM`, both as text, so that they sort and compare as they stand.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime, timedelta
from typing import Any, TypeAlias

FOLDERS = ("inbox", "archive", "invoices", "paid", "sent")
PROJECTS = ("website relaunch", "customer portal", "office move", "billing migration", "renewals")
CARD_STATUSES = ("backlog", "doing", "review", "done")
CUSTOMER_STATUSES = ("trial", "active", "paused", "at risk")
PLANS = ("basic", "team", "enterprise")
TEAMS = ("sales", "support", "finance", "engineering", "operations")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who works here. `manager` is an address; the head of a team has none."""

    name: str
    email: str
    team: str
    title: str
    manager: str | None


@dataclass(frozen=True, slots=True)
class Mail:
    id: str
    folder: str
    sender: str
    to: tuple[str, ...]
    subject: str
    body: str
    sent_at: str


@dataclass(frozen=True, slots=True)
class Event:
    """A meeting; `attendees` are addresses, sorted, the organiser among them."""

    id: str
    title: str
    start: str
    minutes: int
    organiser: str
    attendees: tuple[str, ...]

    @property
    def day(self) -> str:
        return self.start[:10]

    @property
    def end(self) -> str:
        return shift(self.start, self.minutes)

    def overlaps(self, start: str, minutes: int) -> bool:
        """Whether the two share more than an instant."""
        return self.start < shift(start, minutes) and start < self.end


@dataclass(frozen=True, slots=True)
class Customer:
    """A company; `owner` is the address of the colleague who looks after it, `balance` what it owes in EUR."""

    id: str
    name: str
    contact: str
    email: str
    phone: str
    status: str
    plan: str
    owner: str
    renewal: str
    balance: str


@dataclass(frozen=True, slots=True)
class Card:
    """A piece of work on the board; `assignee` is an address."""

    id: str
    title: str
    project: str
    assignee: str
    status: str
    due: str


RecordOf: TypeAlias = Mail | Event | Customer | Card


@dataclass(frozen=True)
class Office:
    """Everything as it is when a task begins; never changed."""

    me: Person
    today: str
    people: dict[str, Person]
    """By address."""
    mails: dict[str, Mail]
    events: dict[str, Event]
    customers: dict[str, Customer]
    cards: dict[str, Card]


@dataclass
class Desk:
    """The office as one rollout has it. Records are replaced, never changed, so it may share them with the office."""

    office: Office
    mails: dict[str, Mail] = field(init=False)
    events: dict[str, Event] = field(init=False)
    customers: dict[str, Customer] = field(init=False)
    cards: dict[str, Card] = field(init=False)
    sent: list[dict[str, Any]] = field(default_factory=list)
    """Mails that have left the house, whatever happens to their copies."""
    withdrawn: list[Event] = field(default_factory=list)
    """Meetings that were called and then cancelled: their invitations have left the house, too."""
    _next_id: int = 500

    def __post_init__(self) -> None:
        self.mails = dict(self.office.mails)
        self.events = dict(self.office.events)
        self.customers = dict(self.office.customers)
        self.cards = dict(self.office.cards)

    def new_id(self, kind: str) -> str:
        """An id that no record of the office has."""
        self._next_id += 1
        return f"{kind}-{self._next_id}"

    def changes(self) -> dict[str, Any]:
        """What is different from how it began, empty parts left out.

        What was put right again does not show; what cannot be undone does: sent mails, called meetings, and whatever was
        cancelled or deleted. New records stand without their ids and in a fixed order, so two ways to the same end are equal.
        """
        events = _difference(self.office.events, self.events)
        events["created"] = ordered([*events["created"], *({**shown(e), "cancelled": True} for e in self.withdrawn)])
        mails = _difference(self.office.mails, self.mails)
        parts = {
            "mails": {"sent": ordered(self.sent), "changed": mails["changed"], "removed": mails["removed"]},
            "events": events,
            "customers": _difference(self.office.customers, self.customers),
            "cards": _difference(self.office.cards, self.cards),
        }
        kept = {name: {key: value for key, value in part.items() if value} for name, part in parts.items()}
        return {name: part for name, part in kept.items() if part}


def shift(time: str, minutes: int) -> str:
    """A time, so many minutes later."""
    return (datetime.fromisoformat(time) + timedelta(minutes=minutes)).strftime("%Y-%m-%d %H:%M")


def days_after(day: str, days: int) -> str:
    """A day, so many days later."""
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()


def spoken(day: str) -> str:
    """A day as people say it.

    >>> spoken("2027-03-11")
    'Thursday 11 March'
    """
    on = date.fromisoformat(day)
    return f"{_WEEKDAYS[on.weekday()]} {on.day} {_MONTHS[on.month - 1]}"


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def _difference(before: Mapping[str, RecordOf], after: Mapping[str, RecordOf]) -> dict[str, Any]:
    changed = {}
    for key, record in after.items():
        if key in before and record is not before[key]:
            was, now = shown(before[key]), shown(record)
            fields_changed = {name: now[name] for name in now if now[name] != was[name]}
            if fields_changed:
                changed[key] = fields_changed
    return {
        "created": ordered(shown(record) for key, record in after.items() if key not in before),
        "changed": changed,
        "removed": sorted(before.keys() - after.keys()),
    }


def shown(record: RecordOf) -> dict[str, Any]:
    """A record as JSON, without its id."""
    values = {f.name: getattr(record, f.name) for f in fields(record) if f.name != "id"}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def ordered(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """New records have no ids yet to sort them by: a fixed order, whatever it is."""
    return sorted(records, key=lambda record: json.dumps(record, sort_keys=True))
