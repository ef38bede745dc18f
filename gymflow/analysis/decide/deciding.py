"""Choosing from the ranked list, and keeping what was chosen."""

import secrets
import time

from gymflow.analysis.diagnose import diagnose, last_diagnosis
from gymflow.analysis.facts import current_set
from gymflow.contracts.decision import Decision
from gymflow.contracts.diagnosis import Diagnosis, Proposal
from gymflow.errors import InputError
from gymflow.metrics.scorecard import scorecard
from gymflow.store import RunReader, Store
from gymflow.store.decisions import add_decision
from gymflow.suggest import did_you_mean


async def ranked(store: Store, run_id: str) -> Diagnosis:
    """The diagnosis to choose from: the last one if it is of what the run holds now, else a new one."""
    reader = store.run(run_id)
    last = last_diagnosis(reader)
    return last if last is not None and _holds(last, reader) else await diagnose(store, reader.run_id)


def choices(diagnosis: Diagnosis) -> list[str]:
    """The ranked list in words, such as `1. prompt_change (mcqa, policy): +0.050 at most, 4 rollouts`."""
    return [
        f"{rank}. {one.intervention} ({one.environment}, {one.agent}): "
        + ("gain unknown" if one.gain is None else f"{one.gain:+.3f} at most")
        + f", {one.rollouts} rollout{'' if one.rollouts == 1 else 's'}"
        for rank, one in enumerate(diagnosis.proposals, 1)
    ]


def choice_of(diagnosis: Diagnosis, given: str) -> int:
    """The rank that is meant by a rank, by a line of `choices`, or by an intervention that is proposed once. InputError names what
    there is."""
    proposals = diagnosis.proposals
    if not proposals:
        raise InputError(f"run {diagnosis.run_id}: its diagnosis proposes nothing to choose from")
    if given in (lines := choices(diagnosis)):
        return lines.index(given) + 1
    number = given.strip()
    if number.isdecimal() and 1 <= int(number) <= len(proposals):
        return int(number)
    matching = [rank for rank, one in enumerate(proposals, 1) if given in (one.intervention, _full(one))]
    if len(matching) == 1:
        return matching[0]
    if matching:
        named = ", ".join(_full(proposals[rank - 1]) for rank in matching)
        raise InputError(f"{given!r} is proposed {len(matching)} times; choose by rank, or one of {named}")
    raise InputError(
        f"no intervention {given!r} is proposed for run {diagnosis.run_id}; "
        f"{did_you_mean(given, {one.intervention for one in proposals})} (or a rank, 1 to {len(proposals)})"
    )


def decide(store: Store, diagnosis: Diagnosis, choice: str, *, decided_by: str, reason: str) -> Decision:
    """Record a choice from a diagnosis. InputError where the choice is not in it, or who and why are not said."""
    if not decided_by.strip() or not reason.strip():
        raise InputError("a decision says who decided, and why")
    rank = choice_of(diagnosis, choice)
    chosen = diagnosis.proposals[rank - 1]
    decision = Decision(
        decision_id=f"d-{secrets.token_hex(4)}",
        run_id=diagnosis.run_id,
        verdict_set=diagnosis.verdict_set,
        environment=chosen.environment,
        agent=chosen.agent,
        intervention=chosen.intervention,
        rank=rank,
        choices=len(diagnosis.proposals),
        gain=chosen.gain,
        score=_score(store, diagnosis, chosen),
        rollouts=chosen.rollouts,
        supported_by=chosen.supported_by,
        decided_at=time.time(),
        decided_by=decided_by.strip(),
        reason=reason.strip(),
    )
    add_decision(store, decision)
    return decision


def _holds(diagnosis: Diagnosis, reader: RunReader) -> bool:
    now = (current_set(reader), reader.planned(), reader.next_seq())
    return (diagnosis.verdict_set, diagnosis.rollouts, diagnosis.records) == now


def _full(one: Proposal) -> str:
    return f"{one.intervention}/{one.environment}/{one.agent}"


def _score(store: Store, diagnosis: Diagnosis, chosen: Proposal) -> float | None:
    card = scorecard(store, diagnosis.run_id, diagnosis.verdict_set)
    lines = [one for one in card.lines if (one.environment, one.agent) == (chosen.environment, chosen.agent)]
    return lines[0].score if lines else None
