"""The sections of the page above its rollouts."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from gymflow.analysis.health.sheets import health_line
from gymflow.analysis.page.gathering import Contents, Line
from gymflow.analysis.page.markup import Child, Markup, element, joined, said
from gymflow.analysis.page.plots import interval_bar, plots, shares_bar
from gymflow.analysis.page.tables import Links, table
from gymflow.analysis.sheets import number, share, whole
from gymflow.contracts.health import CheckResult
from gymflow.contracts.profile import AtK, ProfileLine
from gymflow.metrics.profile import reward_bounds
from gymflow.metrics.summaries import model_name

KINDS = {
    "passed": "passed",
    "partial": "not passed, some reward",
    "not-passed": "not passed",
    "unverified": "no verdict",
    "failed": "failed by infrastructure",
    "missing": "not sampled",
}
"""How a rollout ended, as the grid shows it."""
SECTIONS = ("Look first", "Plots", "Tasks", "Findings", "Diagnosis", "Rollouts")
ONE_ROW = 1
"""Repeats up to which tasks have no row of their own in the grid."""


def heading(contents: Contents) -> Markup:
    """What the run is."""
    document = contents.reader.document
    created = datetime.fromtimestamp(document.created_at, UTC)
    models = [
        _short(model_name(document.identities[name]))
        for name in document.config.models_sampled
        if name in document.identities
    ]
    sampling = document.config.sampling.model_dump(exclude_none=True, exclude_defaults=True)
    facts = {
        "run": document.run_id,
        "sampled": f"{created:%Y-%m-%d %H:%M} UTC",
        "model": ", ".join(models),
        "environment": ", ".join(f"{name} ({one.split})" for name, one in document.environments.items()),
        "sampling": ", ".join(f"{name} {value}" for name, value in sampling.items()),
        "verdicts": contents.verdict_set or "none yet",
        "tests decision": document.tests_decision or "",
    }
    listed = [element("div", element("dt", name), element("dd", said(value))) for name, value in facts.items() if value]
    links = [element("a", name, href=f"#{_anchor(name)}") for name in SECTIONS]
    return element(
        "header",
        element("div", "run report", class_="kicker"),
        element("h1", said(document.name)),
        element("dl", listed, class_="facts"),
        element("nav", links),
    )


def scores(contents: Contents) -> Markup:
    """One card for each environment and agent."""
    return element("div", [_score(contents, line) for line in contents.profile.lines], class_="scores")


def look_first(contents: Contents, links: Links) -> Markup:
    """What a person should open first, and what was decided."""
    lines = contents.diagnosis.look_first
    body = (
        element("ol", [element("li", links.within(line)) for line in lines], class_="first")
        if lines
        else element("p", "Nothing stands out.", class_="soft")
    )
    return element("section", title("Look first"), body, _decisions(contents))


def drawings(contents: Contents) -> Markup:
    """The plots, and whose lines these are."""
    lines = contents.profile.lines
    series = None
    if len(lines) > 1:
        swatches = [
            element(
                "li",
                element(
                    "svg", element("rect", x=0, y=0, width=10, height=10, class_=f"s{min(at, 5)}"), width=10, height=10
                ),
                said(f"{line.environment}, {line.agent}"),
            )
            for at, line in enumerate(lines)
        ]
        series = element("ul", swatches, class_="series")
    return element("section", title("Plots"), element("div", list(plots(contents)), class_="plots"), series)


def grid(contents: Contents, links: Links) -> Markup:
    """Task by repeat, coloured by outcome; every cell leads to its rollout."""
    counts = Counter(line.kind for line in contents.lines)
    legend = [
        element("li", element("span", class_=f"cell {kind}"), f"{counts[kind]:,} {text}")
        for kind, text in KINDS.items()
        if counts[kind]
    ]
    groups = []
    for (environment, agent), tasks in grouped(contents.lines).items():
        if len(grouped(contents.lines)) > 1:
            groups.append(element("h3", said(f"{environment}, {agent}")))
        if max(map(len, tasks)) <= ONE_ROW:
            groups.append(element("div", [cell(line, links) for repeats in tasks for line in repeats], class_="cells"))
        else:
            groups.append(element("div", [_row(repeats, links) for repeats in tasks], class_="rows"))
    return element(
        "section",
        title("Tasks"),
        element("p", "Task by repeat, the worst first. A cell opens its rollout.", class_="soft"),
        element("ul", legend, class_="legend"),
        groups,
        class_="long",
    )


def findings(contents: Contents, links: Links) -> Markup:
    """What health found, the worst first, and what could not be observed."""
    report = contents.health
    rank = {"error": 0, "warning": 1, "info": 2}
    found = sorted(
        (one for one in report.checks if one.findings), key=lambda one: (rank[one.severity], -one.findings, one.check)
    )
    blind = [one for one in report.checks if one.unobserved]
    parts = [title("Findings"), element("p", health_line(report) + ".")]
    if found:
        parts.append(
            table(
                ("check", "severity", "findings", "affected", "what it means", "such as"),
                [_finding(one, links) for one in found],
                numbers=("findings", "affected"),
                words=("what it means", "such as"),
            )
        )
    if blind:
        parts.append(element("h3", "not observed"))
        parts.append(
            table(
                ("check", "rollouts", "of those it applies to"),
                [
                    (one.check, f"{one.unobserved:,}", share(one.unobserved / (one.unobserved + one.evaluated)))
                    for one in blind
                ],
                numbers=("rollouts", "of those it applies to"),
            )
        )
    return element("section", parts)


def cell(line: Line, links: Links) -> Markup:
    """A rollout as a square."""
    reward = "" if line.reward is None else f", reward {line.reward:g}"
    answer = f", answers {line.extracted_answer}" if line.extracted_answer is not None else ""
    text = f"{line.task_id}, repeat {line.repeat}: {KINDS[line.kind]}{reward}{answer}"
    return links.to(line.rollout_id, text="", class_=f"cell {line.kind}", title=text, aria_label=text)


def grouped(lines: list[Line]) -> dict[tuple[str, str], list[list[Line]]]:
    """By environment and agent the tasks, each with its repeats, in the order of the page."""
    tasks: dict[tuple[str, str], dict[int, list[Line]]] = {}
    for line in lines:
        tasks.setdefault((line.environment, line.agent), {}).setdefault(line.task_index, []).append(line)
    return {key: list(found.values()) for key, found in tasks.items()}


def title(name: str) -> Markup:
    """The heading of a section."""
    return element("h2", name, id=_anchor(name))


def _short(model: str) -> str:
    """A model's name with a revision that is a digest cut short."""
    name, at, revision = model.rpartition("@sha256:")
    return f"{name}@{revision[:12]}" if at else model


def _anchor(name: str) -> str:
    return f"section:{name.lower().replace(' ', '-')}"


def _score(contents: Contents, line: ProfileLine) -> Markup:
    low, high = reward_bounds(contents.reader.document, line.environment) or (0.0, 1.0)
    found = line.score
    bands = {band.name: band.tasks for band in line.bands}
    always, never = bands.get("always", 0), bands.get("never", 0)
    sometimes = sum(bands.values()) - always - never
    error = f" ± {found.standard_error:.3f}" if found.standard_error else ""
    tokens = line.costs.tokens.get("completion")
    facts: dict[str, Child] = {
        "95 %": f"{found.interval.low:.3f} to {found.interval.high:.3f}" if found.interval else "unknown",
        "tasks": joined(
            f"{always} always, {sometimes} sometimes, {never} never",
            shares_bar([("always", always), ("sometimes", sometimes), ("never", never)]),
        ),
        **{f"pass@{one.k}": _over(one) for one in _pass_at(line)},
        "scored": f"{line.scored:,} of {line.rollouts:,} rollouts",
        "without a reward": ", ".join(
            f"{count} {name}"
            for name, count in (("failed", line.failed), ("unverified", line.unverified), ("missing", line.missing))
            if count
        ),
        "if all had one": ""
        if line.lowest is None or line.scored == line.rollouts
        else f"{line.lowest:.3f} to {line.highest:.3f}",
        "tokens": ""
        if tokens is None or tokens.per_rollout is None
        else f"{whole(tokens.per_rollout)} completed per rollout",
        "cost": "" if not line.costs.cost_usd else f"${line.costs.cost_usd:.2f}",
    }
    listed = [element("div", element("dt", name), element("dd", value)) for name, value in facts.items() if value]
    return element(
        "div",
        element(
            "div",
            element("h3", said(f"{line.environment}, {line.agent}")),
            element("div", number(found.value), element("small", error), class_="value"),
            interval_bar(found.value, found.interval, low, high),
        ),
        element("dl", listed),
        class_="score",
    )


def _pass_at(line: ProfileLine) -> list[AtK]:
    """For the largest k that every scored task allows, and for the largest that any does."""
    defined = [one for one in line.pass_at if one.estimate.value is not None]
    whole = [one for one in defined if one.estimate.tasks == line.score.tasks]
    return [*whole[-1:], *defined[len(whole) :][-1:]]


def _over(found: AtK) -> str:
    tasks = found.estimate.tasks
    repeats = "1 scored repeat" if found.k == 1 else f"{found.k} scored repeats"
    return f"{number(found.estimate.value)} over {tasks:,} task{'' if tasks == 1 else 's'} with at least {repeats}"


def _decisions(contents: Contents) -> Markup | None:
    if not contents.decisions:
        return None
    rows = [
        (
            one.decision_id,
            f"{one.intervention} ({one.environment}, {one.agent})",
            "-" if one.gain is None else f"{one.gain:+.3f}",
            said(one.decided_by),
            f"{datetime.fromtimestamp(one.decided_at, UTC):%Y-%m-%d %H:%M}",
            said(one.reason),
        )
        for one in contents.decisions
    ]
    columns = ("decision", "intervention", "gain at most", "by", "at (UTC)", "because")
    return joined(element("h3", "Decided"), table(columns, rows, numbers=("gain at most",), words=("because",)))


def _row(repeats: list[Line], links: Links) -> Markup:
    first = repeats[0]
    name = element("a", said(first.task_id), href=f"#{task_anchor(first)}", title=first.task_id)
    return element("div", name, element("span", [cell(line, links) for line in repeats], class_="cells"), class_="row")


def task_anchor(line: Line) -> str:
    """Where the rollouts of a task begin."""
    return f"task:{line.plan_index}"


def _finding(found: CheckResult, links: Links) -> tuple[Markup | str, ...]:
    shown = [
        element(
            "div",
            links.to(one.rollout_id) if one.rollout_id else said(one.locator),
            " ",
            said(one.message, 160),
        )
        for one in found.examples
    ]
    return (
        found.check,
        element("span", found.severity, class_=found.severity),
        f"{found.findings:,}",
        f"{found.affected:,}",
        found.about,
        joined(shown),
    )


def every(contents: Contents, links: Links) -> Iterator[Markup]:
    """The sections in order, but for the diagnosis and the rollouts."""
    yield heading(contents)
    yield scores(contents)
    yield look_first(contents, links)
    yield drawings(contents)
    yield grid(contents, links)
    yield findings(contents, links)
