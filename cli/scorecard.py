"""The scorecard as a person reads it, and as a program does."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.attention import put_attention
from cli.choosing import store_option
from cli.terminal import command, one_line, print_json, results
from gymflow.analysis.sheets import interval, number
from gymflow.contracts.report import Scorecard, ScoreLine
from gymflow.store import Store

WORDS = 240
"""Characters shown of what most failures of a kind say."""


def print_scorecards(cards: list[Scorecard], *, json: bool, health: bool = False, diagnosis: bool = False) -> None:
    """Tables and what to type next on stdout, or a JSON list; with `health` and `diagnosis` also what these said of each run."""
    if json:
        print_json([card.model_dump(mode="json") for card in cards])
        return
    console = results()
    for card in cards:
        put_scorecard(console, card)
        put_attention(console, card, health=health, diagnosis=diagnosis)
        _put_next(console, card)
    if len(cards) > 1:
        _put_hints(console, [(_comparing(cards), "these runs as one table, the first as the base")])


def put_scorecard(console: Console, card: Scorecard) -> None:
    """Score, spread over tasks, coverage and cost. Names are the user's and are printed as they are, not as markup."""
    table = Table(box=None, pad_edge=False)
    for name in ("environment", "agent", "score ± SE [95 %]", "pass@k", "tasks", "rollouts", "tokens", "time"):
        table.add_column(name, overflow="fold")
    for line in card.lines:
        table.add_row(
            one_line(line.environment),
            one_line(line.agent),
            _score(line),
            _pass_at(line),
            str(line.tasks),
            _coverage(line),
            _tokens(line),
            _time(line),
        )
    console.print(f"{one_line(card.name)}  run {card.run_id}", style="italic", soft_wrap=True)
    console.print(table)
    for line in card.lines:
        console.print(f"\n{one_line(line.environment)}, {one_line(line.agent)}: {_spread(line)}", soft_wrap=True)
        for failures in line.failures:
            words = f": {one_line(failures.words[:WORDS])}" if failures.words else ""
            console.print(
                f"  without a reward: {failures.rollouts} {failures.kind}{words}", style="yellow", soft_wrap=True
            )
        if line.missing:
            console.print(f"  {line.missing} rollouts are missing: planned, and not sampled yet", style="yellow")
        if line.unscored_tasks:
            console.print(
                f"  {line.unscored_tasks} tasks have no scored rollout and are not in the score",
                style="yellow",
                soft_wrap=True,
            )
        if line.uncounted and (line.prompt_tokens, line.completion_tokens) != (None, None):
            console.print(
                f"  {line.uncounted} rollouts have no full token count, and are not in the tokens", style="yellow"
            )
        if line.reused:
            console.print(f"  {line.reused} rollouts were sampled in another run")
    console.print(f"\nstore   {card.store}  (verdict set {card.verdict_set or 'none yet'})", soft_wrap=True)


def _put_next(console: Console, card: Scorecard) -> None:
    console.print("next")
    where = store_option(Store(card.store))
    gym = command()
    query = "select task_id, avg(reward) as reward from outcomes group by all order by reward"
    hints = [
        (f"{gym} show {card.run_id}{where}", "tasks, rollouts, whole trajectories"),
        (f"{gym} eval report {card.run_id}{where}", "all of it on one page (HTML)"),
        (f"{gym} eval decide {card.run_id}{where}", "choose what to do about it, and keep the choice"),
        (f'{gym} sql "{query}"{where}', "any question"),
        (f"{gym} eval run --resume {card.run_id} --repeats N{where}", "more repeats, or what is missing"),
    ]
    if len({line.agent for line in card.lines}) > 1:
        hints.insert(1, (_comparing([card]), "its agents as one table"))
    _put_hints(console, hints)


def _comparing(cards: list[Scorecard]) -> str:
    """The command that compares runs, or the agents of one."""
    return f"{command()} eval compare {' '.join(card.run_id for card in cards)}{store_option(Store(cards[0].store))}"


def _put_hints(console: Console, hints: list[tuple[str, str]]) -> None:
    for typed, purpose in hints:
        console.print(Text.assemble(f"  {typed}   ", (purpose, "dim")), soft_wrap=True)


def mean_and_error(mean: float | None, error: float | None) -> str:
    """A score with its standard error, where it has one. None is shown where all tasks came to the same: it would say ± 0."""
    if mean is None:
        return "none"
    return f"{number(mean)} ± {number(error)}" if error else number(mean)


def _score(line: ScoreLine) -> str:
    """With its standard error and its 95 % interval, both clustered by task, and by `cluster` where the tasks have one."""
    score = mean_and_error(line.score, line.standard_error)
    return f"{score} {interval(line.interval)}".rstrip()


def _pass_at(line: ScoreLine) -> str:
    return "  ".join(f"@{k} {value:.3f}" for k, value in line.pass_at.items())


def _coverage(line: ScoreLine) -> str:
    return f"{line.scored}/{line.rollouts} scored"


def _tokens(line: ScoreLine) -> str:
    if line.prompt_tokens is None and line.completion_tokens is None:
        return "not reported"
    prompt, completion = (
        "?" if count is None else f"{count:,}" for count in (line.prompt_tokens, line.completion_tokens)
    )
    return f"{'≥ ' if line.uncounted else ''}{prompt} + {completion}"


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
