"""The shared calendar."""

from dataclasses import replace
from typing import Any

from .office import Desk, Event
from .toolkit import PAGE, ToolError, colleague, day, found, matches, number, page_of, prose, text, texts, time, tool


def list_events(desk: Desk, from_day: str, to_day: str, attendee: str = "", page: int = 1) -> Any:
    first, last = day("from_day", from_day), day("to_day", to_day)
    who = colleague(desk, attendee).email if attendee.strip() else None
    return _page(
        [e for e in desk.events.values() if first <= e.day <= last and (who is None or who in e.attendees)], page
    )


def search_events(desk: Desk, query: str, page: int = 1) -> Any:
    return _page([e for e in desk.events.values() if matches(query, e.title)], page)


def create_event(desk: Desk, title: str, start: str, minutes: int, attendees: list[str]) -> Any:
    me = desk.office.me.email
    invited = tuple(sorted({me, *(colleague(desk, email).email for email in attendees)}))
    key = desk.new_id("event")
    desk.events[key] = Event(key, prose("title", title), time("start", start), int(minutes), me, invited)
    return f"{key} is in the calendar; invitations went to {', '.join(invited)}."


def move_event(desk: Desk, event_id: str, start: str) -> Any:
    event: Event = found("event", desk.events, event_id)
    desk.events[event.id] = replace(event, start=time("start", start))
    return f"{event.id} starts at {desk.events[event.id].start} now and takes {event.minutes} minutes as before."


def add_attendee(desk: Desk, event_id: str, email: str) -> Any:
    event: Event = found("event", desk.events, event_id)
    who = colleague(desk, email).email
    if who in event.attendees:
        raise ToolError(f"{who} is invited to {event.id} already")
    desk.events[event.id] = replace(event, attendees=tuple(sorted({*event.attendees, who})))
    return f"{who} is invited to {event.id}."


def remove_attendee(desk: Desk, event_id: str, email: str) -> Any:
    event: Event = found("event", desk.events, event_id)
    who = colleague(desk, email).email
    if who not in event.attendees:
        raise ToolError(f"{who} is not invited to {event.id}")
    desk.events[event.id] = replace(event, attendees=tuple(a for a in event.attendees if a != who))
    return f"{who} is no longer invited to {event.id}."


def cancel_event(desk: Desk, event_id: str) -> Any:
    event: Event = found("event", desk.events, event_id)
    del desk.events[event.id]
    if event.id not in desk.office.events:
        desk.withdrawn.append(event)
    return f"{event.id} is cancelled; everybody has been told."


def _page(events: list[Event], page: int) -> dict[str, Any]:
    lines = [
        {
            "event_id": e.id,
            "title": e.title,
            "start": e.start,
            "end": e.end,
            "organiser": e.organiser,
            "attendees": list(e.attendees),
        }
        for e in sorted(events, key=lambda e: (e.start, e.id))
    ]
    return page_of(lines, page)


_EVENT_ID = text("Id of the event, such as event-07.")
_START = text("Start as YYYY-MM-DD HH:MM.")

CALENDAR_TOOLS = (
    tool(
        list_events,
        "List the events of some days, of everybody or of one colleague, in order of time.",
        {
            "from_day": text("First day as YYYY-MM-DD."),
            "to_day": text("Last day as YYYY-MM-DD."),
            "attendee": text("Only events with this address among the attendees."),
            "page": PAGE,
        },
        optional=("attendee", "page"),
    ),
    tool(
        search_events,
        "Search events by their title, in order of time.",
        {"query": text("Words that all occur in the title."), "page": PAGE},
        optional=("page",),
    ),
    tool(
        create_event,
        "Put a new event into the calendar and invite colleagues; you organise it and need not be named.",
        {
            "title": text("Title."),
            "start": _START,
            "minutes": number("Length in minutes."),
            "attendees": texts("Addresses of colleagues."),
        },
    ),
    tool(
        move_event,
        "Give an event another start; it keeps its length.",
        {"event_id": _EVENT_ID, "start": _START},
    ),
    tool(
        add_attendee,
        "Invite a colleague to an event.",
        {"event_id": _EVENT_ID, "email": text("Address of the colleague.")},
    ),
    tool(
        remove_attendee,
        "Take a colleague off an event.",
        {"event_id": _EVENT_ID, "email": text("Address of the colleague.")},
    ),
    tool(
        cancel_event,
        "Cancel an event and tell everybody. It cannot be taken back.",
        {"event_id": _EVENT_ID},
    ),
)
