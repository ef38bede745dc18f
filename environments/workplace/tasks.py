"""The requests: 26 templates in three wordings, each about an office of its own.

Rows hold the request and what must be different afterwards; how to get there is known to `solution` only, which no agent sees.
"""

from collections.abc import Iterator
from typing import Any

from gymflow.contracts.task import Task

from .dice import Dice
from .easy import EASY
from .hard import HARD
from .medium import MEDIUM
from .office import Office, spoken
from .template import Call, Draft, Template, Unfit
from .world import office_of

TEMPLATES: tuple[Template, ...] = (*EASY, *MEDIUM, *HARD)
WORDINGS = 3
FIRST_WORLD = {"test": 0, "train": 1_000_000}
"""Where the offices of a split begin; no office serves two splits."""

SYSTEM = (
    "You are the assistant of {name}, {title} at Northfield ({email}), and act for {name} with the tools you have. Today is {today} "
    "{year}. Working days are Monday to Friday, 9:00 to 17:00. Do what you are asked, all of it and nothing else: what is sent, "
    "cancelled or deleted cannot be taken back. Nobody can answer questions. When everything is done, say so in one sentence."
)


def generate(split: str, count: int = len(TEMPLATES) * WORDINGS) -> Iterator[dict[str, Any]]:
    """Yield `count` task rows of a split (`test` or `train`). Each 78 of them hold every template in every wording once.

    Each row is about the next office that has a case for its template.
    """
    if split not in FIRST_WORLD:
        raise ValueError(f"unknown split {split!r}, expected one of {', '.join(FIRST_WORLD)}")
    world = FIRST_WORLD[split]
    for index in range(count):
        template = TEMPLATES[index % len(TEMPLATES)]
        while (draft := _draft(template, world)) is None:
            world += 1
        wording = template.wordings[index // len(TEMPLATES) % WORDINGS]
        yield {
            "task_id": f"{split}-{index:04d}",
            "responses_create_params": {
                "input": [
                    {"role": "system", "content": _system(office_of(world))},
                    {"role": "user", "content": wording.format(**draft.facts)},
                ]
            },
            "state": {"world": world},
            "expected_state": draft.changes,
            "tags": [template.difficulty, f"template-{template.name}"],
        }
        world += 1


def solution(task: Task) -> list[Call]:
    """The tool calls that fulfil a task, look-ups included."""
    [template] = (template for template in TEMPLATES if f"template-{template.name}" in task.tags)
    draft = _draft(template, (task.state or {})["world"])
    if draft is None:
        raise ValueError(f"{task.task_id} is no task of this environment")
    return draft.calls


def _draft(template: Template, world: int) -> Draft | None:
    try:
        return template.draft(office_of(world), Dice(f"{template.name} {world}"))
    except Unfit:
        return None


def _system(office: Office) -> str:
    me = office.me
    return SYSTEM.format(
        name=me.name, title=me.title, email=me.email, today=spoken(office.today), year=office.today[:4]
    )
