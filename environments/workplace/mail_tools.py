"""Mail and the staff directory."""

from dataclasses import replace
from typing import Any

from .office import FOLDERS, Desk, Mail
from .toolkit import PAGE, ToolError, address, choice, found, matches, page_of, prose, text, texts, tool


def find_people(desk: Desk, query: str) -> Any:
    people = [p for p in desk.office.people.values() if matches(query, p.name, p.email, p.team, p.title)]
    return [
        {"name": p.name, "email": p.email, "team": p.team, "title": p.title, "manager": p.manager}
        for p in sorted(people, key=lambda p: p.name)
    ]


def search_mail(desk: Desk, query: str = "", sender: str = "", folder: str = "", page: int = 1) -> Any:
    mails = [
        m
        for m in desk.mails.values()
        if matches(query, m.subject, m.body) and matches(sender, m.sender) and folder in ("", m.folder)
    ]
    mails.sort(key=lambda m: (m.sent_at, m.id), reverse=True)
    return page_of([_line(m) for m in mails], page)


def read_mail(desk: Desk, mail_id: str) -> Any:
    mail: Mail = found("mail", desk.mails, mail_id)
    return {**_line(mail), "body": mail.body}


def send_mail(desk: Desk, to: list[str], subject: str, body: str) -> Any:
    recipients = _recipients(to)
    subject, body = prose("subject", subject), prose("body", body)
    desk.sent.append({"to": list(recipients), "subject": subject, "body": body})
    return _file(desk, recipients, subject, body)


def reply_to_mail(desk: Desk, mail_id: str, body: str) -> Any:
    mail: Mail = found("mail", desk.mails, mail_id)
    if mail.folder == "sent":
        raise ToolError(f"{mail.id} was sent from here; there is nobody to reply to")
    body = prose("body", body)
    desk.sent.append({"reply_to": mail.id, "body": body})
    return _file(desk, (mail.sender,), f"Re: {mail.subject}", body)


def forward_mail(desk: Desk, mail_id: str, to: list[str]) -> Any:
    mail: Mail = found("mail", desk.mails, mail_id)
    recipients = _recipients(to)
    desk.sent.append({"forward_of": mail.id, "to": list(recipients)})
    return _file(desk, recipients, f"Fwd: {mail.subject}", mail.body)


def move_mail(desk: Desk, mail_id: str, folder: str) -> Any:
    mail: Mail = found("mail", desk.mails, mail_id)
    if "sent" in (mail.folder, folder):
        raise ToolError("sent mails stay in their folder, and no other mail goes there")
    desk.mails[mail.id] = replace(mail, folder=folder)
    return f"{mail.id} is in {folder} now."


def delete_mail(desk: Desk, mail_id: str) -> Any:
    mail: Mail = found("mail", desk.mails, mail_id)
    del desk.mails[mail.id]
    return f"{mail.id} is deleted for good."


def _line(mail: Mail) -> dict[str, Any]:
    return {
        "mail_id": mail.id,
        "folder": mail.folder,
        "from": mail.sender,
        "to": list(mail.to),
        "subject": mail.subject,
        "sent_at": mail.sent_at,
    }


def _recipients(to: list[str]) -> tuple[str, ...]:
    return tuple(sorted({address(email) for email in to}))


def _file(desk: Desk, to: tuple[str, ...], subject: str, body: str) -> str:
    """Keep a copy in `sent`, and say that the mail is gone."""
    key = desk.new_id("mail")
    desk.mails[key] = Mail(key, "sent", desk.office.me.email, to, subject, body, f"{desk.office.today} 09:00")
    return f"Sent to {', '.join(to)}; the copy is {key}."


_MAIL_ID = text("Id of the mail, such as mail-014.")

MAIL_TOOLS = (
    tool(
        find_people,
        "Look up colleagues by name, address, team or job title. Returns name, address, team, title and manager.",
        {"query": text("Words that all occur in the name, address, team or title.")},
    ),
    tool(
        search_mail,
        "Search the mailbox, newest first. Returns ids and headers; read_mail shows a text.",
        {
            "query": text("Words that all occur in subject or text."),
            "sender": text("Part of the sender's address."),
            "folder": choice("Only this folder.", FOLDERS),
            "page": PAGE,
        },
        optional=("query", "sender", "folder", "page"),
    ),
    tool(read_mail, "Show a mail with its text.", {"mail_id": _MAIL_ID}),
    tool(
        send_mail,
        "Send a new mail. It cannot be taken back.",
        {"to": texts("Addresses."), "subject": text("Subject."), "body": text("Text.")},
    ),
    tool(
        reply_to_mail,
        "Reply to the sender of a mail. It cannot be taken back.",
        {"mail_id": _MAIL_ID, "body": text("Text of the reply.")},
    ),
    tool(
        forward_mail,
        "Forward a mail as it is. It cannot be taken back.",
        {"mail_id": _MAIL_ID, "to": texts("Addresses.")},
    ),
    tool(
        move_mail,
        "Move a mail to another folder.",
        {"mail_id": _MAIL_ID, "folder": choice("Where it goes.", [f for f in FOLDERS if f != "sent"])},
    ),
    tool(delete_mail, "Delete a mail for good. It cannot be taken back.", {"mail_id": _MAIL_ID}),
)
