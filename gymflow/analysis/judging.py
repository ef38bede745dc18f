"""What judged a verdict set, as an object again."""

from gymflow.contracts.agent import ComponentRef
from gymflow.contracts.environment import Manifest
from gymflow.store import RunReader


def manifest_as_judged(reader: RunReader, environment: str, verdict_set: str | None) -> Manifest:
    """An environment's manifest with the verifier and parameters that a verdict set was judged by; where it took verdicts over from
    another set, by that one's; where no set says, the run's own."""
    own = reader.document.environments[environment].manifest
    sets = {one.name: one for one in reader.verdict_sets}
    chosen = sets.get(verdict_set or "")
    while chosen is not None and environment not in chosen.parameters:
        chosen = sets.get(chosen.refers_to or "")
    if chosen is None or environment not in chosen.judged:
        return own
    ref = ComponentRef(name=chosen.judged[environment].verifier, parameters=chosen.parameters[environment])
    return own.model_copy(update={"verifier": ref})
