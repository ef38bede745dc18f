"""The customer records."""

import re
from dataclasses import asdict, replace
from typing import Any

from .office import CUSTOMER_STATUSES, PLANS, Customer, Desk
from .toolkit import PAGE, ToolError, address, choice, colleague, day, found, matches, page_of, prose, text, tool

_CHANGEABLE = ("contact", "email", "phone", "status", "plan", "owner", "renewal")


def search_customers(
    desk: Desk, query: str = "", owner: str = "", status: str = "", plan: str = "", page: int = 1
) -> Any:
    who = colleague(desk, owner).email if owner.strip() else ""
    customers = [
        c
        for c in desk.customers.values()
        if matches(query, c.name, c.contact, c.email)
        and who in ("", c.owner)
        and status in ("", c.status)
        and plan in ("", c.plan)
    ]
    customers.sort(key=lambda c: c.name)
    return page_of(
        [{"customer_id": c.id, "name": c.name, "status": c.status, "owner": c.owner} for c in customers], page
    )


def read_customer(desk: Desk, customer_id: str) -> Any:
    record = asdict(found("customer", desk.customers, customer_id))
    return {"customer_id": record.pop("id"), **record}


def update_customer(desk: Desk, customer_id: str, field: str, value: str) -> Any:
    customer: Customer = found("customer", desk.customers, customer_id)
    desk.customers[customer.id] = replace(customer, **{field: _checked(desk, field, value)})
    return f"{field} of {customer.id} is {getattr(desk.customers[customer.id], field)} now."


def phone_number(value: str) -> str:
    """A number in its international form, however it was grouped.

    >>> phone_number("+49 30 555-0142")
    '+49305550142'
    """
    if not re.fullmatch(r"\+[\d ()/.-]{6,}", value.strip()):
        raise ToolError(f"a phone number begins with + and the country code, not {value!r}")
    return "+" + re.sub(r"\D", "", value)


def _checked(desk: Desk, field: str, value: str) -> str:
    if field == "phone":
        return phone_number(value)
    if field == "email":
        return address(value)
    if field == "owner":
        return colleague(desk, value).email
    if field == "renewal":
        return day("renewal", value)
    options = {"status": CUSTOMER_STATUSES, "plan": PLANS}.get(field)
    if options and value not in options:
        raise ToolError(f"{field} is one of {', '.join(options)}, not {value!r}")
    return prose(field, value)


_CUSTOMER_ID = text("Id of the customer, such as customer-03.")

CUSTOMER_TOOLS = (
    tool(
        search_customers,
        "Search customers, by name in alphabetical order. Returns ids, names, status and owner; read_customer shows all.",
        {
            "query": text("Words that all occur in the company's name, the contact's name or the address."),
            "owner": text("Only customers that the colleague with this address looks after."),
            "status": choice("Only this status.", CUSTOMER_STATUSES),
            "plan": choice("Only this plan.", PLANS),
            "page": PAGE,
        },
        optional=("query", "owner", "status", "plan", "page"),
    ),
    tool(
        read_customer,
        "Show everything about a customer; the balance is what it owes in EUR.",
        {"customer_id": _CUSTOMER_ID},
    ),
    tool(
        update_customer,
        "Change one field of a customer.",
        {
            "customer_id": _CUSTOMER_ID,
            "field": choice("Which field.", _CHANGEABLE),
            "value": text("Its new value; an owner is an address, a renewal a day as YYYY-MM-DD."),
        },
    ),
)
