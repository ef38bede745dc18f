"""The scorecard as a person reads it, and as a program does."""

import math
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table

from gymflow.contracts.report import Scorecard, ScoreLine
from gymflow.paths import store_root


def print_scorecards(cards: list[Scorecard], *, json: bool) -> None:
    """Tables on stdout, or a JSON list."""
    if json:
        print(orjson.dumps([card.model_dump(mode="json") for card in cards], option=orjson.OPT_NON_STR_KEYS).decode())
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)  # a pipe has no width of its own, and wrapped cells are hard to read
    for card in cards:
        print_scorecard(card, console)


def print_scorecard(card: Scorecard, console: Console) -> None:
    """Score, spread over tasks, coverage, cost, and what to type next."""
    table = Table(title=f"{card.name}  run {card.run_id}", title_justify="left", box=None, pad_edge=False)
    for name in ("environment", "agent", "score", "pass@k", "tasks", "rollouts", "tokens", "time"):
        table.add_column(name, no_wrap=True)
    for line in card.lines:
        table.add_row(
            line.environment,
            line.agent,
            _score(line),
            _pass_at(line),
            str(line.tasks),
            _coverage(line),
            _tokens(line),
            _time(line),
        )
    console.print(table)
    for line in card.lines:
        console.print(f"\n{line.environment}, {line.agent}: {_spread(line)}")
        if line.failures:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(line.failures.items()))
            console.print(f"  without a reward: {kinds}", style="yellow")
        if line.unscored_tasks:
            console.print(
                f"  {line.unscored_tasks} tasks have no scored rollout and are not in the score", style="yellow"
            )
        if line.reused:
            console.print(f"  {line.reused} rollouts were sampled in another run")
    console.print(f"\nstore   {card.store}  (verdict set {card.verdict_set})", highlight=False, soft_wrap=True)
    console.print("next", highlight=False)
    where = "" if Path(card.store) == Path(store_root()) else f" --store {card.store}"
    query = "select task_id, avg(reward) as reward from outcomes group by all order by reward"
    hints = [
        (f"gym show {card.run_id}{where}", "tasks, rollouts, whole trajectories"),
        (f'gym sql "{query}"{where}', "any question"),
        (f"gym eval run --resume {card.run_id} --repeats N{where}", "more repeats, or what is missing"),
    ]
    for command, purpose in hints:
        console.print(f"  {command}   [dim]{purpose}[/dim]", highlight=False, soft_wrap=True)


def _score(line: ScoreLine) -> str:
    if line.score is None:
        return "none"
    error = line.standard_error
    return f"{line.score:.3f}" if error is None or math.isnan(error) else f"{line.score:.3f} ± {error:.3f}"


def _pass_at(line: ScoreLine) -> str:
    return "  ".join(f"@{k} {value:.3f}" for k, value in line.pass_at.items())


def _coverage(line: ScoreLine) -> str:
    return f"{line.scored}/{line.rollouts} scored"


def _tokens(line: ScoreLine) -> str:
    if line.prompt_tokens is None and line.completion_tokens is None:
        return "not reported"
    return f"{line.prompt_tokens or 0:,} + {line.completion_tokens or 0:,}"


def _time(line: ScoreLine) -> str:
    return "" if line.elapsed_s is None else f"{line.elapsed_s:.1f} s"


def _spread(line: ScoreLine) -> str:
    """How the tasks divide over repeats, drawn to scale."""
    total = max(line.always + line.sometimes + line.never, 1)
    bar = "".join(
        sign * round(30 * count / total)
        for sign, count in (("█", line.always), ("▒", line.sometimes), ("░", line.never))
    )
    return f"{bar}  {line.always} tasks always pass, {line.sometimes} sometimes, {line.never} never"
