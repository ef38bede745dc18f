"""What an export keeps of ours beside a format's own fields: everything, so that importing it gives back the same run."""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.run import RunDocument, VerdictSet
from gymflow.contracts.verdict import VerdictRecord
from gymflow.errors import InputError
from gymflow.interop.rollouts import OwnRollout
from gymflow.store import RunReader

VERSION = 2
BATCH = 256


def own_rollouts(reader: RunReader) -> Iterator[OwnRollout]:
    """Every stored rollout of a run, in the order of the plan; what is the run's own comes with the first."""
    tasks = {task.task_index: task for task in reader.tasks()}
    plan = sorted(reader.plan(), key=lambda row: row.plan_index)
    first = True
    for start in range(0, len(plan), BATCH):
        planned = {row.plan_index: row for row in plan[start : start + BATCH]}
        verdicts = reader.verdicts_of(planned)
        records = {record.rollout.plan_index: record for record in reader.records(planned)}
        for index in sorted(records):
            own = OwnRollout(
                record=records[index],
                planned=planned[index],
                task=tasks[planned[index].task_index],
                verdicts=verdicts.get(index, []),
                artifacts={
                    digest: reader.read_artifact(digest) for digest in records[index].evidence.artifacts.values()
                },
            )
            if first:
                own.run, own.verdict_sets, first = reader.document, reader.verdict_sets, False
                own.plan, own.tasks = plan, [tasks[index] for index in sorted(tasks)]
            yield own


def encode(own: OwnRollout) -> dict[str, Any]:
    """As JSON."""
    value: dict[str, Any] = {
        "version": VERSION,
        "record": own.record.model_dump(mode="json"),
        "planned": own.planned.model_dump(mode="json"),
        "task": own.task.model_dump(mode="json"),
        "verdicts": [verdict.model_dump(mode="json") for verdict in own.verdicts],
        "artifacts": {digest: b64encode(data).decode() for digest, data in own.artifacts.items()},
    }
    if own.run is not None:
        value["run"] = own.run.model_dump(mode="json")
        value["verdict_sets"] = [one.model_dump(mode="json") for one in own.verdict_sets or ()]
        value["plan"] = [row.model_dump(mode="json") for row in own.plan]
        value["tasks"] = [task.model_dump(mode="json") for task in own.tasks]
        value["format"] = own.format
    return value


def decode(value: Any, where: str) -> OwnRollout:
    """The rollout. InputError names where it stands and what is wrong with it."""
    if not isinstance(value, dict) or value.get("version") != VERSION:
        raise InputError(f"{where}: what gymflow kept there is not of version {VERSION}; export the run again")
    try:
        return OwnRollout(
            record=RolloutRecord.model_validate(value["record"]),
            planned=PlannedRollout.model_validate(value["planned"]),
            task=PlannedTask.model_validate(value["task"]),
            verdicts=[VerdictRecord.model_validate(one) for one in value["verdicts"]],
            artifacts={digest: b64decode(data, validate=True) for digest, data in value["artifacts"].items()},
            run=RunDocument.model_validate(value["run"]) if "run" in value else None,
            verdict_sets=[VerdictSet.model_validate(one) for one in value["verdict_sets"]] if "run" in value else None,
            plan=[PlannedRollout.model_validate(one) for one in value["plan"]] if "run" in value else [],
            tasks=[PlannedTask.model_validate(one) for one in value["tasks"]] if "run" in value else [],
            format=value["format"] if "run" in value else None,
            where=where,
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{where}: gymflow.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (KeyError, ValueError, AttributeError) as error:
        raise InputError(f"{where}: what gymflow kept there is damaged ({error})") from None
