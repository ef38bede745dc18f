"""The office: what can be done in it, what a request asks for, and that nothing but the right changes score."""

import random
from dataclasses import astuple
from itertools import islice

import pytest
from gymflow.environments.workplace.office import Desk
from gymflow.environments.workplace.session import TOOLS
from gymflow.environments.workplace.tasks import TEMPLATES, generate, solution
from gymflow.environments.workplace.template import first_free_hour
from gymflow.environments.workplace.toolkit import ToolError
from gymflow.environments.workplace.world import office_of

WRITES = {
    *("send_mail", "reply_to_mail", "forward_mail", "move_mail", "delete_mail"),
    *("create_event", "move_event", "add_attendee", "remove_attendee", "cancel_event"),
    *("update_customer", "create_card", "update_card", "delete_card"),
}
PINNED_ME = ("Pavel Rossi", "pavel.rossi@northfield.example", "operations", "head of operations", None)
PINNED_MAIL = (
    *("mail-007", "inbox", "oscar.tamm@northfield.example", ("pavel.rossi@northfield.example",), "broken badge reader"),
    *("The reader at the side door refuses my badge. Could somebody have a look?", "2027-01-24 17:01"),
)
STRAY_MAIL = ("send_mail", {"to": ["someone@elsewhere.example"], "subject": "hello", "body": "Just so."})


@pytest.fixture
def desk() -> Desk:
    return Desk(office_of(7))


def do(desk: Desk, tool: str, **arguments):
    return TOOLS[tool].answer(desk, **arguments)


def first(records, **wanted):
    return next(r for r in records.values() if all(getattr(r, name) == value for name, value in wanted.items()))


# Agents


@pytest.mark.parametrize(("split", "step"), [("test", 1), ("train", 5)])
async def test_reference_agent_scores_one(stage, split, step):
    office = stage("workplace")
    for task in office.tasks(split)[::step]:
        assert (await office.verdict(task, office.called(*solution(task)))).reward == 1.0, task.task_id


async def test_reference_agent_scores_one_in_the_default_harness(stage):
    office = stage("workplace")
    for task in office.tasks()[::3]:
        outputs = iter(office.called(*solution(task)))
        verdict, trajectory = await office.run(task, lambda history, outputs=outputs: next(outputs))
        assert verdict.reward == 1.0, task.task_id
        assert {call.status for turn in trajectory.turns for call in turn.tool_calls} == {"ok"}


async def test_agent_that_does_nothing_scores_zero(stage):
    office = stage("workplace")

    assert await office.mean_reward(lambda task: office.said("Everything is done.")) == 0.0


async def test_random_agent_scores_nearly_zero(stage):
    office, rng = stage("workplace"), random.Random(0)

    def agent(task):
        world = office_of(task.state["world"])
        words = [*world.people, *world.mails, *world.events, *world.customers, *world.cards, "2027-03-01 09:00", "yes"]
        tools = [tool.schema for tool in TOOLS.values()]
        return office.called(*(office.drawn(rng, rng.choice(tools), words) for _ in range(8)))

    assert await office.mean_reward(agent) < 0.1


async def test_an_unasked_side_effect_fails_every_request(stage):
    office = stage("workplace")

    assert await office.mean_reward(lambda task: office.called(*solution(task), STRAY_MAIL)) == 0.0


async def test_every_single_action_of_the_reference_is_needed(stage):
    office = stage("workplace")
    for task in office.tasks():
        calls = solution(task)
        for position, (name, _) in enumerate(calls):
            if name in WRITES:
                rest = calls[:position] + calls[position + 1 :]
                verdict = await office.verdict(task, office.called(*rest))
                assert verdict.reward == 0.0, (task.task_id, name)


async def test_actions_in_reverse_order_lead_to_the_same_state(stage):
    office = stage("workplace")

    assert await office.mean_reward(lambda task: office.called(*reversed(solution(task)))) == 1.0


async def test_equal_actions_leave_equal_snapshots(stage):
    office = stage("workplace")
    for task in office.tasks()[::9]:
        outputs = office.called(*solution(task), STRAY_MAIL)
        assert await office.snapshot(task, outputs) == await office.snapshot(task, outputs)


# Requests


def test_rows_hold_no_office_and_no_solution(stage):
    for row in generate("test"):
        assert set(row["state"]) == {"world"}
        text = row["responses_create_params"]["input"][1]["content"]
        assert not any(kind in text for kind in ("mail-", "event-", "customer-0", "card-0", "@"))
        assert row["expected_state"]


def test_every_template_and_wording_occurs_once():
    asked = [(row["tags"][1], row["responses_create_params"]["input"][1]["content"][:25]) for row in generate("test")]

    assert len(TEMPLATES) == 26
    assert len(set(asked)) == len(asked) == 26 * 3


def test_splits_are_about_different_offices():
    worlds = [{row["state"]["world"] for row in generate(split)} for split in ("test", "train")]

    assert not worlds[0] & worlds[1]


def test_rows_do_not_depend_on_how_many_there_are():
    assert list(generate("test", count=10)) == list(islice(generate("test"), 10))


def test_unknown_split_is_refused():
    with pytest.raises(ValueError, match="unknown split 'dev', expected one of test, train"):
        next(generate("dev"))


def test_first_free_hour_is_the_first_that_suits_everybody():
    for world in range(40):
        office = office_of(world)
        everybody = [office.me.email, *list(office.people)[1:3]]
        for day in {event.day for event in office.events.values()}:
            free = []
            for hour in range(9, 17):
                slot = (f"{day} {hour:02d}:00", f"{day} {hour + 1:02d}:00")
                busy = any(
                    e.start < slot[1] and slot[0] < e.end and set(everybody) & set(e.attendees)
                    for e in office.events.values()
                )
                free += [] if busy else [slot[0]]
            assert first_free_hour(office, day, everybody, 60) == free[0]


# The office


def test_every_office_has_look_alikes():
    for world in range(60):
        office = office_of(world)
        first_names = [p.name.split()[0] for p in office.people.values()]
        surnames = [p.name.split()[1] for p in office.people.values()]
        stems = [c.name.split()[0] for c in office.customers.values()]
        titles = [e.title for e in office.events.values()]
        assert len(office.people) == len({p.name for p in office.people.values()}) == 15
        assert (len(set(first_names)), len(set(surnames))) == (13, 14)
        assert len(stems) - len(set(stems)) >= 4
        assert sum(titles.count(title) == 2 for title in set(titles)) >= 6
        assert len({c.email for c in office.customers.values()}) == 15


def test_every_record_refers_to_people_who_work_here():
    for world in range(20):
        office = office_of(world)
        people = set(office.people)
        assert {card.assignee for card in office.cards.values()} <= people
        assert {customer.owner for customer in office.customers.values()} <= people
        assert all(
            set(event.attendees) <= people and event.organiser in event.attendees for event in office.events.values()
        )
        assert all(p.manager is None or office.people[p.manager].team == p.team for p in office.people.values())


def test_an_office_is_the_same_on_every_python():
    office = office_of(7)

    assert astuple(office.me) == PINNED_ME
    assert astuple(office.mails["mail-007"]) == PINNED_MAIL


def test_what_was_put_right_leaves_no_trace(desk):
    event = first(desk.events)
    mail = first(desk.mails)
    customer = first(desk.customers)
    do(desk, "move_event", event_id=event.id, start="2027-12-24 18:00")
    do(desk, "move_mail", mail_id=mail.id, folder="archive")
    do(desk, "update_customer", customer_id=customer.id, field="plan", value="basic")
    assert set(desk.changes()) >= {"events", "mails"}

    do(desk, "move_event", event_id=event.id, start=event.start)
    do(desk, "move_mail", mail_id=mail.id, folder="inbox")
    do(desk, "update_customer", customer_id=customer.id, field="plan", value=customer.plan)
    assert desk.changes() == {}


def test_what_cannot_be_undone_stays(desk):
    me, colleague = list(desk.office.people)[:2]
    do(desk, "send_mail", to=[colleague], subject="hello", body="Just so.")
    copy = first(desk.mails, folder="sent")
    do(desk, "delete_mail", mail_id=copy.id)
    do(desk, "create_event", title="kick-off", start="2027-03-01 10:00", minutes=30, attendees=[colleague])
    do(desk, "cancel_event", event_id=first(desk.events, title="kick-off").id)

    assert desk.changes() == {
        "mails": {"sent": [{"to": [colleague], "subject": "hello", "body": "Just so."}]},
        "events": {
            "created": [
                {
                    "title": "kick-off",
                    "start": "2027-03-01 10:00",
                    "minutes": 30,
                    "organiser": me,
                    "attendees": sorted([me, colleague]),
                    "cancelled": True,
                }
            ]
        },
    }


def test_a_new_card_can_be_taken_back(desk):
    do(desk, "create_card", title="call", project="renewals", assignee=desk.office.me.email, due="2027-03-01")
    do(desk, "delete_card", card_id=first(desk.cards, title="call").id)

    assert desk.changes() == {}


def test_spelling_of_addresses_times_and_numbers_does_not_matter(desk):
    colleague = list(desk.office.people)[1]
    customer = first(desk.customers)
    do(
        desk,
        "create_event",
        title="  kick-off ",
        start="2027-03-01T10:00:00",
        minutes=30.0,
        attendees=[colleague.upper(), colleague],
    )
    do(desk, "update_customer", customer_id=customer.id, field="phone", value="+49 (89) 123-45 67")
    changes = desk.changes()

    assert changes["events"]["created"][0]["title"] == "kick-off"
    assert changes["events"]["created"][0]["start"] == "2027-03-01 10:00"
    assert len(changes["events"]["created"][0]["attendees"]) == 2
    assert changes["customers"]["changed"] == {customer.id: {"phone": "+49891234567"}}


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("read_mail", {"mail_id": "mail-999"}, "there is no mail 'mail-999'"),
        ("cancel_event", {"event_id": "budget review"}, "there is no event"),
        (
            "update_customer",
            {"customer_id": "customer-01", "field": "plan", "value": "gold"},
            "basic, team, enterprise",
        ),
        ("update_customer", {"customer_id": "customer-01", "field": "phone", "value": "089 1234"}, "begins with"),
        ("update_customer", {"customer_id": "customer-01", "field": "renewal", "value": "soon"}, "YYYY-MM-DD"),
        ("update_customer", {"customer_id": "customer-01", "field": "owner", "value": "a@b.example"}, "nobody here"),
        ("update_card", {"card_id": "card-01", "field": "status", "value": "finished"}, "backlog, doing, review, done"),
        ("move_event", {"event_id": "event-01", "start": "2027-03-01"}, "YYYY-MM-DD HH:MM"),
        ("move_event", {"event_id": "event-01", "start": "2027-03-01T10:00+02:00"}, "YYYY-MM-DD HH:MM"),
        ("list_events", {"from_day": "2027-02-30", "to_day": "2027-03-01"}, "from_day must be a day"),
        ("create_event", {"title": "x", "start": "2027-03-01 10:00", "minutes": 5, "attendees": ["x"]}, "nobody here"),
        ("create_card", {"title": " ", "project": "renewals", "assignee": "ME", "due": "2027-03-01"}, "title is empty"),
        ("send_mail", {"to": ["Bea"], "subject": "x", "body": "y"}, "not an e-mail address"),
        ("send_mail", {"to": ["a@b.example"], "subject": "x", "body": " "}, "body is empty"),
        ("search_mail", {"page": 9}, "there are only 5 pages"),
        ("search_cards", {"assignee": "Bea"}, "nobody here"),
    ],
)
def test_mistakes_are_told_and_change_nothing(desk, tool, arguments, message):
    me = desk.office.me.email
    with pytest.raises(ToolError, match=message):
        do(desk, tool, **{name: me if value == "ME" else value for name, value in arguments.items()})
    assert desk.changes() == {}


def test_attendees_are_added_and_removed_once(desk):
    event = first(desk.events)
    outsider = next(email for email in desk.office.people if email not in event.attendees)
    with pytest.raises(ToolError, match="is not invited"):
        do(desk, "remove_attendee", event_id=event.id, email=outsider)
    with pytest.raises(ToolError, match="is invited to event-01 already"):
        do(desk, "add_attendee", event_id=event.id, email=event.attendees[0])


def test_sent_mail_has_nobody_to_reply_to_and_stays_in_its_folder(desk):
    do(desk, "send_mail", to=["a@b.example"], subject="x", body="y")
    copy = first(desk.mails, folder="sent")
    with pytest.raises(ToolError, match="nobody to reply to"):
        do(desk, "reply_to_mail", mail_id=copy.id, body="z")
    with pytest.raises(ToolError, match="sent mails stay"):
        do(desk, "move_mail", mail_id=copy.id, folder="archive")


def test_search_shows_everything_page_by_page(desk):
    pages = [do(desk, "search_mail", page=page) for page in range(1, 6)]
    ids = [line["mail_id"] for page in pages for line in page["results"]]

    assert {page["total"] for page in pages} == {len(desk.mails)}
    assert sorted(ids) == sorted(desk.mails)
    dates = [line["sent_at"] for page in pages for line in page["results"]]
    assert dates == sorted(dates, reverse=True)


def test_search_filters_combine(desk):
    card = first(desk.cards, status="doing")
    found = do(desk, "search_cards", project=card.project, assignee=card.assignee, status="doing")["results"]

    assert card.id in [line["card_id"] for line in found]
    assert {(line["project"], line["assignee"], line["status"]) for line in found} == {
        (card.project, card.assignee, "doing")
    }


async def test_session_answers_errors_as_text(stage):
    office = stage("workplace")
    session = office.session(office.tasks()[0])
    await session.start()
    result = await session.call("read_mail", {"mail_id": "mail-999"})

    assert result.error
    assert result.output == "Error: there is no mail 'mail-999'; search for its id."
