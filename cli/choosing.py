"""What a person means by the words after `gym show`: a run, a verdict set, a task, a repeat, some turns."""

import shlex
from collections.abc import Iterable

from gymflow.contracts.report import TaskLine
from gymflow.errors import InputError
from gymflow.metrics.summaries import repeat_lines, task_lines
from gymflow.paths import absolute_store_root, store_root
from gymflow.store import RunReader, Store
from gymflow.suggest import did_you_mean


def existing_store(given: str | None) -> Store:
    """The store to read. InputError where there is none."""
    store = Store(store_root(given))
    if not store.layout.runs.is_dir():
        raise InputError(
            f"there is no store at {store.address}; name it with --store or GYMFLOW_STORE, or make one with `gym eval run`"
        )
    return store


def run_and_task(store: Store, given: str, task: str | None) -> tuple[RunReader, str | None]:
    """The run, and what of it: a rollout id alone, as reports name rollouts, is of its run."""
    try:
        return store.run(given), task
    except InputError:
        run_id, _, number = given.rpartition("-")
        if task is not None or not number.isdecimal() or not store.holds(run_id):
            raise
        return store.run(run_id), given


def store_option(store: Store) -> str:
    """How a command has to name the store."""
    return "" if store.address == absolute_store_root() else f" --store {shlex.quote(store.address)}"


def verdict_set(reader: RunReader, given: str | None) -> str | None:
    """A verdict set by a unique beginning of its name; the current one if none is given, None where the run has none."""
    names = [one.name for one in reader.verdict_sets]
    if given is None:
        return names[-1] if names else None
    return _unique(given, names, f"verdict set of {reader.run_id}")


def task(lines: list[TaskLine], given: str, run_id: str) -> tuple[str, str]:
    """Environment and id of a task, by a unique beginning of its id, or of `environment/id`."""
    pairs = {(line.environment, line.task_id) for line in lines}
    named = {f"{environment}/{task_id}": (environment, task_id) for environment, task_id in pairs}
    by_id: dict[str, list[str]] = {}
    for name, (_, task_id) in named.items():
        by_id.setdefault(task_id, []).append(name)
    if given in named:
        return named[given]
    if any(name.startswith(given) for name in named) and "/" in given:
        return named[_unique(given, named, f"task of {run_id}")]
    places = by_id[_unique(given, by_id, f"task of {run_id}")]
    if len(places) > 1:
        raise InputError(f"task {given!r} is in several environments: write {' or '.join(sorted(places))}")
    return named[places[0]]


def repeat(store: Store, reader: RunReader, given_task: str, given: int | None, agent: str | None) -> int:
    """The plan index of one repeat of a task."""
    run_id, current = reader.run_id, verdict_set(reader, None)
    environment, task_id = task(task_lines(store, run_id, current), given_task, run_id)
    lines = repeat_lines(store, run_id, current, environment=environment, task_id=task_id)
    agents = sorted({line.agent for line in lines})
    what = f"task {task_id} of run {run_id}"
    if agent is not None and agent not in agents:
        raise InputError(f"no agent {agent!r} played {what}; {did_you_mean(agent, agents)}")
    matching = [line for line in lines if line.repeat == given and agent in (None, line.agent)]
    if not matching:
        known = sorted({line.repeat for line in lines})
        raise InputError(f"{what} has no repeat {given}; it has {known[0]} to {known[-1]}")
    if len(matching) > 1:
        raise InputError(f"repeat {given} of {what} was played by {', '.join(agents)}: choose one with --agent")
    return matching[0].plan_index


def plan_index(reader: RunReader, given: str) -> int | None:
    """The plan index that a rollout id of the run stands for; None for what is no rollout id."""
    number = given.removeprefix(f"{reader.run_id}-")
    if number == given or not number.isdecimal() or int(number) >= reader.planned():
        return None
    return int(number)


def turns(given: str | None) -> range | None:
    """`12` or `10-20`, both ends included."""
    if given is None:
        return None
    first, dash, last = given.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or int(last or first) < int(first):
        raise InputError(f"--turns {given}: write a turn, such as 12, or a span, such as 10-20")
    return range(int(first), int(last or first) + 1)


def _unique(given: str, known: Iterable[str], what: str) -> str:
    names = sorted(known)
    if given in names:
        return given
    matching = [name for name in names if name.startswith(given)] if given else []
    if len(matching) == 1:
        return matching[0]
    if matching:
        shown = ", ".join(matching[:5]) + (", …" if len(matching) > 5 else "")
        raise InputError(f"{given!r} is the beginning of {len(matching)} names of a {what}: {shown}")
    raise InputError(f"no {what} is called {given!r}; {did_you_mean(given, names)}")
