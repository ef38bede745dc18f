"""Requests that take a look-up and one action."""

from .dice import Dice
from .office import PROJECTS, Card, Event, Office, spoken
from .template import (
    Changes,
    Draft,
    Template,
    colleagues,
    find,
    named_once,
    namesakes_first,
    notes_of_colleagues,
    some,
    template,
)
from .vocabulary import MEETINGS, NEW_CARDS, RECURRING, REPLIES, SLOTS
from .world import working_days


@template(
    "easy",
    'Please answer the mail with the subject "{subject}" that {name} sent me. This is the whole text of the reply:\n\n{text}',
    '{name} is waiting for a reply to "{subject}". Use these words and no others:\n\n{text}',
    'There is a mail from {name} in my inbox, "{subject}", that I have not answered yet. Write back just this:\n\n{text}',
)
def reply_to_note(office: Office, dice: Dice) -> Draft:
    people = namesakes_first(office, (office.people[m.sender] for m in notes_of_colleagues(office)))
    mail = some(dice, (m for m in notes_of_colleagues(office) if office.people[m.sender] in people))
    text = dice.pick(REPLIES)
    return Draft(
        {"subject": mail.subject, "name": office.people[mail.sender].name, "text": text},
        [("search_mail", {"sender": mail.sender}), ("reply_to_mail", {"mail_id": mail.id, "body": text})],
        Changes(sent=[{"reply_to": mail.id, "body": text}]).as_json(),
    )


@template(
    "easy",
    "The {title} on {day} is not needed. Cancel it, but leave the one on the other day alone.",
    "We can do without the {title} this once, on {day}. Call that one off; its second date stays.",
    "Nobody has anything to present in the {title} of {day}. Take it out of the calendar, please.",
)
def cancel_one_of_two(office: Office, dice: Dice) -> Draft:
    events = [e for e in office.events.values() if e.title in RECURRING]
    event = some(dice, named_once(events, lambda e: (e.title, e.day)))
    return Draft(
        {"title": event.title, "day": spoken(event.day)},
        [("search_events", {"query": event.title}), ("cancel_event", {"event_id": event.id})],
        Changes(cancelled_events=[event.id]).as_json(),
    )


@template(
    "easy",
    "Enter {phone} as the phone number of {customer} in the customer records.",
    "{contact} told me that the people at {customer} can be reached at {phone} from now on. Correct our record of them.",
    "The number that we have on file for {customer} is wrong. It should be {phone}.",
)
def correct_phone(office: Office, dice: Dice) -> Draft:
    stems = [c.name.split()[0] for c in office.customers.values()]
    customer = some(dice, (c for c in office.customers.values() if stems.count(c.name.split()[0]) > 1))
    digits = f"{dice.between(100, 999)} {dice.between(1000, 9999)}"
    phone = f"+4989{digits.replace(' ', '')}"
    return Draft(
        {"phone": f"+49 89 {digits}", "customer": customer.name, "contact": customer.contact},
        [
            ("search_customers", {"query": customer.name}),
            ("update_customer", {"customer_id": customer.id, "field": "phone", "value": phone}),
        ],
        Changes(customers={customer.id: {"phone": phone}}).as_json(),
    )


@template(
    "easy",
    'On the board, give the card "{title}" of the {project} project to {name}.',
    '{name} takes over "{title}" in the {project}. Make {name} the assignee of that card.',
    'I have spoken with {name}, who will see to "{title}" ({project}) instead of {before}. Please reassign the card.',
)
def reassign_card(office: Office, dice: Dice) -> Draft:
    card = some(dice, (c for c in _identified_cards(office) if c.status != "done"))
    person = dice.pick(namesakes_first(office, colleagues(office, card.assignee)))
    return Draft(
        {
            "title": card.title,
            "project": card.project,
            "name": person.name,
            "before": office.people[card.assignee].name if card.assignee != office.me.email else "me",
        },
        [
            find(person.name),
            ("search_cards", {"query": card.title, "project": card.project}),
            ("update_card", {"card_id": card.id, "field": "assignee", "value": person.email}),
        ],
        Changes(cards={card.id: {"assignee": person.email}}).as_json(),
    )


@template(
    "easy",
    'Forward the mail "{subject}" from {sender} to {name}.',
    '{name} should see what {sender} wrote to me under the subject "{subject}". Pass that mail on.',
    'I have promised a copy of a message to {name}: the one that {sender} sent me, "{subject}". Forward it, please.',
)
def forward_note(office: Office, dice: Dice) -> Draft:
    mail = some(dice, notes_of_colleagues(office))
    person = dice.pick(namesakes_first(office, colleagues(office, mail.sender)))
    return Draft(
        {"subject": mail.subject, "sender": office.people[mail.sender].name, "name": person.name},
        [
            find(person.name),
            ("search_mail", {"sender": mail.sender}),
            ("forward_mail", {"mail_id": mail.id, "to": [person.email]}),
        ],
        Changes(sent=[{"forward_of": mail.id, "to": [person.email]}]).as_json(),
    )


@template(
    "easy",
    'Put a meeting called "{title}" into the calendar: {day} at {time}, {minutes} minutes, with {a} and {b}.',
    '{a}, {b} and I want to sit together on {day} from {time} for {minutes} minutes. Send the invitations; call it "{title}".',
    'Book {minutes} minutes for "{title}" with {a} and {b}. We start at {time} on {day}.',
)
def set_up_meeting(office: Office, dice: Dice) -> Draft:
    a, b = dice.take(namesakes_first(office, colleagues(office)), 2)
    day, time = dice.pick(working_days(office.today)[1:]), dice.pick(SLOTS)
    minutes, title = dice.pick((30, 45, 60)), dice.pick(MEETINGS)
    event = Event(
        "", title, f"{day} {time}", minutes, office.me.email, tuple(sorted((office.me.email, a.email, b.email)))
    )
    call = {"title": title, "start": event.start, "minutes": minutes, "attendees": [a.email, b.email]}
    return Draft(
        {"title": title, "day": spoken(day), "time": time, "minutes": str(minutes), "a": a.name, "b": b.name},
        [find(a.name), find(b.name), ("create_event", call)],
        Changes(new_events=[event]).as_json(),
    )


@template(
    "easy",
    'Invoice {number} has been paid. Move the mail it came with to the folder "paid".',
    "The bank confirms that we have settled invoice {number}, so file the supplier's mail under paid.",
    "Find the mail from {supplier} with invoice {number}. File it in the folder for paid ones.",
)
def file_paid_invoice(office: Office, dice: Dice) -> Draft:
    mail = some(dice, (m for m in office.mails.values() if m.sender.startswith("billing@")))
    number = mail.subject.split()[-1]
    supplier = mail.sender.removeprefix("billing@").removesuffix(".example").replace("-", " ").title()
    return Draft(
        {"number": number, "supplier": supplier},
        [("search_mail", {"query": f"invoice {number}"}), ("move_mail", {"mail_id": mail.id, "folder": "paid"})],
        Changes(mails={mail.id: {"folder": "paid"}}).as_json(),
    )


@template(
    "easy",
    'Add a card to the board: "{title}", project {project}, for {name}, due on {day}.',
    'Somebody has to {title} for the {project} project by {day}, and {name} has agreed to. Create the card "{title}", with that day as the due date.',
    'Please open a card under {project} and assign it to {name}. Its title is "{title}", and the work is due on {day}.',
)
def new_card(office: Office, dice: Dice) -> Draft:
    person = dice.pick(namesakes_first(office, colleagues(office)))
    title, project = dice.pick(NEW_CARDS), dice.pick(PROJECTS[:4])
    due = dice.pick(working_days(office.today)[2:])
    return Draft(
        {"title": title, "project": project, "name": person.name, "day": spoken(due)},
        [
            find(person.name),
            ("create_card", {"title": title, "project": project, "assignee": person.email, "due": due}),
        ],
        Changes(new_cards=[Card("", title, project, person.email, "backlog", due)]).as_json(),
    )


def _identified_cards(office: Office) -> list[Card]:
    return named_once(list(office.cards.values()), lambda c: (c.title, c.project))


EASY: tuple[Template, ...] = (
    reply_to_note,
    cancel_one_of_two,
    correct_phone,
    reassign_card,
    forward_note,
    set_up_meeting,
    file_paid_invoice,
    new_card,
)
