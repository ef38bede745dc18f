"""Which of a model's claims the store bears out."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gymflow.analysis.diagnose.citations import check_citations
from gymflow.analysis.diagnose.reading.claims import Cited, Claims, SaidLabel, SaidSentence
from gymflow.contracts.diagnosis import Citation, Label, Sentence
from gymflow.store import RunReader, Store, connect

LEAST = 4
"""Characters that a quotation from a long text has, so that it says something."""
QUOTED = ("output", "arguments", "reason", "text")
"""Fields that are quoted from; the others are cited whole."""

_JUDGED = re.compile(
    r"\b(pass(es|ed|ing)?|fail(s|ed|ing|ures?)?|(in)?correct(ly|ness)?|right(ly)?|wrong(ly)?|succeed(s|ed|ing)?|"
    r"(un)?success(es|ful(ly)?)?|solve[sd]?|unsolved|rewards?|rewarded|gold|scor(e|es|ed|ing)|verdicts?)\b",
    re.IGNORECASE,
)
_CITATION = "insert into facts.citations values (?, ?, 0, ?, ?, ?)"
_TABLES = """
attach ':memory:' as facts;
create table facts.citations (
    rollout_id varchar, cause varchar, rank bigint, cited varchar, locator varchar, shown varchar
);
"""


@dataclass(slots=True)
class Checked:
    """What holds, and why the rest was dropped."""

    labels: list[Label] = field(default_factory=list)
    sentences: list[Sentence] = field(default_factory=list)
    dropped_labels: int = 0
    dropped_sentences: int = 0
    because: Counter[str] = field(default_factory=Counter)


def check(store: Store, reader: RunReader, verdict_set: str | None, said: Mapping[str, Claims]) -> Checked:
    """Hold claims, by rollout id, against the store. A claim is kept if everything that it cites stands in its own rollout."""
    found = Checked()
    with connect(store.root, runs=[reader.run_id]) as connection:
        connection.execute(_TABLES)
        for rollout_id, claims in said.items():
            for number, claim in enumerate(_all(claims)):
                for cited in claim.citations:
                    connection.execute(_CITATION, [rollout_id, str(number), rollout_id, cited.locator, cited.shows])
        check_citations(connection, reader.run_id, verdict_set)
        rows = connection.execute("select rollout_id, cause, locator, shown from facts.checked where holds").fetchall()
    holding = set(rows)
    for rollout_id, claims in said.items():
        found.dropped_labels += claims.malformed_labels
        found.dropped_sentences += claims.malformed_sentences
        found.because["malformed"] += claims.malformed_labels + claims.malformed_sentences
        for number, claim in enumerate(_all(claims)):
            held = [(rollout_id, str(number), cited.locator, cited.shows) in holding for cited in claim.citations]
            reason = _fault(claim.citations, held)
            citations = [
                Citation(rollout_id=rollout_id, locator=one.locator, shows=one.shows) for one in claim.citations
            ]
            if isinstance(claim, SaidLabel):
                reason = reason or _unfounded(claim)
                if reason is None:
                    label = claim.model_dump(exclude={"citations"})
                    found.labels.append(Label(rollout_id=rollout_id, citations=citations, **label))
                found.dropped_labels += reason is not None
            else:
                reason = reason or _beyond(claim, rollout_id, reader.run_id)
                if reason is None:
                    text = " ".join(claim.text.split())
                    found.sentences.append(Sentence(rollout_id=rollout_id, text=text, citations=citations))
                found.dropped_sentences += reason is not None
            if reason is not None:
                found.because[reason] += 1
    found.because = +found.because
    return found


def _all(claims: Claims) -> list[SaidLabel | SaidSentence]:
    return [*claims.labels, *claims.sentences]


def _fault(citations: Sequence[Cited], held: Sequence[bool]) -> str | None:
    if not all(held):
        return "citation does not hold"
    if any(len(one.shows.strip()) < LEAST for one in citations if one.locator.rpartition("/")[2] in QUOTED):
        return "quotation says nothing"
    return None


def _unfounded(label: SaidLabel) -> str | None:
    """That the verdict is wrong, or the task, is not said from what the agent wrote alone."""
    needs_verdict = label.root_cause in ("verifier_issue", "data_artifact")
    if needs_verdict and not any(one.locator.startswith("verdict/") for one in label.citations):
        return "no verdict cited"
    return None


def _beyond(sentence: SaidSentence, rollout_id: str, run_id: str) -> str | None:
    """A sentence speaks of its own rollout, leads nowhere else, and says how it was judged only beside the verdict."""
    named = set(re.findall(re.escape(run_id) + r"-\d+", sentence.text)) - {rollout_id}
    if named or re.search(r"https?://|www\.", sentence.text):
        return "speaks of something else"
    if _JUDGED.search(sentence.text) and not any(one.locator.startswith("verdict/") for one in sentence.citations):
        return "no verdict cited"
    return None
