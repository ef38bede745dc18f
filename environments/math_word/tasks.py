"""The task generator: every schema once in `test`, and with other numbers in `train`."""

from collections.abc import Iterator
from typing import Any

from .problem import Draw, Schema, written
from .schemas.ages import ages
from .schemas.chance import chance
from .schemas.counting import counting
from .schemas.equations import equations
from .schemas.geometry import geometry
from .schemas.mixtures import mixtures
from .schemas.money import money
from .schemas.motion import motion
from .schemas.numbers import numbers
from .schemas.sequences import sequences
from .schemas.work import work

TOPICS = (motion, work, mixtures, money, ages, geometry, counting, chance, numbers, sequences, equations)
SCHEMAS: tuple[Schema, ...] = tuple(schema for topic in TOPICS for schema in topic.schemas)


def generate(split: str, per_schema: int = 1, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield `per_schema` rows of each schema, one after the other, never the same question twice.

    A question of `test` (one a schema, seed 0) is asked in no other split. Schemas with few possible numbers yield fewer
    rows once they are used up.
    """
    if split not in ("train", "test"):
        raise ValueError(f"unknown split {split!r}, expected train or test")
    for schema in SCHEMAS:
        asked = set() if split == "test" else {_row(schema, "test", 0, 0)["question"]}
        number = 0
        for draw in range(20 * per_schema):
            row = _row(schema, split, seed, draw)
            if row["question"] not in asked:
                asked.add(row["question"])
                yield row | {"task_id": f"{schema.name}-{split}-{seed}-{number:03d}"}
                number += 1
            if number == per_schema:
                break


def _row(schema: Schema, split: str, seed: int, index: int) -> dict[str, Any]:
    given, answer = schema.fill(Draw(f"math_word {schema.name} {split} {seed} {index}"))
    return {
        "question": schema.text.format(**given),
        "expected_answer": written(answer),
        "tags": [schema.topic, schema.difficulty, f"template-{schema.name}"],
    }
