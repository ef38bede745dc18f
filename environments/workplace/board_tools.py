"""The board with the cards of all projects."""

from dataclasses import replace
from typing import Any

from .office import CARD_STATUSES, PROJECTS, Card, Desk
from .toolkit import PAGE, ToolError, choice, colleague, day, found, matches, page_of, prose, text, tool

_CHANGEABLE = ("title", "project", "assignee", "status", "due")


def search_cards(
    desk: Desk, query: str = "", project: str = "", assignee: str = "", status: str = "", page: int = 1
) -> Any:
    who = colleague(desk, assignee).email if assignee.strip() else ""
    cards = [
        c
        for c in desk.cards.values()
        if matches(query, c.title)
        and project in ("", c.project)
        and who in ("", c.assignee)
        and status in ("", c.status)
    ]
    cards.sort(key=lambda c: (c.due, c.id))
    lines = [
        {
            "card_id": c.id,
            "title": c.title,
            "project": c.project,
            "assignee": c.assignee,
            "status": c.status,
            "due": c.due,
        }
        for c in cards
    ]
    return page_of(lines, page)


def create_card(desk: Desk, title: str, project: str, assignee: str, due: str) -> Any:
    who = colleague(desk, assignee).email
    key = desk.new_id("card")
    desk.cards[key] = Card(key, prose("title", title), project, who, "backlog", day("due", due))
    return f"{key} is on the board, in the backlog."


def update_card(desk: Desk, card_id: str, field: str, value: str) -> Any:
    card: Card = found("card", desk.cards, card_id)
    desk.cards[card.id] = replace(card, **{field: _checked(desk, field, value)})
    return f"{field} of {card.id} is {getattr(desk.cards[card.id], field)} now."


def delete_card(desk: Desk, card_id: str) -> Any:
    card: Card = found("card", desk.cards, card_id)
    del desk.cards[card.id]
    return f"{card.id} is deleted for good."


def _checked(desk: Desk, field: str, value: str) -> str:
    if field == "assignee":
        return colleague(desk, value).email
    if field == "due":
        return day("due", value)
    options = {"status": CARD_STATUSES, "project": PROJECTS}.get(field)
    if options and value not in options:
        raise ToolError(f"{field} is one of {', '.join(options)}, not {value!r}")
    return prose(field, value)


_CARD_ID = text("Id of the card, such as card-11.")

BOARD_TOOLS = (
    tool(
        search_cards,
        "Search the cards of the board, those that are due first at the top.",
        {
            "query": text("Words that all occur in the title."),
            "project": choice("Only this project.", PROJECTS),
            "assignee": text("Only cards of the colleague with this address."),
            "status": choice("Only this status.", CARD_STATUSES),
            "page": PAGE,
        },
        optional=("query", "project", "assignee", "status", "page"),
    ),
    tool(
        create_card,
        "Put a new card into the backlog.",
        {
            "title": text("Title."),
            "project": choice("Project.", PROJECTS),
            "assignee": text("Address of the colleague who does it."),
            "due": text("Day as YYYY-MM-DD."),
        },
    ),
    tool(
        update_card,
        "Change one field of a card.",
        {
            "card_id": _CARD_ID,
            "field": choice("Which field.", _CHANGEABLE),
            "value": text("Its new value; an assignee is an address, a due date a day as YYYY-MM-DD."),
        },
    ),
    tool(delete_card, "Delete a card for good. It cannot be taken back.", {"card_id": _CARD_ID}),
)
