"""Requests that take several look-ups, several actions, or a condition."""

from .dice import Dice
from .office import PROJECTS, TEAMS, Customer, Event, Mail, Office, shift, spoken
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
    is_free,
    named_once,
    namesakes_first,
    some,
    template,
)
from .vocabulary import MEETINGS, NEWSLETTERS, PHONE_SUBJECT, PLAN_SUBJECT
from .world import house_address, working_days

NOON = "13:00"


@template(
    "medium",
    "Start my one-to-one with {name} {minutes} minutes later than planned, on the same day.",
    "I will be late for the one-to-one with {name}. Push it back by {minutes} minutes.",
    "{name} and I have a one-to-one. Please move it so that it begins {minutes} minutes after its present start.",
)
def push_back(office: Office, dice: Dice) -> Draft:
    people = namesakes_first(office, (p for p in colleagues(office) if _one_to_ones(office, p.name)))
    event = _one_to_ones(office, some(dice, people).name)[0]
    minutes = dice.pick((30, 60, 90))
    start = shift(event.start, minutes)
    name = event.title.removeprefix("one-to-one with ")
    return Draft(
        {"name": name, "minutes": str(minutes)},
        [
            ("search_events", {"query": f"one-to-one with {name}"}),
            ("move_event", {"event_id": event.id, "start": start}),
        ],
        Changes(events={event.id: {"start": start}}).as_json(),
    )


@template(
    "medium",
    "{a} cannot come to the {title} on {day}. Take {a} off it and invite {b} instead.",
    "{b} stands in for {a} at the {title} of {day}. The attendees should say so: {b} is on the list, {a} is not.",
    "Change who is invited to the {title} on {day}: add {b}, remove {a}.",
)
def replace_attendee(office: Office, dice: Dice) -> Draft:
    events = named_once(list(office.events.values()), lambda e: (e.title, e.day))
    event = some(dice, (e for e in events if len(e.attendees) > 2))
    a = dice.pick([office.people[email] for email in event.attendees if email != office.me.email])
    b = some(dice, namesakes_first(office, colleagues(office, *event.attendees)))
    attendees = sorted({*event.attendees, b.email} - {a.email})
    return Draft(
        {"a": a.name, "b": b.name, "title": event.title, "day": spoken(event.day)},
        [
            find(b.name),
            ("search_events", {"query": event.title}),
            ("remove_attendee", {"event_id": event.id, "email": a.email}),
            ("add_attendee", {"event_id": event.id, "email": b.email}),
        ],
        Changes(events={event.id: {"attendees": attendees}}).as_json(),
    )


@template(
    "medium",
    "{customer} has written to us about a new phone number. Bring the customer record up to date.",
    "Look for the mail in which {contact} announces another phone number, and correct it in the record of {customer}.",
    "The number we have on file for {customer} is out of date, and they have mailed us the right one. Fix the record.",
)
def phone_from_mail(office: Office, dice: Dice) -> Draft:
    customer, mail = _customer_with_mail(office, dice, PHONE_SUBJECT)
    phone = mail.body.split("reach us at ")[1].split(".")[0].replace(" ", "")
    return Draft(
        {"customer": customer.name, "contact": customer.contact},
        [
            ("search_customers", {"query": customer.name}),
            ("search_mail", {"sender": customer.email, "query": "phone number"}),
            ("read_mail", {"mail_id": mail.id}),
            ("update_customer", {"customer_id": customer.id, "field": "phone", "value": phone}),
        ],
        Changes(customers={customer.id: {"phone": phone}}).as_json(),
    )


@template(
    "medium",
    "Move every issue of {newsletter} that arrived before {day} from my inbox to the archive.",
    "My inbox is full of {newsletter}. Archive the issues sent before {day}; those of that day and later stay.",
    "Tidy up my inbox: whatever {newsletter} mailed me earlier than {day} belongs in the archive folder.",
)
def archive_old_issues(office: Office, dice: Dice) -> Draft:
    newsletter, issues = _issues(office, dice)
    kept = dice.between(1, len(issues) - 2)
    day = issues[-kept].sent_at[:10]
    old = enough((m for m in issues if m.sent_at[:10] < day), 2, len(issues))
    return Draft(
        {"newsletter": newsletter, "day": spoken(day)},
        [
            ("search_mail", {"query": newsletter, "folder": "inbox"}),
            *(("move_mail", {"mail_id": m.id, "folder": "archive"}) for m in old),
        ],
        Changes(mails={m.id: {"folder": "archive"} for m in old}).as_json(),
    )


@template(
    "medium",
    "Every card of the {project} project that is overdue and not done gets {day} as its new due date.",
    "Look at the cards of the {project}: what was due before today and is still not done is now due on {day}.",
    "We give the late work in the {project} project more time. Set the due date to {day} on all of its cards whose date "
    "has passed, unless they are done.",
)
def postpone_overdue(office: Office, dice: Dice) -> Draft:
    project = dice.pick(PROJECTS[:4])
    cards = [c for c in office.cards.values() if c.project == project and c.status != "done"]
    late = enough((c for c in cards if c.due < office.today), 2, 5)
    if any(c.due == office.today for c in cards):
        raise Unfit
    due = dice.pick(working_days(office.today)[3:])
    return Draft(
        {"project": project, "day": spoken(due)},
        [
            ("search_cards", {"project": project}),
            *(("update_card", {"card_id": c.id, "field": "due", "value": due}) for c in late),
        ],
        Changes(cards={c.id: {"due": due} for c in late}).as_json(),
    )


@template(
    "medium",
    'From now on {b} is the owner of those customers of {a} whose status is "{status}". Change the records.',
    'Hand the customers that {a} owns over to {b}, but only the ones with the status "{status}".',
    '{a} has too much to do. Please make {b} the owner of each "{status}" customer that {a} owns at present.',
)
def hand_over_customers(office: Office, dice: Dice) -> Draft:
    sales = [p for p in office.people.values() if p.team == "sales"]
    a, b = dice.take(sales, 2)
    status = dice.pick(("trial", "paused", "active"))
    customers = enough((c for c in office.customers.values() if c.owner == a.email and c.status == status), 2, 4)
    return Draft(
        {"a": a.name, "b": b.name, "status": status},
        [
            find(a.name),
            find(b.name),
            ("search_customers", {"owner": a.email, "status": status}),
            *(("update_customer", {"customer_id": c.id, "field": "owner", "value": b.email}) for c in customers),
        ],
        Changes(customers={c.id: {"owner": b.email} for c in customers}).as_json(),
    )


@template(
    "medium",
    'Tell the owner of {customer} what that customer owes us: one mail with the subject "open balance", its text just the '
    "balance as it stands in the record, such as 123.40.",
    "The colleague who looks after {customer} needs to know its balance. Send them a mail with the number from the record as "
    'its only text; the subject is "open balance".',
    "How much does {customer} owe? Mail the figure as we have it on record, without currency or other words, to the owner of "
    'that customer. Subject: "open balance".',
)
def mail_balance(office: Office, dice: Dice) -> Draft:
    stems = [c.name.split()[0] for c in office.customers.values()]
    customer = some(dice, (c for c in office.customers.values() if stems.count(c.name.split()[0]) > 1))
    mail = {"to": [customer.owner], "subject": "open balance", "body": customer.balance}
    return Draft(
        {"customer": customer.name},
        [
            ("search_customers", {"query": customer.name}),
            ("read_customer", {"customer_id": customer.id}),
            ("send_mail", mail),
        ],
        Changes(sent=[mail]).as_json(),
    )


@template(
    "medium",
    "I have to leave early on {day}. Cancel the events with me that start at {noon} or later on that day, except "
    "customer calls.",
    "Free my afternoon of {day} by cancelling what I am invited to from {noon} on. Customer calls take place, though.",
    "On {day} nobody but customers can have me from {noon} on. Call off those of my meetings that begin then or after, and keep my "
    "customer calls.",
)
def clear_afternoon(office: Office, dice: Dice) -> Draft:
    day = dice.pick(working_days(office.today)[1:])
    mine = [e for e in office.events.values() if e.day == day and office.me.email in e.attendees]
    if any(e.start < f"{day} {NOON}" < e.end for e in mine):
        raise Unfit
    internal = [e for e in mine if not e.title.startswith("customer call")]
    off = enough((e for e in internal if e.start >= f"{day} {NOON}"), 1, 4)
    if len(off) == len(mine):
        raise Unfit
    return Draft(
        {"day": spoken(day), "noon": NOON},
        [
            ("list_events", {"from_day": day, "to_day": day, "attendee": office.me.email}),
            *(("cancel_event", {"event_id": e.id}) for e in off),
        ],
        Changes(cancelled_events=[e.id for e in off]).as_json(),
    )


@template(
    "medium",
    "Delete all issues of {newsletter} from my mailbox but the newest.",
    "I only ever read the latest {newsletter}. Get rid of the older mails for good.",
    "Of what {newsletter} has sent me, keep the most recent mail and delete the others.",
)
def keep_newest_issue(office: Office, dice: Dice) -> Draft:
    newsletter, issues = _issues(office, dice)
    old = issues[:-1]
    return Draft(
        {"newsletter": newsletter},
        [("search_mail", {"query": newsletter}), *(("delete_mail", {"mail_id": m.id}) for m in old)],
        Changes(deleted_mails=[m.id for m in old]).as_json(),
    )


@template(
    "medium",
    'Book an hour for {a}, {b} and me on {day}, called "{title}". It begins at the earliest full hour between 9:00 and 17:00 at '
    "which all three of us are free for the hour.",
    "{a}, {b} and I need 60 minutes together on {day}. Take the first start on the hour, from 9:00 on, that clashes with no "
    'event of ours. The title is "{title}".',
    'Please set up "{title}" (60 minutes) with {a} and {b}. It must be on {day}, on the hour, as early as possible in the working '
    "day, and none of us may have anything else then, me included.",
)
def first_common_hour(office: Office, dice: Dice) -> Draft:
    day = dice.pick(working_days(office.today)[1:])
    a, b = dice.take(colleagues(office), 2)
    attendees = sorted((office.me.email, a.email, b.email))
    start = first_free_hour(office, day, attendees, 60)
    if start.endswith("09:00") or is_free(office, office.me.email, f"{day} 09:00", 60):
        raise Unfit
    title = dice.pick(MEETINGS)
    event = Event("", title, start, 60, office.me.email, tuple(attendees))
    return Draft(
        {"a": a.name, "b": b.name, "day": spoken(day), "title": title},
        [
            find(a.name),
            find(b.name),
            *(("list_events", {"from_day": day, "to_day": day, "attendee": email}) for email in attendees),
            ("create_event", {"title": title, "start": start, "minutes": 60, "attendees": [a.email, b.email]}),
        ],
        Changes(new_events=[event]).as_json(),
    )


@template(
    "medium",
    "{customer} wants another plan, as their mail says. Change it in the record and reply to that mail with exactly this:"
    "\n\n{text}",
    "Deal with the mail in which {customer} asks for a change of plan: update the record, then answer with these words only:"
    "\n\n{text}",
    "I have agreed with {contact} of {customer} that they get the plan they asked for by mail. Put it into the record, and send "
    "this as the reply to their mail:\n\n{text}",
)
def plan_from_mail(office: Office, dice: Dice) -> Draft:
    customer, mail = _customer_with_mail(office, dice, PLAN_SUBJECT)
    plan = mail.body.split("change to the ")[1].split()[0]
    text = dice.pick(("Your new plan is active.", "Done. Thank you for your patience.", "We have changed your plan."))
    return Draft(
        {"customer": customer.name, "contact": customer.contact, "text": text},
        [
            ("search_customers", {"query": customer.name}),
            ("search_mail", {"sender": customer.email}),
            ("read_mail", {"mail_id": mail.id}),
            ("update_customer", {"customer_id": customer.id, "field": "plan", "value": plan}),
            ("reply_to_mail", {"mail_id": mail.id, "body": text}),
        ],
        Changes(sent=[{"reply_to": mail.id, "body": text}], customers={customer.id: {"plan": plan}}).as_json(),
    )


@template(
    "medium",
    'Send the head of {team} a mail with the subject "open cards". Its text is one number: how many cards that are not done are '
    "assigned to people of the {team} team, the head included.",
    "Count the cards that the members of the {team} team still have to finish (every status but done; the head of the team is "
    'a member). Mail that number alone, under the subject "open cards", to the head.',
    "The head of {team} asks for a figure from the board: the cards assigned to anyone in {team}, the head among them, minus those "
    'that are done. Write a mail with nothing but that figure in it. Subject: "open cards".',
)
def count_open_cards(office: Office, dice: Dice) -> Draft:
    team = dice.pick([t for t in TEAMS if t != office.me.team])
    members = [p for p in office.people.values() if p.team == team]
    head = next(p for p in members if p.manager is None)
    emails = {p.email for p in members}
    count = sum(c.assignee in emails and c.status != "done" for c in office.cards.values())
    mail = {"to": [head.email], "subject": "open cards", "body": str(count)}
    looks: list[Call] = [("search_cards", {"assignee": p.email}) for p in members]
    return Draft({"team": team}, [find(team), *looks, ("send_mail", mail)], Changes(sent=[mail]).as_json())


def _one_to_ones(office: Office, name: str) -> list[Event]:
    """The one-to-one with somebody that has not begun today."""
    return [e for e in office.events.values() if e.title == f"one-to-one with {name}" and e.day > office.today]


def _customer_with_mail(office: Office, dice: Dice, subject: str) -> tuple[Customer, Mail]:
    """A customer who wrote once about something, and the mail."""
    by_email = {c.email: c for c in office.customers.values()}
    mails = named_once([m for m in office.mails.values() if m.subject == subject], lambda m: m.sender)
    stems = [c.name.split()[0] for c in office.customers.values()]
    mail = some(dice, (m for m in mails if stems.count(by_email[m.sender].name.split()[0]) > 1))
    return by_email[mail.sender], mail


def _issues(office: Office, dice: Dice) -> tuple[str, list[Mail]]:
    """A newsletter and its mails, oldest first."""
    newsletter = dice.pick(NEWSLETTERS)
    sender = house_address("news", newsletter)
    issues = sorted((m for m in office.mails.values() if m.sender == sender), key=lambda m: m.sent_at)
    return newsletter, enough(issues, 3, 9)


MEDIUM: tuple[Template, ...] = (
    push_back,
    replace_attendee,
    phone_from_mail,
    archive_old_issues,
    postpone_overdue,
    hand_over_customers,
    mail_balance,
    clear_afternoon,
    keep_newest_issue,
    first_common_hour,
    plan_from_mail,
    count_open_cards,
)
