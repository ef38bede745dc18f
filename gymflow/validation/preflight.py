"""The preflight of a verifier: answers with known rewards are scored before a run, and a wrong gold answer must not pass.

A verifier that misses one of them would mis-score the run, so the run does not start.
"""

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from gymflow.contracts.environment import Fixture, Manifest
from gymflow.contracts.sandbox import sandbox_of
from gymflow.contracts.task import Task
from gymflow.datasets import load_rows, rendered
from gymflow.datasets.jsonl import read_jsonl
from gymflow.documents import fault_message
from gymflow.environments import Session
from gymflow.errors import InputError, RolloutFailure
from gymflow.models.base import Item
from gymflow.registry import EnvironmentEntry
from gymflow.runtime.judging import JudgeModel
from gymflow.runtime.replay import action_items, message_item, play
from gymflow.runtime.scoring import reward_fault
from gymflow.sandboxes import archive
from gymflow.suggest import did_you_mean
from gymflow.validation.report import Fault, FixtureReport
from gymflow.verifiers import Evidence, Verdict, Verifier

KINDS: tuple[str, ...] = get_args(Fixture.model_fields["kind"].annotation)
TOLERANCE = 1e-9
TIMEOUT_S = 120.0
SEED = 0
"""Seed of every fixture's session: a fixture for a session with randomness is written for this one."""


@dataclass(slots=True)
class Preflight:
    """The fixtures of one environment against its verifier."""

    entry: EnvironmentEntry
    manifest: Manifest
    session: type[Session]
    verifier: Verifier[Any]
    judge: JudgeModel | None = None

    async def run(self) -> tuple[list[FixtureReport], list[Fault]]:
        """What each fixture got, and what is wrong with the fixtures or the verifier."""
        faults: list[Fault] = []
        fixtures = list(self._read(faults))
        tasks = self._tasks(fixtures, faults)
        reports: list[FixtureReport] = []
        try:
            await self.verifier.open()
        except Exception as error:
            what = f"verifier {self.manifest.verifier.name} cannot start: {type(error).__name__}: {error}"
            return [], [*faults, Fault(what)]
        try:
            for line, fixture in fixtures:
                task = tasks.get((fixture.split, fixture.task_id))
                if task is not None:
                    reports += await self._score(line, fixture, task)
        finally:
            await self.verifier.close()
        faults += [self._fault(report.line, report.message) for report in reports if not report.passed]
        return reports, faults

    def _read(self, faults: list[Fault]) -> Iterator[tuple[int, Fixture]]:
        file = self.entry.folder / self.manifest.fixtures
        if not file.is_file():
            faults.append(Fault(f"there are no fixtures ({file}); write one answer of each kind: {', '.join(KINDS)}"))
            return
        seen = set()
        for line in read_jsonl(file):
            if line.value is None:
                faults.append(self._fault(line.number, line.fault or ""))
                continue
            try:
                fixture = Fixture.model_validate(line.value)
            except ValidationError as error:
                for one in error.errors(include_url=False):
                    field = ".".join(map(str, one["loc"]))
                    faults.append(self._fault(line.number, fault_message(one, Fixture), field))
                continue
            seen.add(fixture.kind)
            yield line.number, fixture
        if missing := [kind for kind in KINDS if kind not in seen]:
            faults.append(Fault(f"no fixture of the kind {', '.join(missing)}", str(file)))

    def _tasks(self, fixtures: list[tuple[int, Fixture]], faults: list[Fault]) -> dict[tuple[str, str], Task]:
        """The tasks that fixtures answer, with their rendered input."""
        tasks: dict[tuple[str, str], Task] = {}
        for split in dict.fromkeys(fixture.split for _, fixture in fixtures):
            wanted = {fixture.task_id: line for line, fixture in reversed(fixtures) if fixture.split == split}
            if split not in self.manifest.datasets:
                hint = did_you_mean(split, self.manifest.datasets)
                faults.append(self._fault(min(wanted.values()), f"there is no split {split!r}; {hint}", "split"))
                continue
            ids = []
            for task in load_rows(self.entry, split, manifest=self.manifest, skip_bad=True):
                task_id = str(task.task_id)
                ids.append(task_id)
                if wanted.pop(task_id, None) is not None:
                    create = task.responses_create_params.model_copy(update={"input": rendered(task, self.manifest)})
                    tasks[split, task_id] = task.model_copy(update={"responses_create_params": create})
                if not wanted:
                    break
            faults += [
                self._fault(line, f"split {split!r} has no task {task_id!r}; {did_you_mean(task_id, ids)}", "task_id")
                for task_id, line in wanted.items()
            ]
        return tasks

    async def _score(self, line: int, fixture: Fixture, task: Task) -> list[FixtureReport]:
        try:
            evidence = await self._evidence(fixture, task)
            reward = await self._reward(task.verifier_fields, evidence)
        except _Unscored as error:
            return [_report(line, fixture, None, False, str(error))]
        good = abs(reward - fixture.reward) <= TOLERANCE
        message = "" if good else f"{fixture.kind} on {fixture.task_id}: reward {reward:g}, expected {fixture.reward:g}"
        reports = [_report(line, fixture, reward, good, message)]
        if fixture.swapped is not None:
            reports.append(await self._score_swapped(line, fixture, task, evidence))
        return reports

    async def _score_swapped(self, line: int, fixture: Fixture, task: Task, evidence: Evidence) -> FixtureReport:
        """The same answer against a wrong gold. That the verifier refuses it as impossible is as good as a low reward."""
        try:
            reward = await self._reward({**task.verifier_fields, **(fixture.swapped or {})}, evidence)
        except _Unscored as error:
            return _report(line, fixture, None, False, f"with the gold swapped: {error}", swapped=True)
        good = reward < self.manifest.passing_reward
        message = "" if good else f"{fixture.kind} on {fixture.task_id} still passes with the gold swapped ({reward:g})"
        return _report(line, fixture, reward, good, message, swapped=True)

    async def _evidence(self, fixture: Fixture, task: Task) -> Evidence:
        artifacts: dict[str, bytes] = {}

        def keep(content: bytes) -> str:
            name = hashlib.sha256(content).hexdigest()
            artifacts[name] = content
            return name

        try:
            session = self.session(task, seed=SEED, parameters=self.manifest.session_parameters)
            record = await play(session, outputs_of(fixture), put_artifact=keep, timeout_s=TIMEOUT_S)
        except (InputError, RolloutFailure) as error:
            raise _Unscored(str(error)) from error
        except Exception as error:
            raise _Unscored(f"the session could not be made: {type(error).__name__}: {error}") from error
        evidence = Evidence.of(record, artifacts.__getitem__)
        if fixture.files is not None:
            evidence.artifacts["workspace"] = keep(_workspace(task, self.manifest, fixture.files))
        given = task.responses_create_params.input
        evidence.input = given if isinstance(given, list) else []
        evidence.judge = self.judge.hearing() if self.judge else None
        return evidence

    async def _reward(self, fields: dict[str, Any], evidence: Evidence) -> float:
        try:
            task: BaseModel = self.verifier.task_fields.model_validate(fields)
            async with asyncio.timeout(TIMEOUT_S):
                verdict: Verdict = await self.verifier.verify(task, evidence)
        except TimeoutError as error:
            raise _Unscored(f"the verifier gave no verdict within {TIMEOUT_S:g} s") from error
        except Exception as error:
            raise _Unscored(f"the verifier failed: {type(error).__name__}: {error}") from error
        if fault := reward_fault(verdict, self.manifest.reward_range):
            raise _Unscored(fault)
        return verdict.reward

    def _fault(self, line: int, message: str, field: str | None = None) -> Fault:
        return Fault(message, str(self.entry.folder / self.manifest.fixtures), line, field)


class _Unscored(Exception):
    """Why a fixture has no reward."""


def _workspace(task: Task, manifest: Manifest, left: dict[str, str | None]) -> bytes:
    """The workspace artifact of an agent that leaves these files."""
    spec = sandbox_of(manifest.sandbox, task.sandbox)
    files = {**(spec.files if spec else {}), **left}
    return archive.pack({path: text for path, text in files.items() if text is not None})


def outputs_of(fixture: Fixture) -> list[list[Item]]:
    """What the agent said, one list of output items a turn: the actions, the output, then the final text."""
    outputs = [action_items(action, index) for index, action in enumerate(fixture.actions or ())]
    if fixture.output is not None:
        outputs.append(fixture.output)
    if fixture.text is not None:
        outputs.append([message_item(fixture.text)])
    return outputs


def _report(
    line: int, fixture: Fixture, reward: float | None, passed: bool, message: str, *, swapped: bool = False
) -> FixtureReport:
    gold = tuple(fixture.swapped or ()) if swapped else ()
    return FixtureReport(line, fixture.kind, fixture.task_id, fixture.reward, reward, passed, swapped, message, gold)
