"""Whether what a decision promised came, in a run that tests it."""

from collections.abc import Mapping

from gymflow.contracts.comparison import Difference
from gymflow.contracts.decision import Decision, Prediction
from gymflow.contracts.run import VerdictSet


def prediction(
    decision: Decision,
    base_run_id: str,
    base_agent: str,
    difference: Difference | None,
    judged_otherwise: str | None = None,
) -> Prediction:
    """Hold a decision against the difference of the scores in its environment, candidate - base. `judged_otherwise`: why these scores
    are not of what judged when it was made, see below.

    The predicted gain is an upper bound (every rollout that spoke for the intervention comes to the top reward). So that the
    difference is surely positive is what the decision stands or falls by; that it also may reach the bound is said apart.
    """
    observed = difference.difference if difference else None
    interval = difference.interval if difference else None

    def outcome(name: str, detail: str) -> Prediction:
        return Prediction.model_validate(
            {
                "decision_id": decision.decision_id,
                "intervention": decision.intervention,
                "environment": decision.environment,
                "outcome": name,
                "predicted": decision.gain,
                "observed": observed,
                "interval": interval,
                "tasks": difference.tasks if difference else 0,
                "detail": detail,
            }
        )

    if base_run_id != decision.run_id:
        return outcome("not_comparable", f"it was made on run {decision.run_id}; compare with that run")
    if base_agent != decision.agent:
        return outcome("not_comparable", f"it was made for agent {decision.agent}, and the base is {base_agent}")
    if judged_otherwise:
        return outcome("not_comparable", f"whether the gain came cannot be told: {judged_otherwise}")
    if observed is None or interval is None:
        return outcome("not_comparable", f"the runs share no scored task of {decision.environment}")
    change = f"{observed:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
    if interval.high < 0:
        return outcome("got_worse", f"the score changed by {change}")
    if interval.low <= 0:
        return outcome("not_shown", f"the score changed by {change}, which may be chance")
    if decision.gain is None:
        return outcome("came", f"the score rose by {change}; no gain was predicted in numbers")
    bound = f"{decision.gain:+.3f} was the most that it promised"
    if interval.high < decision.gain:
        return outcome("came_in_part", f"the score rose by {change}; {bound}")
    return outcome("came", f"the score rose by {change}; {bound}")


def judged_otherwise(
    decision: Decision, sets: Mapping[str, VerdictSet], base: VerdictSet | None, candidate: VerdictSet | None
) -> str | None:
    """Why two verdict sets are not judged as the decision's was, in its environment; None where they are. `sets`: those of the run that
    it was made on, by name."""
    if decision.verdict_set is None:
        return None
    made_in = sets.get(decision.verdict_set)
    wanted = made_in.judged.get(decision.environment) if made_in else None
    for side, shown in (("base", base), ("candidate", candidate)):
        if shown is None or wanted is None or shown.judged.get(decision.environment) != wanted:
            return (
                f"it was made in verdict set {decision.verdict_set}, and the {side} is judged otherwise, in "
                f"{shown.name if shown else 'none'}; compare with --verdicts {decision.verdict_set}, where both have it"
            )
    return None
