"""Requests that go across mail, calendar, customers and board, or need a search for the right moment."""

from .dice import Dice
from .office import Card, Event, Office, days_after, spoken
from .template import (
    Call,
    Changes,
    Draft,
    Template,
    Unfit,
    colleagues,
    enough,
    find,
    first_free_hour,
    named_once,
    some,
    template,
)
from .vocabulary import COMPLAINTS
from .world import working_days


@template(
    "hard",
    'For each customer of {name} whose renewal date is {day} or earlier, put a card on the board: its title is "renew" followed '
    "by the name of the customer, its project renewals, its assignee {name}, its due date the day of the renewal.",
    "{name} must not miss a renewal. Go through the customers that {name} owns, and for those that renew up to and including {day} "
    'create a card each in the project renewals, assigned to {name} and due on the renewal date. Call it "renew" plus the name of '
    'the customer, for instance "renew Acme Foods".',
    'Plan the renewals of {name}: one card per customer (owner {name}, renewal not after {day}), project renewals, title "renew X" '
    "where X is the customer's name, due when the contract renews, and to be done by {name}.",
)
def plan_renewals(office: Office, dice: Dice) -> Draft:
    owner = some(dice, (p for p in office.people.values() if p.team == "sales"))
    day = days_after(office.today, dice.between(40, 70))
    owned = [c for c in office.customers.values() if c.owner == owner.email]
    customers = enough((c for c in owned if c.renewal <= day), 2, 4)
    if len(customers) == len(owned):
        raise Unfit
    cards = [Card("", f"renew {c.name}", "renewals", owner.email, "backlog", c.renewal) for c in customers]
    looks: list[Call] = [("read_customer", {"customer_id": c.id}) for c in owned]
    calls: list[Call] = [
        ("create_card", {"title": c.title, "project": c.project, "assignee": c.assignee, "due": c.due}) for c in cards
    ]
    return Draft(
        {"name": owner.name, "day": spoken(day)},
        [find(owner.name), ("search_customers", {"owner": owner.email}), *looks, *calls],
        Changes(new_cards=cards).as_json(),
    )


@template(
    "hard",
    "{name} has asked by mail to move one of our meetings. Do as the mail says, and reply to it with exactly this:\n\n{text}",
    "Look up what {name} wrote to me about the {title}. Reschedule that meeting accordingly and answer the mail in these words:"
    "\n\n{text}",
    "The wish that {name} has about the time of the {title} is fine with me; it is in a mail. Change the calendar, then send this "
    "as the reply:\n\n{text}",
)
def grant_wish(office: Office, dice: Dice) -> Draft:
    titles = {e.title for e in office.events.values()}
    wishes = [m for m in office.mails.values() if m.sender in office.people and m.subject in titles]
    mail = some(dice, named_once(wishes, lambda m: m.sender))
    day, time = mail.body.split("our meeting on ")[1].removesuffix(" on the same day?").split(" to ")
    [event] = enough((e for e in office.events.values() if (e.title, spoken(e.day)) == (mail.subject, day)), 1, 1)
    if event.day == office.today:
        raise Unfit
    start, text = (
        f"{event.day} {time}",
        dice.pick(("Moved.", "That works, the meeting is moved.", "Done, see you then.")),
    )
    return Draft(
        {"name": office.people[mail.sender].name, "title": event.title, "text": text},
        [
            ("search_mail", {"sender": mail.sender}),
            ("read_mail", {"mail_id": mail.id}),
            ("search_events", {"query": event.title}),
            ("move_event", {"event_id": event.id, "start": start}),
            ("reply_to_mail", {"mail_id": mail.id, "body": text}),
        ],
        Changes(sent=[{"reply_to": mail.id, "body": text}], events={event.id: {"start": start}}).as_json(),
    )


@template(
    "hard",
    "Of all invoices that suppliers have mailed me, forward the one with the highest amount to {name} and leave it in the inbox. "
    "Move all the others to the folder invoices.",
    "Sort out the suppliers' invoices in my inbox: they all go to the invoices folder, except for the most expensive one, which "
    "stays where it is and is forwarded to {name}.",
    "{name} wants to check our largest bill. Forward the mail with that invoice without moving it, then file the mails with the "
    "other supplier invoices from my inbox under invoices.",
)
def biggest_invoice(office: Office, dice: Dice) -> Draft:
    invoices = [m for m in office.mails.values() if m.sender.startswith("billing@")]
    amounts = {m.id: float(m.body.split("Amount due: ")[1].split()[0]) for m in invoices}
    biggest = max(invoices, key=lambda m: amounts[m.id])
    if list(amounts.values()).count(amounts[biggest.id]) > 1:
        raise Unfit
    person = some(dice, (p for p in colleagues(office) if p.team == "finance"))
    others = [m for m in invoices if m is not biggest]
    return Draft(
        {"name": person.name},
        [
            ("search_mail", {"sender": "billing@", "folder": "inbox"}),
            *(("read_mail", {"mail_id": m.id}) for m in invoices),
            find(person.name),
            ("forward_mail", {"mail_id": biggest.id, "to": [person.email]}),
            *(("move_mail", {"mail_id": m.id, "folder": "invoices"}) for m in others),
        ],
        Changes(
            sent=[{"forward_of": biggest.id, "to": [person.email]}],
            mails={m.id: {"folder": "invoices"} for m in others},
        ).as_json(),
    )


@template(
    "hard",
    "{name} leaves us today. Give all cards of {name} that are not done to the manager of {name}, and take {name} off every event "
    "from tomorrow on.",
    "Today is the last day of {name}. What {name} has on the board and has not finished goes to the head of the team; in the calendar "
    "{name} must not be among the attendees of anything after today.",
    "We have to unwind the work of {name}: first reassign each unfinished card (any status but done) to the manager of {name}, then "
    "remove {name} from all events later than today.",
)
def unwind_leaver(office: Office, dice: Dice) -> Draft:
    leaver = some(dice, (p for p in colleagues(office) if p.manager))
    cards = enough((c for c in office.cards.values() if c.assignee == leaver.email and c.status != "done"), 1, 5)
    events = enough((e for e in office.events.values() if leaver.email in e.attendees and e.day > office.today), 1, 6)
    if any(e.organiser == leaver.email or len(e.attendees) < 3 for e in events):
        raise Unfit
    manager = leaver.manager
    last_day = max(e.day for e in office.events.values())
    return Draft(
        {"name": leaver.name},
        [
            find(leaver.name),
            ("search_cards", {"assignee": leaver.email}),
            *(("update_card", {"card_id": c.id, "field": "assignee", "value": manager}) for c in cards),
            (
                "list_events",
                {"from_day": days_after(office.today, 1), "to_day": last_day, "attendee": leaver.email},
            ),
            *(("remove_attendee", {"event_id": e.id, "email": leaver.email}) for e in events),
        ],
        Changes(
            cards={c.id: {"assignee": manager} for c in cards},
            events={e.id: {"attendees": [a for a in e.attendees if a != leaver.email]} for e in events},
        ).as_json(),
    )


@template(
    "hard",
    "On {day} I am booked twice at the same time. Keep the customer call, and move the other meeting to the first full hour of that "
    "day, from 9:00 on, at which none of its attendees has anything else while it lasts. It must be over by 17:00.",
    "Two of my appointments on {day} collide, a customer call and an internal one. Reschedule the internal one on the same day: the "
    "earliest start on the hour, between 9:00 and 17:00, when all its attendees are free for its whole length.",
    "My customer call on {day} overlaps with another event that I attend. Give that other event a new start on the same day, as early "
    "as possible but on the hour and within 9:00 to 17:00, so that everybody invited to it, me included, has nothing else then.",
)
def resolve_conflict(office: Office, dice: Dice) -> Draft:
    mine = [e for e in office.events.values() if office.me.email in e.attendees and e.day > office.today]
    pairs = [
        (call, other)
        for call in mine
        for other in mine
        if call.title.startswith("customer call") and other is not call and call.overlaps(other.start, other.minutes)
    ]
    call, event = some(dice, named_once(pairs, lambda pair: pair[0].day))
    if event.title.startswith("customer call") or _collide_otherwise(mine, call, event):
        raise Unfit
    start = first_free_hour(office, event.day, event.attendees, event.minutes, besides=event)
    return Draft(
        {"day": spoken(event.day)},
        [
            ("list_events", {"from_day": event.day, "to_day": event.day}),
            ("list_events", {"from_day": event.day, "to_day": event.day, "attendee": office.me.email}),
            ("move_event", {"event_id": event.id, "start": start}),
        ],
        Changes(events={event.id: {"start": start}}).as_json(),
    )


@template(
    "hard",
    '{customer} has complained by mail. Set the status of the customer to "at risk", forward that mail to the owner of the account, and '
    'create a card "call {customer}" for the owner in the project customer portal, due on {day}.',
    "We must not lose {customer}. Mark them as at risk, see to it that the colleague who owns them is forwarded their complaint from my "
    'inbox, and put "call {customer}" on the board for the same colleague (project customer portal, due on {day}).',
    "There is an angry mail from {contact} of {customer}. Forward it to the owner of that customer, who also gets a card titled "
    '"call {customer}" under customer portal, due on {day}. The record of the customer should say at risk from now on.',
)
def handle_complaint(office: Office, dice: Dice) -> Draft:
    by_email = {c.email: c for c in office.customers.values()}
    complaints = {subject for subject, _ in COMPLAINTS}
    mail = some(dice, (m for m in office.mails.values() if m.subject in complaints))
    customer = by_email[mail.sender]
    due = dice.pick(working_days(office.today)[1:4])
    card = Card("", f"call {customer.name}", "customer portal", customer.owner, "backlog", due)
    return Draft(
        {"customer": customer.name, "contact": customer.contact, "day": spoken(due)},
        [
            ("search_customers", {"query": customer.name}),
            ("search_mail", {"sender": customer.email}),
            ("read_mail", {"mail_id": mail.id}),
            ("update_customer", {"customer_id": customer.id, "field": "status", "value": "at risk"}),
            ("forward_mail", {"mail_id": mail.id, "to": [customer.owner]}),
            ("create_card", {"title": card.title, "project": card.project, "assignee": card.assignee, "due": due}),
        ],
        Changes(
            sent=[{"forward_of": mail.id, "to": [customer.owner]}],
            customers={customer.id: {"status": "at risk"}},
            new_cards=[card],
        ).as_json(),
    )


def _collide_otherwise(mine: list[Event], call: Event, event: Event) -> bool:
    """Whether there is a second collision on that day, so that "the" collision would not be one."""
    others = [e for e in mine if e.day == call.day and e not in (call, event)]
    return any(a.overlaps(b.start, b.minutes) for i, a in enumerate(others) for b in [*others[i + 1 :], call, event])


HARD: tuple[Template, ...] = (
    plan_renewals,
    grant_wish,
    biggest_invoice,
    unwind_leaver,
    resolve_conflict,
    handle_complaint,
)
