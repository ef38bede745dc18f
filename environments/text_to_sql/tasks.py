"""The task generator: every question of eight databases in `test`, those about the clinic in `train`."""

from collections.abc import Iterator
from typing import Any

from .database import Domain
from .domains.clinic import CLINIC
from .domains.company import COMPANY
from .domains.flights import FLIGHTS
from .domains.football import FOOTBALL
from .domains.library import LIBRARY
from .domains.music import MUSIC
from .domains.school import SCHOOL
from .domains.shop import SHOP
from .domains.weather import WEATHER

SPLITS: dict[str, tuple[Domain, ...]] = {
    "test": (LIBRARY, SHOP, SCHOOL, FLIGHTS, MUSIC, COMPANY, FOOTBALL, WEATHER),
    "train": (CLINIC,),
}


def generate(split: str) -> Iterator[dict[str, Any]]:
    """Yield the tasks of `test` or `train`."""
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}, expected train or test")
    for domain in SPLITS[split]:
        database = domain.script()
        for question in domain.questions:
            yield {
                "task_id": f"{domain.name}-{question.name}",
                "question": question.text,
                "tables": domain.ddl(),
                "database": database,
                "expected_sql": question.sql,
                "ordered": question.ordered,
                "tags": [domain.name, question.difficulty, f"template-{question.name}"],
            }
