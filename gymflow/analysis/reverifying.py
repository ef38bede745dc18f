"""The report of a rescoring: old and new score on the same rollouts, every flip, what changed in the verifier, what was refused."""

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import orjson

from gymflow.analysis.labels import agreement_with
from gymflow.analysis.reports import write_report
from gymflow.contracts.estimate import Estimate
from gymflow.contracts.reverification import Flip, Refused, Reverification, ReverifyLine, VerifierChange
from gymflow.contracts.run import RunDocument, VerdictSet
from gymflow.errors import InputError
from gymflow.metrics.magnitudes import mean_of
from gymflow.metrics.paired import paired_difference
from gymflow.metrics.summaries import rows
from gymflow.metrics.task_table import numbered
from gymflow.runtime.rescoring import Rescored
from gymflow.store import Store, connect

_BOTH = """
create temp table _both as
select n.environment, n.agent, n.task_key, n.task_index, n.task_id, n.repeat, n.rollout_id,
       o.reward as old_reward, n.reward as new_reward, o.passed as old_passed, n.passed as new_passed
from outcomes n left join (select * from outcomes where verdict_set = $old) o using (run_id, rollout_id)
where n.run_id = $run and n.verdict_set = $new and n.status = 'completed'
"""
_LINES = """
select environment, agent,
       count(*) filter (old_reward is not null and new_reward is not null) as rollouts,
       count(*) filter (new_passed and not old_passed) as gained,
       count(*) filter (old_passed and not new_passed) as lost,
       count(*) filter (old_reward is null and new_reward is not null) as recovered,
       count(*) filter (new_reward is null) as without,
       count(*) filter (new_reward is null and old_reward is not null) as newly_without
from _both group by all order by all
"""
_TASKS = """
select b.task_index, mean_of(b.old_reward) as old, mean_of(b.new_reward) as new, any_value(t.cluster) as cluster
from _both b join tasks t on t.run_id = $run and t.task_index = b.task_index
where b.environment = $environment and b.agent = $agent and b.old_reward is not null and b.new_reward is not null
group by b.task_index order by b.task_index
"""
_HEADLINES = """
select mean_of(old) as old, mean_of(new) as new
from (
    select mean_of(old_reward) as old, mean_of(new_reward) as new from _both
    where environment = $environment and agent = $agent group by task_index
)
"""
_FLIPS = """
select b.environment, b.agent, b.task_id, b.repeat, b.rollout_id, b.old_reward, b.new_reward, b.old_passed, b.new_passed,
       o.reason as old_reason, n.reason as new_reason
from _both b
join verdicts o on o.run_id = $run and o.rollout_id = b.rollout_id and o.verdict_set = $old
join verdicts n on n.run_id = $run and n.rollout_id = b.rollout_id and n.verdict_set = $new
where b.old_reward <> b.new_reward
order by b.environment, b.agent, b.task_index, b.repeat
"""
_REFUSED = """
select b.environment, v.failure, v.failure_message as reason, count(*) as rollouts
from _both b left join verdicts v on v.run_id = $run and v.rollout_id = b.rollout_id and v.verdict_set = $new
where b.new_reward is null group by all order by rollouts desc, reason
"""
LISTED_REASONS = 20


def reverification(store: Store, done: Rescored, labels: str | None = None) -> Reverification:
    """The report, stored as `reverify-<new set>.json` with the run."""
    reader = store.run(done.run_id)
    document, sets = reader.document, {one.name: one for one in reader.verdict_sets}
    names = {"run": done.run_id, "old": done.previous, "new": done.verdict_set}
    with connect(store.root, runs=[done.run_id]) as connection:
        connection.execute(_BOTH, names)
        lines = [_line(connection, document, done.run_id, row) for row in rows(connection, _LINES, {})]
        flips = [Flip(**row) for row in rows(connection, _FLIPS, names)] if done.previous != done.verdict_set else []
        refused = [
            Refused(**{**row, "reason": row["reason"] or "no verdict yet"}, kept=False)
            for row in rows(connection, _REFUSED, {"run": names["run"], "new": names["new"]})[:LISTED_REASONS]
        ]
        for environment, reason in sorted(done.refused.items()):
            count = sum(line.rollouts for line in lines if line.environment == environment)
            refused.append(Refused(environment=environment, rollouts=count, failure=None, reason=reason, kept=True))
        agreement = agreement_with(connection, done.run_id, done.verdict_set, labels) if labels else None
    report = Reverification(
        run_id=done.run_id,
        name=document.name,
        store=store.address,
        old_set=done.previous,
        new_set=done.verdict_set,
        unchanged=done.previous == done.verdict_set and done.scored == 0,
        scored=done.scored,
        reused=done.reused,
        changes=_changes(sets.get(done.previous or ""), sets[done.verdict_set], document, reader.read_artifact),
        lines=lines,
        flips=flips,
        refused=refused,
        agreement=agreement,
    )
    write_report(store, done.run_id, f"reverify-{done.verdict_set}", report)
    return report


def _line(
    connection: duckdb.DuckDBPyConnection, document: RunDocument, run_id: str, counts: Mapping[str, Any]
) -> ReverifyLine:
    of_line = {"environment": counts["environment"], "agent": counts["agent"]}
    tasks = connection.sql(_TASKS, params={"run": run_id, **of_line}).to_arrow_table()
    [headlines] = rows(connection, _HEADLINES, of_line)
    old, new = (tasks[name].to_numpy() for name in ("old", "new"))
    difference, p = _difference(old, new, tasks, document, counts["environment"])
    return ReverifyLine(
        **counts,
        old_score=mean_of(old) if len(old) else None,
        new_score=mean_of(new) if len(new) else None,
        difference=difference,
        p=p,
        old_headline=headlines["old"],
        new_headline=headlines["new"],
    )


def _difference(
    old: Any, new: Any, tasks: Any, document: RunDocument, environment: str
) -> tuple[Estimate, float | None]:
    if len(old) == 0:
        return Estimate(value=None, tasks=0, groups=0, reason="no rollout has a reward in both sets"), None
    low, high = document.environments[environment].manifest.reward_range
    clusters = numbered(tasks["cluster"].combine_chunks())
    found = paired_difference(old, new, clusters, width=high - low)
    return (
        Estimate(
            value=found.difference,
            standard_error=found.standard_error,
            interval=found.interval,
            tasks=len(old),
            groups=found.groups,
            reason=found.reason,
        ),
        found.p,
    )


def _changes(
    old: VerdictSet | None, new: VerdictSet, document: RunDocument, read_artifact: Callable[[str], bytes]
) -> list[VerifierChange]:
    changes = []
    for label, after in new.judged.items():
        before = old.judged.get(label) if old else None
        if old is None or before is None:
            continue
        same_verifier = before.verifier == after.verifier
        same_code = same_verifier and before.code_digest == after.code_digest
        comparable = same_verifier and not same_code
        parameters = _parameters(old, label, document), new.parameters.get(label) or old.parameters.get(label) or {}
        changes.append(
            VerifierChange(
                environment=label,
                verifier=(before.verifier, after.verifier),
                version=(before.version, after.version),
                code_digest=(before.code_digest, after.code_digest),
                code_changed=not same_code,
                code_diff=_diff(old.code.get(label), new.code.get(label), read_artifact) if comparable else None,
                parameters={
                    name: (parameters[0].get(name), parameters[1].get(name))
                    for name in sorted(parameters[0].keys() | parameters[1].keys())
                    if parameters[0].get(name) != parameters[1].get(name)
                }
                if same_verifier
                else {},
                judge=(before.judge, after.judge),
            )
        )
    return changes


def _parameters(verdict_set: VerdictSet, label: str, document: RunDocument) -> dict[str, Any]:
    return verdict_set.parameters.get(label) or dict(document.environments[label].manifest.verifier.parameters)


def _diff(before: str | None, after: str | None, read_artifact: Callable[[str], bytes]) -> str | None:
    """A unified diff over all files of two verifiers; None where one's code was not kept."""
    if before is None or after is None:
        return None
    try:
        old, new = (orjson.loads(read_artifact(digest)) for digest in (before, after))
    except InputError:
        return None
    parts: list[str] = []
    for name in sorted(old["files"].keys() | new["files"].keys()):
        texts = old["files"].get(name, ""), new["files"].get(name, "")
        parts += difflib.unified_diff(
            texts[0].splitlines(keepends=True), texts[1].splitlines(keepends=True), f"before/{name}", f"now/{name}"
        )
    for name in sorted(old["distributions"].keys() | new["distributions"].keys()):
        versions = old["distributions"].get(name), new["distributions"].get(name)
        if versions[0] != versions[1]:
            parts.append(f"{name} {versions[0]} -> {versions[1]}\n")
    return "".join(part if part.endswith("\n") else part + "\n" for part in parts)
