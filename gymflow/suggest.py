"""Did-you-mean for every name that a person types, and the search behind `gym search`."""

from collections.abc import Iterable

from rapidfuzz import fuzz, process
from rapidfuzz.distance import DamerauLevenshtein

CLOSE = 0.6
"""Least normalised similarity (1 - edits / length) of a name worth proposing."""

RELATED = 75.0
"""Least partial ratio (0-100) of a text that a search still shows."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was most likely meant: the only one that begins so, else the most similar; None where nothing is near."""
    known = list(known)
    begun = [one for one in known if one.lower().startswith(name.lower())]
    if len(begun) == 1 and len(name) > 2:
        return begun[0]
    found = process.extractOne(
        name.lower(),
        known,
        scorer=DamerauLevenshtein.normalized_similarity,
        processor=str.lower,
        score_cutoff=CLOSE,
    )
    return str(found[0]) if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown name: the closest one, else what there is."""
    known = sorted(known)
    if meant := closest(name, known):
        return f"did you mean {meant}?"
    if not known:
        return "there are none."
    shown = ", ".join(known[:12])
    return f"known: {shown}, … ({len(known)} in all)" if len(known) > 12 else f"known: {shown}"


def relevance(query: str, texts: Iterable[str]) -> float:
    """How well a query fits the texts that describe one thing: 100 for a substring, less when only similar, 0 for no fit."""
    query = query.lower()
    texts = [text.lower() for text in texts if text]
    if any(query in text for text in texts):
        return 100.0
    best = max((fuzz.partial_ratio(query, text) for text in texts), default=0.0) if len(query) > 2 else 0.0
    return best if best >= RELATED else 0.0
