"""Asking a model about rollouts, one by one, and keeping what holds."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from gymflow.analysis.diagnose.reading.checking import check
from gymflow.analysis.diagnose.reading.claims import SCHEMA, Claims, read_claims
from gymflow.analysis.diagnose.reading.telling import told
from gymflow.analysis.facts import current_set
from gymflow.analysis.listing import read_head, write_listing
from gymflow.contracts.diagnosis import Readings
from gymflow.contracts.model import ModelSpec
from gymflow.contracts.rollout import RolloutRecord
from gymflow.metrics.summaries import model_name
from gymflow.models.base import Provider
from gymflow.models.gateway import Gateway
from gymflow.runtime.judging import ROLE, JudgeModel, judge_identity
from gymflow.store import RunReader, Store
from gymflow.verifiers import VerifierError
from gymflow.verifiers.judging import Question

READINGS, LIST = "readings.json", "labels"
AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Reader:
    """The model that reads. `provider`: a ready-made one instead of the specification's."""

    spec: ModelSpec
    provider: Provider | None = None

    def gateway(self) -> Gateway:
        """The way to the model."""
        return Gateway({ROLE: self.spec}, providers={ROLE: self.provider} if self.provider else None)


async def read_rollouts(
    store: Store, reader: RunReader, verdict_set: str | None, plan_indices: Sequence[int], by: Reader
) -> Readings:
    """Let a model read these rollouts, check what it says, and write `reports/readings.json`. The same question is never asked twice:
    answers are kept in the store. Raises InputError where the model cannot be called at all."""
    said: dict[str, Claims] = {}
    unread: Counter[str] = Counter()
    async with by.gateway() as gateway:
        if plan_indices:
            await gateway.probe()
        [identity] = gateway.identities().values()
        model = JudgeModel(gateway, judge_identity({ROLE: by.spec}, {ROLE: identity}) or {}, store.judgements)
        tasks = {(task.environment, task.task_id): task.task for task in reader.tasks()} if plan_indices else {}
        verdicts = reader.verdicts_of(plan_indices) if plan_indices else {}
        instructions = files(__package__).joinpath("instructions.md").read_text()
        slots = asyncio.Semaphore(AT_ONCE)
        tokens = [0, 0]

        async def read(record: RolloutRecord) -> None:
            rollout = record.rollout
            given = [one for one in verdicts.get(rollout.plan_index, []) if one.verdict_set == verdict_set]
            text = told(record, given[0] if given else None, tasks.get((rollout.environment, rollout.task_id), {}))
            hearing = model.hearing()
            async with slots:
                try:
                    question = Question(instructions=instructions, text=text, schema=SCHEMA)
                    said[rollout.rollout_id] = await hearing.ask(question, read_claims)
                except VerifierError as error:
                    unread[error.failure.value] += 1
            for one in hearing.calls:
                if not one.reused:
                    tokens[0] += one.call.usage.prompt_tokens or 0
                    tokens[1] += one.call.usage.completion_tokens or 0

        await asyncio.gather(*(read(record) for record in reader.records(plan_indices)))
    found = check(store, reader, verdict_set, dict(sorted(said.items())))
    readings = Readings(
        run_id=reader.run_id,
        verdict_set=verdict_set,
        stored=len(reader.completed()),
        model=model_name(identity),
        rollouts=len(plan_indices),
        unread=dict(unread),
        labelled=len({label.rollout_id for label in found.labels}),
        label_count=len(found.labels),
        sentences=found.sentences,
        dropped_labels=found.dropped_labels,
        dropped_sentences=found.dropped_sentences,
        dropped_because=dict(found.because),
        prompt_tokens=tokens[0],
        completion_tokens=tokens[1],
    )
    write_listing(reader, READINGS, readings, LIST, (label.model_dump() for label in found.labels))
    return readings


def last_readings(reader: RunReader) -> Readings | None:
    """What a model said last, if the run still holds what it read."""
    readings = read_head(reader, READINGS, Readings, LIST)
    if readings is None or (readings.verdict_set, readings.stored) != (current_set(reader), len(reader.completed())):
        return None
    return readings
