"""Rewards that another tool gave: kept as they came, and never computed here.

An imported run whose environment is none of ours has this verifier. `gym eval reverify RUN --verifier NAME` scores it with one
that computes.
"""

from pydantic import BaseModel, ConfigDict

from gymflow.verifiers import Evidence, Verdict, Verifier, VerifierError


class RecordedTask(BaseModel):
    """Any row."""

    model_config = ConfigDict(extra="allow")


class Recorded(Verifier[RecordedTask]):
    """Gives no verdict of its own."""

    rerun = "recorded"

    async def verify(self, task: RecordedTask, evidence: Evidence) -> Verdict:
        """Raises VerifierError."""
        raise VerifierError("its reward was recorded elsewhere; nothing here can compute it")
