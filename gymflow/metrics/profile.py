"""The profile of a run, from the store: quality with its error, how it divides over tasks and slices, and what it cost."""

from collections.abc import Collection
from importlib.resources import files

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from gymflow.contracts.estimate import Estimate
from gymflow.contracts.profile import Profile, ProfileLine
from gymflow.contracts.run import RunDocument
from gymflow.metrics import slices
from gymflow.metrics.costs import costs_of
from gymflow.metrics.estimators import pass_at_k_of, pass_hat_k_of
from gymflow.metrics.intervals import mean_estimate
from gymflow.metrics.quality import Options, Quality, Votes
from gymflow.metrics.summaries import rows
from gymflow.metrics.task_table import TaskTable, numbered, open_task_tables, task_tables
from gymflow.store import Store, connect
from gymflow.store.memory import release

Key = tuple[str, str]


def profile(store: Store, run_id: str, verdict_set: str | None = None, options: Options | None = None) -> Profile:
    """The profile of a run in a verdict set (default: the current one).

    Raises InputError for a slice by a name that no task has.
    """
    return _profile(store, run_id, verdict_set, options or Options(), with_tasks=False)[0]


def profile_with_tasks(
    store: Store, run_id: str, verdict_set: str | None = None, options: Options | None = None
) -> tuple[Profile, pa.Table]:
    """The same, and a row per environment, agent and task: what the profile was made of, with mean tokens and cost of a rollout."""
    return _profile(store, run_id, verdict_set, options or Options(), with_tasks=True)


def _profile(
    store: Store, run_id: str, verdict_set: str | None, options: Options, with_tasks: bool
) -> tuple[Profile, pa.Table]:
    reader = store.run(run_id)
    chosen = verdict_set or (reader.verdict_sets[-1].name if reader.verdict_sets else None)
    with connect(store.root, runs=[run_id]) as connection:
        gathered = _gathered(connection, run_id, chosen)
        open_task_tables(connection, run_id, chosen, gathered)
        connection.execute("DROP TABLE _planned")
        release(connection)
        report = Profile(
            run_id=run_id,
            name=reader.document.name,
            store=store.address,
            verdict_set=chosen,
            confidence=options.confidence,
            seed=options.seed,
            resamples=options.resamples,
            lines=_lines(connection, reader.document, task_tables(connection), options, gathered),
        )
        tasks = task_costs(connection, run_id) if with_tasks else None
    return report, tasks


def task_costs(connection: duckdb.DuckDBPyConnection, run_id: str) -> pa.Table:
    """The rows of task_costs.sql, after `open_task_tables`."""
    return connection.sql(_sql("task_costs"), params={"run_id": run_id}).to_arrow_table()


def reward_bounds(document: RunDocument, environment: str) -> tuple[float, float] | None:
    """The range that an environment declares for its rewards; None where the run does not say."""
    known = document.environments.get(environment)
    return known.manifest.reward_range if known else None


def _lines(
    connection: duckdb.DuckDBPyConnection,
    document: RunDocument,
    tables: list[TaskTable],
    options: Options,
    gathered: Collection[str],
) -> list[ProfileLine]:
    qualities: dict[Key, Quality] = {}
    for table in tables:
        bounds = reward_bounds(document, table.environment)
        qualities[table.environment, table.agent] = Quality(table, bounds, options)
    pass_rates = {key: quality.pass_rate() for key, quality in qualities.items()}
    votes = _votes(connection) if "majority" in gathered else {}
    components: dict[Key, dict[str, Estimate]] = {key: {} for key in qualities}
    if "components" in gathered:
        _add_components(connection, components, options.confidence)
    costs = costs_of(connection, document.run_id, {key: rate.value for key, rate in pass_rates.items()})
    lines = []
    for key, quality in qualities.items():
        scored = int(quality.all.scored.sum())
        lowest, highest = quality.extremes()
        cut = [
            slices.slice_of(quality.all, mask, by, value, quality.bounds, options.confidence)
            for by in slices.wanted(options.by)
            for value, mask in slices.members_of(connection, document.run_id, *key, by).items()
        ]
        lines.append(
            ProfileLine(
                **_counts(quality.all),
                coverage=scored / int(quality.all.planned.sum()),
                lowest=lowest,
                highest=highest,
                score=quality.score(),
                error_by_task=quality.error_by_task(),
                score_t=quality.score_t(),
                score_bootstrap=quality.score_bootstrap(),
                pass_rate=pass_rates[key],
                variance=quality.variance(),
                pass_at=quality.at(pass_at_k_of),
                pass_hat=quality.at(pass_hat_k_of),
                majority_at=quality.majority_at(votes.get(key)),
                average_of=quality.average_of(),
                unanswered=(votes[key].unanswered / scored if key in votes else 1.0) if scored else None,
                bands=quality.bands(),
                components=components[key],
                slices=cut,
                costs=costs[key],
            )
        )
    return lines


def _counts(table: TaskTable) -> dict[str, str | int]:
    return {
        "environment": table.environment,
        "agent": table.agent,
        "tasks": len(table.planned),
        "unscored_tasks": int((~table.has_score).sum()),
        "rollouts": int(table.planned.sum()),
        **{name: int(getattr(table, name).sum()) for name in ("scored", "unverified", "failed", "missing")},
        "least_repeats": int(table.scored.min()),
        "most_repeats": int(table.scored.max()),
    }


def _gathered(connection: duckdb.DuckDBPyConnection, run_id: str, verdict_set: str | None) -> list[str]:
    """Of the queries over answers and over components those that have something to look at."""
    [(answers, components)] = connection.execute(
        "SELECT count(extracted_answer) > 0, count(components) > 0 FROM verdicts WHERE run_id = ? AND verdict_set = ?",
        [run_id, verdict_set],
    ).fetchall()
    return [name for name, there in (("majority", answers), ("components", components)) if there]


def _votes(connection: duckdb.DuckDBPyConnection) -> dict[Key, Votes]:
    """By environment and agent."""
    query = "SELECT * REPLACE (sum(tasks)::BIGINT AS tasks, sum(unanswered)::BIGINT AS unanswered) FROM _majority GROUP BY ALL"
    found: dict[Key, Votes] = {}
    for row in rows(connection, query, {}):
        votes = found.setdefault((row["environment"], row["agent"]), Votes())
        votes.divisions.append(tuple((vote["n"], vote["passed"] / vote["n"]) for vote in row["votes"]))
        votes.scored.append(row["scored"])
        votes.tasks.append(row["tasks"])
        votes.clusters.append(row["cluster"])
        votes.unanswered += row["unanswered"]
    return found


def _add_components(
    connection: duckdb.DuckDBPyConnection, found: dict[Key, dict[str, Estimate]], confidence: float
) -> None:
    """Every component's mean over the tasks that have it."""
    query = """
        SELECT c.*, t.cluster FROM _components c JOIN _per_task t USING (environment, agent, task_index)
        ORDER BY environment, agent, name, task_index
    """
    table = connection.sql(query).to_arrow_table()
    for environment, agent in found:
        of_line = table.filter((pc.field("environment") == environment) & (pc.field("agent") == agent))
        for name in of_line["name"].unique().to_pylist():
            one = of_line.filter(pc.field("name") == name)
            clusters = numbered(one["cluster"].combine_chunks())
            found[environment, agent][name] = mean_estimate(one["mean"].to_numpy(), clusters, confidence=confidence)


def _sql(name: str) -> str:
    return files(__package__).joinpath(f"{name}.sql").read_text()
