"""Whether what a decision promised came, in a run that tests it."""

from gymflow.contracts.comparison import Difference
from gymflow.contracts.decision import Decision, Prediction


def prediction(decision: Decision, base_run_id: str, base_agent: str, difference: Difference | None) -> Prediction:
    """Hold a decision against the difference of the scores in its environment, candidate - base.

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
