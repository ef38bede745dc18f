"""The words that offices are made of."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_NAMES = _words(
    """
    Amara Anton Aylin Bea Bruno Carla Dario Elena Emil Farah Felix Greta Hana Hugo Ines Ivan Jana Jonas Kira Lars Leila Luca
    Maren Milo Nadia Noor Olga Oscar Paula Pavel Rania Robin Selma Simon Tara Theo Uma Vera Viktor Yusuf
    """
)
LAST_NAMES = _words(
    """
    Abbott Baumann Berg Castell Dahl Dorn Ekberg Farkas Fiala Gallo Haas Holm Ibsen Jansen Keller Kovac Lang Lindqvist
    Marchetti Moreau Nowak Okafor Olsen Petrov Quist Rossi Sandoval Sato Schuster Silva Tanaka Tamm Ude Varga Vogel Weiss
    Winter Yilmaz Zander Zeman
    """
)
COMPANY_STEMS = _words(
    """
    Alder Brightwater Cobalt Dunmore Eastgate Fairmont Granite Harbour Juniper Kestrel Lakeside Meridian Oakfield Pinecrest
    Redwood Silverline Summit Thornbury Westbrook Willowmere
    """
)
COMPANY_KINDS = _words(
    "Analytics Bakery Clinics Foods Freight Hotels Insurance Legal Logistics Optics Printing Textiles"
)
SUPPLIERS = ("Tonerwerk", "Brewster Coffee", "Papierhof", "Linea Cleaning")
NEWSLETTERS = ("The Sales Compass", "Office Trends Weekly", "Cloud Digest")
TITLES = ("specialist", "manager", "analyst", "coordinator")

RECURRING = ("pipeline review", "budget review", "roadmap review", "support handover", "design review", "hiring panel")
SINGLE = (
    "security briefing",
    "intranet workshop",
    "retrospective",
    "release planning",
    "salary round",
    "first-aid training",
)
SLOTS = tuple(f"{hour:02d}:{minute:02d}" for hour in range(9, 17) for minute in (0, 30))

CARD_TITLES = (
    "update the price list",
    "write the release notes",
    "check the contact forms",
    "translate the help pages",
    "collect three quotes",
    "test the export to CSV",
    "archive the old tickets",
    "measure the meeting rooms",
    "review the access rights",
    "prepare the training slides",
    "clean up duplicate records",
    "plan the move of the servers",
)
STAFF_NOTES = (
    ("lunch on Thursday", "Shall we try the new place at the corner? I can book a table for six."),
    ("slides for the quarterly meeting", "The slides are in the shared folder. Please look at page four."),
    ("parking permits", "The permits for next month are here. Please tell me who still needs one."),
    ("travel expenses", "My receipts from the trade fair are attached. Is anything missing?"),
    ("new coffee machine", "The technician comes on Wednesday morning. Somebody has to let him in."),
    ("broken badge reader", "The reader at the side door refuses my badge. Could somebody have a look?"),
    ("feedback on the draft", "I have read the draft. Two paragraphs are too long, the rest is fine."),
    ("training budget", "Is there anything left of this year's training budget for my team?"),
)
PHONE_SUBJECT = "new phone number"
PLAN_SUBJECT = "change of plan"
COMPLAINTS = (
    ("third outage this month", "The service was down again this morning. We cannot work like this."),
    ("wrong invoice, again", "The last invoice lists users who left us long ago. Please do something about it."),
    ("nobody answers our tickets", "We have been waiting for an answer for nine days now."),
)

REPLIES = (
    "Thank you, that works for me.",
    "I am afraid I cannot make it this time.",
    "Please go ahead without me.",
    "Good point. Let us talk about it tomorrow.",
    "Yes, please do.",
)
MEETINGS = ("kick-off", "lessons learned", "job description", "trade fair stand", "office rules", "demo rehearsal")
NEW_CARDS = (
    "order new desks",
    "draw up the test plan",
    "call the landlord",
    "write the privacy notice",
    "choose a caterer",
)
