"""Decide: choose an intervention from the ranked list of a diagnosis, and see later whether what it promised came.

    diagnosis = await ranked(store, run_id)
    decision = decide(store, diagnosis, "1", decided_by="Ada", reason="twelve golds look wrong")

After `gym eval run … --decision <decision.decision_id>` the comparison of the two runs has its `prediction`.
"""

from gymflow.analysis.decide.deciding import choice_of, choices, decide, ranked
from gymflow.analysis.decide.predicting import prediction

__all__ = ["choice_of", "choices", "decide", "prediction", "ranked"]
