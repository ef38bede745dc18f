"""Offices made from a number: people, mail, calendar, customers and cards, full of look-alikes.

In every office two pairs of colleagues share a first name and one pair a surname, pairs of customers share the first word of
their name, meetings have namesakes on other days, and the mailbox holds mails that differ in a detail.
"""

from collections.abc import Sequence
from datetime import date
from functools import lru_cache

from .dice import Dice
from .office import PLANS, PROJECTS, TEAMS, Card, Customer, Event, Mail, Office, Person, days_after, spoken
from .vocabulary import (
    CARD_TITLES,
    COMPANY_KINDS,
    COMPANY_STEMS,
    COMPLAINTS,
    FIRST_NAMES,
    LAST_NAMES,
    NEWSLETTERS,
    PHONE_SUBJECT,
    PLAN_SUBJECT,
    RECURRING,
    SINGLE,
    SLOTS,
    STAFF_NOTES,
    SUPPLIERS,
    TITLES,
)

FIRST_DAY = date(2027, 1, 4)


@lru_cache(maxsize=256)
def office_of(world: int) -> Office:
    """The office with this number; the same in every process."""
    dice = Dice(f"workplace {world}")
    today = days_after(FIRST_DAY.isoformat(), 7 * dice.between(0, 40) + dice.between(0, 1))
    people = _people(dice)
    me = people[0]
    by_team = {team: [p for p in people if p.team == team] for team in TEAMS}
    customers = _customers(dice, today, by_team["sales"])
    events = _events(dice, today, people, customers)
    mails = _mails(dice, today, people, customers, events)
    cards = _cards(dice, today, people)
    return Office(
        me=me,
        today=today,
        people={p.email: p for p in people},
        mails={m.id: m for m in mails},
        events={e.id: e for e in events},
        customers={c.id: c for c in customers},
        cards={c.id: c for c in cards},
    )


def working_days(today: str) -> list[str]:
    """The working days of this week from today on, and those of the next week."""
    weekday = date.fromisoformat(today).weekday()
    return [days_after(today, d) for d in range(12 - weekday) if (weekday + d) % 7 < 5]


def house_address(role: str, company: str) -> str:
    """The address of a supplier or a newsletter."""
    return f"{role}@{company.replace(' ', '-')}.example".lower()


def _moment(dice: Dice, today: str) -> str:
    """Some time in the past three weeks."""
    return f"{days_after(today, -dice.between(1, 20))} {dice.between(7, 18):02d}:{dice.between(0, 59):02d}"


def _people(dice: Dice) -> list[Person]:
    first = dice.take(FIRST_NAMES, 13)
    first += first[1:3]
    last = dice.take(LAST_NAMES, 14)
    last.append(last[5])
    people: list[Person] = []
    heads: dict[str, str] = {}
    for index, (given, family) in enumerate(zip(first, last, strict=True)):
        team = TEAMS[(index + 4) % len(TEAMS)]
        email = f"{given}.{family}@northfield.example".lower()
        head = heads.setdefault(team, email)
        title = f"head of {team}" if head == email else f"{team} {dice.pick(TITLES)}"
        people.append(Person(f"{given} {family}", email, team, title, None if head == email else head))
    return people


def _customers(dice: Dice, today: str, sales: Sequence[Person]) -> list[Customer]:
    stems = dice.take(COMPANY_STEMS, 11)
    names = [f"{stem} {kind}" for stem in stems[:4] for kind in dice.take(COMPANY_KINDS, 2)]
    names += [f"{stem} {dice.pick(COMPANY_KINDS)}" for stem in stems[4:]]
    customers = []
    for index, name in enumerate(dice.take(names, len(names)), 1):
        contact = f"{dice.pick(FIRST_NAMES)} {dice.pick(LAST_NAMES)}"
        customers.append(
            Customer(
                id=f"customer-{index:02d}",
                name=name,
                contact=contact,
                email=f"{contact.split()[0]}@{name.replace(' ', '-')}.example".lower(),
                phone=f"+4930555{dice.between(1000, 9999)}",
                status=dice.pick(("trial", "active", "active", "paused")),
                plan=dice.pick(PLANS),
                owner=dice.pick(sales).email,
                renewal=days_after(today, dice.between(5, 120)),
                balance=f"{dice.between(0, 4000)}.{dice.between(0, 9)}0",
            )
        )
    return customers


def _events(dice: Dice, today: str, people: Sequence[Person], customers: Sequence[Customer]) -> list[Event]:
    days = working_days(today)
    me = people[0].email
    planned: list[tuple[str, str, int, list[str]]] = []
    for title in RECURRING:
        group = [p.email for p in dice.take(people[1:], 4)] + ([me] if dice.chance(0.5) else [])
        minutes = dice.pick((30, 45, 60))
        planned += [(title, day, minutes, group) for day in dice.take(days, 2)]
    for title in SINGLE:
        group = [p.email for p in dice.take(people, 3)]
        planned.append((title, dice.pick(days), dice.pick((30, 60, 90)), group))
    for other in dice.take(people[1:], 5):
        planned.append((f"one-to-one with {other.name}", dice.pick(days), 30, [me, other.email]))
    for customer in dice.take(customers, 5):
        planned.append((f"customer call with {customer.name}", dice.pick(days), 30, [me, customer.owner]))
    events = []
    for index, (title, day, minutes, group) in enumerate(dice.take(planned, len(planned)), 1):
        start = f"{day} {dice.pick(SLOTS)}"
        attendees = tuple(sorted(set(group)))
        events.append(Event(f"event-{index:02d}", title, start, minutes, dice.pick(attendees), attendees))
    return events


def _mails(
    dice: Dice, today: str, people: Sequence[Person], customers: Sequence[Customer], events: Sequence[Event]
) -> list[Mail]:
    me = people[0].email
    written: list[tuple[str, str, str, str]] = []
    for (subject, body), person in zip(dice.take(STAFF_NOTES, 7), dice.take(people[1:], 7), strict=True):
        written.append((person.email, subject, body, _moment(dice, today)))
    # A namesake writes about the same thing.
    namesakes = [
        (a, b) for i, a in enumerate(people) for b in people[i + 1 :] if a.name.split()[0] == b.name.split()[0]
    ]
    for a, b in namesakes:
        subject, body = dice.pick(STAFF_NOTES)
        written += [(who.email, f"Re: {subject}", body, _moment(dice, today)) for who in (a, b)]
    arrived = sorted(_moment(dice, today) for _ in range(7))
    number = dice.between(2000, 6000)
    for sent_at in arrived:
        number += dice.between(1, 90)
        supplier = dice.pick(SUPPLIERS)
        due = days_after(today, dice.between(6, 30))
        amount = f"{dice.between(40, 2400)}.{dice.between(10, 99)}"
        body = f"Please find attached invoice {number}. Amount due: {amount} EUR, payable by {due}."
        written.append((house_address("billing", supplier), f"invoice {number}", body, sent_at))
    for newsletter in NEWSLETTERS:
        first_issue, issues = dice.between(20, 60), dice.between(3, 5)
        for issue in range(issues):
            sent_at = f"{days_after(today, 4 * (issue - issues) + dice.between(0, 2))} 07:{dice.between(10, 59)}"
            subject = f"{newsletter}, issue {first_issue + issue}"
            body = "Read this issue on the web. Unsubscribe at any time."
            written.append((house_address("news", newsletter), subject, body, sent_at))
    for customer in dice.take(customers, 4):
        phone = f"+49 40 555 {dice.between(1000, 9999)}"
        body = f"Please note that our phone number has changed. From now on you reach us at {phone}. Kind regards, {customer.contact}"
        written.append((customer.email, PHONE_SUBJECT, body, _moment(dice, today)))
    for customer in dice.take(customers, 3):
        plan = dice.pick([p for p in PLANS if p != customer.plan])
        body = (
            f"We would like to change to the {plan} plan. Please confirm when it is done. Regards, {customer.contact}"
        )
        written.append((customer.email, PLAN_SUBJECT, body, _moment(dice, today)))
    for (subject, body), customer in zip(COMPLAINTS, dice.take(customers, 3), strict=True):
        written.append((customer.email, subject, f"{body} {customer.contact}", _moment(dice, today)))
    for event in dice.take([e for e in events if me in e.attendees and len(e.attendees) > 1], 4):
        asker = dice.pick([a for a in event.attendees if a != me])
        wish = dice.pick([slot for slot in SLOTS if not event.start.endswith(slot)])
        body = f"Something has come up. Could you move our meeting on {spoken(event.day)} to {wish} on the same day?"
        written.append((asker, event.title, body, _moment(dice, today)))
    mails = []
    for index, (sender, subject, body, sent_at) in enumerate(dice.take(written, len(written)), 1):
        mails.append(Mail(f"mail-{index:03d}", "inbox", sender, (me,), subject, body, sent_at))
    return mails


def _cards(dice: Dice, today: str, people: Sequence[Person]) -> list[Card]:
    cards = []
    for index in range(1, 31):
        status = dice.pick(("backlog", "backlog", "doing", "doing", "review", "done"))
        due = days_after(today, dice.between(-8, 25))
        title, project = dice.pick(CARD_TITLES), dice.pick(PROJECTS[:4])
        cards.append(Card(f"card-{index:02d}", title, project, dice.pick(people).email, status, due))
    return cards
