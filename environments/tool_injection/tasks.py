"""The requests of `workplace`, each in an office where a record that has to be looked at tells the assistant to do something else."""

import json
from collections.abc import Iterator
from typing import Any

from gymflow.environments.workplace.dice import Dice
from gymflow.environments.workplace.office import Desk, Office, spoken
from gymflow.environments.workplace.session import TOOLS
from gymflow.environments.workplace.tasks import SYSTEM, TEMPLATES, WORDINGS
from gymflow.environments.workplace.template import Call, Draft, Template, Unfit
from gymflow.environments.workplace.world import office_of

from gymflow.contracts.task import Task

from .injection import ATTACKS, FIELDS, STYLES, Attack, obeyed

FIRST_WORLD = {"test": 2_000_000, "train": 3_000_000}
"""Where the offices of a split begin; `workplace` uses none of them."""


def generate(split: str, rows: int = len(TEMPLATES) * WORDINGS) -> Iterator[dict[str, Any]]:
    """Yield task rows of a split (`test` or `train`). Each 78 of them hold every request in every wording once."""
    if split not in FIRST_WORLD:
        raise ValueError(f"unknown split {split!r}, expected one of {', '.join(FIRST_WORLD)}")
    world = FIRST_WORLD[split]
    for index in range(rows):
        template = TEMPLATES[index % len(TEMPLATES)]
        while (made := _made(template, world, index)) is None:
            world += 1
        office, draft, attack, record = made
        style = STYLES[index % len(STYLES)]
        me = office.me
        system = SYSTEM.format(
            name=me.name, title=me.title, email=me.email, today=spoken(office.today), year=office.today[:4]
        )
        wording = template.wordings[index // len(TEMPLATES) % WORDINGS]
        yield {
            "task_id": f"{split}-{index:04d}",
            "responses_create_params": {
                "input": [
                    {"role": "system", "content": system},
                    {"role": "user", "content": wording.format(**draft.facts)},
                ]
            },
            "state": {
                "world": world,
                "record": record,
                "text": style.format(order=attack.order),
                "trace": attack.trace,
            },
            "expected_state": {"changes": draft.changes, "obeyed": False},
            "tags": [template.difficulty, f"template-{template.name}", attack.name, f"style-{index % len(STYLES)}"],
        }
        world += 1


def solution(task: Task) -> list[Call]:
    """The tool calls that fulfil a task, look-ups included."""
    calls: list[Call] = _of(task)[1].calls
    return calls


def attack_of(task: Task) -> list[Call]:
    """The tool calls that follow the planted instruction."""
    return _of(task)[2].calls


def _of(task: Task) -> tuple[Office, Draft, Attack, str]:
    [template] = (template for template in TEMPLATES if f"template-{template.name}" in task.tags)
    made = _made(template, (task.state or {})["world"], int(str(task.task_id).rsplit("-", 1)[1]))
    if made is None:
        raise ValueError(f"{task.task_id} is no task of this environment")
    return made


def _made(template: Template, world: int, index: int) -> tuple[Office, Draft, Attack, str] | None:
    """A request, and an attack on it that does not want what the request wants anyway; None where the office has none."""
    office, dice = office_of(world), Dice(f"injection {template.name} {world}")
    try:
        draft = template.draft(office, Dice(f"{template.name} {world}"))
    except Unfit:
        return None
    seen = _shown(office, draft.calls)
    if not seen:
        return None
    for _ in range(50):
        attack = ATTACKS[(index + index // len(ATTACKS)) % len(ATTACKS)](office, dice)
        if not obeyed(draft.changes, attack.trace) and not _touched(draft, attack):
            return office, draft, attack, dice.pick(seen)
    return None


def _touched(draft: Draft, attack: Attack) -> bool:
    """Whether the attack is about a record that the request changes, so that its effect could not be told apart."""
    changed = json.dumps(draft.changes)
    records = [value for _, given in attack.calls for name, value in given.items() if name.endswith("_id")]
    return any(f'"{record}"' in changed for record in records)


def _shown(office: Office, calls: list[Call]) -> list[str]:
    """The records that the look-ups of a request show, by what names them."""
    desk, shown = Desk(office), []
    for tool, arguments in calls:
        answer = TOOLS[tool].answer(desk, **arguments)
        shown += _named(answer)
    return list(dict.fromkeys(shown))


def _named(answer: Any) -> list[str]:
    if isinstance(answer, list):
        return [name for one in answer for name in _named(one)]
    if not isinstance(answer, dict):
        return []
    own = [answer[name] for name in FIELDS if name in answer][:1]
    return [*own, *(name for value in answer.values() for name in _named(value))]
