"""Verdict sets: how they are named, and what is kept of the verifiers that a set is judged by."""

import time
from collections.abc import Mapping

from gymflow import keys
from gymflow.contracts.run import VerdictSet
from gymflow.runtime.components import RunEnvironment
from gymflow.store import RunWriter


def verdict_set_of(
    environments: Mapping[str, RunEnvironment], *, keeping: VerdictSet | None = None, part_of: VerdictSet | None = None
) -> VerdictSet:
    """The set that these verifiers score into. Its name is eight hex digits over what judges, so that the same verifiers find
    their own set again.

    `keeping`: a set whose verdicts on the other environments are taken over. `part_of`: a set of which only a part is judged
    again, all else is taken over; each such rescoring is a set of its own.
    """
    judged = {label: environment.judged for label, environment in environments.items()}
    before = part_of or keeping
    if before is not None:
        judged = {label: one for label, one in before.judged.items() if label not in judged} | judged
    identity = {label: judged[label].model_dump(mode="json") for label in sorted(judged)}
    taken_over = before is not None and (part_of is not None or set(judged) > set(environments))
    return VerdictSet(
        name=keys.digest([identity, part_of.name] if part_of else identity)[:8],
        created_at=time.time(),
        judged=judged,
        refers_to=before.name if before is not None and taken_over else None,
        parameters={label: one.verifier.parameters.model_dump(mode="json") for label, one in environments.items()},
    )


async def announce(writer: RunWriter, chosen: VerdictSet, environments: Mapping[str, RunEnvironment]) -> VerdictSet:
    """Add the set to the run, or make it current where it exists, with the code of its verifiers as artifacts."""
    code = {label: await writer.put_artifact(one.code) for label, one in environments.items()}
    announced = chosen.model_copy(update={"code": code})
    await writer.add_verdict_set(announced)
    return announced
