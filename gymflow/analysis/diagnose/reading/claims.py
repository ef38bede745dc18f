"""What a model may say of a rollout: the schema that it is asked for, and the reading of what came."""

import json
import re
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gymflow.verifiers.judging import JudgeUnparseable

ReadCause = Literal["behaviour", "knowledge_gap", "format", "verifier_issue", "data_artifact"]
"""Root causes that reading can find. The others are facts of the record, and the rules' to state."""
ReadIntervention = Literal[
    "model_training", "harness_work", "verifier_repair", "prompt_change", "skill_improvement", "data_repair"
]
MOST_LABELS, MOST_SENTENCES, MOST_CITATIONS = 2, 3, 4


class _Said(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Cited(_Said):
    """A place and what is said to stand there."""

    locator: str = Field(max_length=200)
    shows: str = Field(max_length=2000)


class SaidLabel(_Said):
    """A label as the model gave it."""

    root_cause: ReadCause
    cause: str = Field(pattern=r"^[a-z][a-z0-9_]{2,39}$")
    intervention: ReadIntervention
    citations: list[Cited] = Field(min_length=1, max_length=MOST_CITATIONS)


class SaidSentence(_Said):
    """A sentence as the model gave it."""

    text: str = Field(min_length=3, max_length=400)
    citations: list[Cited] = Field(min_length=1, max_length=MOST_CITATIONS)


class Claims(BaseModel):
    """What one answer holds; `malformed` counts what was no label and no sentence."""

    labels: list[SaidLabel] = Field(default_factory=list)
    sentences: list[SaidSentence] = Field(default_factory=list)
    malformed_labels: int = 0
    malformed_sentences: int = 0


_CITATIONS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"locator": {"type": "string"}, "shows": {"type": "string"}},
        "required": ["locator", "shows"],
        "additionalProperties": False,
    },
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "labels": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "root_cause": {"type": "string", "enum": list(get_args(ReadCause))},
                    "cause": {"type": "string"},
                    "intervention": {"type": "string", "enum": list(get_args(ReadIntervention))},
                    "citations": _CITATIONS,
                },
                "required": ["root_cause", "cause", "intervention", "citations"],
                "additionalProperties": False,
            },
        },
        "sentences": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "citations": _CITATIONS},
                "required": ["text", "citations"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["labels", "sentences"],
    "additionalProperties": False,
}


def read_claims(text: str) -> Claims:
    """The claims in an answer, which may stand in prose or in a fence. Raises JudgeUnparseable where there is no object of them."""
    for match in re.finditer(r"\{", text):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and ("labels" in value or "sentences" in value):
            labels, sentences = (_listed(value.get(name)) for name in ("labels", "sentences"))
            good_labels, good_sentences = _valid(SaidLabel, labels), _valid(SaidSentence, sentences)
            return Claims(
                labels=good_labels[:MOST_LABELS],
                sentences=good_sentences[:MOST_SENTENCES],
                malformed_labels=len(labels) - len(good_labels[:MOST_LABELS]),
                malformed_sentences=len(sentences) - len(good_sentences[:MOST_SENTENCES]),
            )
    raise JudgeUnparseable("the answer holds no object with labels and sentences")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _valid(kind: type[Any], values: list[Any]) -> list[Any]:
    found = []
    for value in values:
        try:
            found.append(kind.model_validate(value))
        except ValidationError:
            continue
    return found
