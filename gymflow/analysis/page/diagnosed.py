"""The diagnosis on the page: what could be done, why rollouts failed, and where that is seen."""

from collections.abc import Iterator

from gymflow.analysis.diagnose.sheets import headline, readings_line
from gymflow.analysis.page.gathering import Contents
from gymflow.analysis.page.markup import Markup, element, joined, said
from gymflow.analysis.page.plots import length_bar
from gymflow.analysis.page.sections import title
from gymflow.analysis.page.tables import Links, table
from gymflow.contracts.diagnosis import Diagnosis, Funnel


def diagnosed(contents: Contents, links: Links) -> Markup:
    """The section."""
    found = contents.diagnosis
    return element("section", title("Diagnosis"), element("p", headline(found) + "."), list(_parts(found, links)))


def _parts(found: Diagnosis, links: Links) -> Iterator[Markup]:
    if found.proposals:
        most = max((one.gain or 0.0 for one in found.proposals), default=0.0)
        yield element("h3", "What could be done, with the most that each could add to the score")
        yield table(
            ("", "intervention", "environment, agent", "gain at most", " ", "rollouts", "because of", "such as"),
            [
                (
                    str(rank),
                    one.intervention.replace("_", " "),
                    said(f"{one.environment}, {one.agent}"),
                    "-" if one.gain is None else f"{one.gain:+.3f}",
                    length_bar(one.gain or 0.0, most),
                    f"{one.rollouts:,}",
                    ", ".join(f"{cause} {count}" for cause, count in one.causes.items()),
                    links.several(one.supported_by[:2]),
                )
                for rank, one in enumerate(found.proposals, 1)
            ],
            numbers=("gain at most", "rollouts"),
            words=("because of", "such as"),
        )
    if found.causes:
        yield element("h3", "Why rollouts did not pass")
        yield table(
            ("cause", "rollouts", "tasks", "what it means", "evidence, such as"),
            [
                (
                    joined(
                        one.cause,
                        element(
                            "div", f"{one.root_cause.replace('_', ' ')}; {one.environment}, {one.agent}", class_="soft"
                        ),
                    ),
                    f"{one.rollouts:,}",
                    f"{one.tasks:,}",
                    one.about,
                    [
                        element("div", links.to(cited.rollout_id), f" {cited.locator} = ", said(cited.shows, 60))
                        for label in one.examples[:3]
                        for cited in label.citations[:1]
                    ],
                )
                for one in found.causes
            ],
            numbers=("rollouts", "tasks"),
            words=("what it means", "evidence, such as"),
        )
    if found.funnels:
        yield element("h3", "How far the rollouts came")
        yield _funnels(found.funnels)
    if found.suspects:
        yield element("h3", "Suspect tasks: a person should look at the gold answer or the verifier")
        yield table(
            ("task", "environment, agent", "why", "shown by"),
            [
                (
                    said(one.task_id),
                    said(f"{one.environment}, {one.agent}"),
                    said(one.detail),
                    links.several(cited.rollout_id for cited in one.citations[:3]),
                )
                for one in found.suspects
            ],
            words=("why", "shown by"),
        )
    if found.divergences:
        yield element("h3", "Where passing and failing repeats of a task part")
        yield table(
            ("task", "turn", "the passing one", "does", "the failing one", "does instead"),
            [
                (
                    said(one.task_id),
                    str(one.turn),
                    links.to(one.passing, one.turn),
                    said(one.passing_move, 120),
                    links.to(one.failing, one.turn),
                    said(one.failing_move, 120),
                )
                for one in found.divergences[:20]
            ],
            numbers=("turn",),
            words=("does", "does instead"),
        )
    if found.readings is not None:
        yield element("h3", "What a model says that read some of them")
        because = ", ".join(f"{count} {reason}" for reason, count in found.readings.dropped_because.items())
        yield element("p", readings_line(found.readings) + (f" ({because})." if because else "."))
        yield table(
            ("rollout", "says", "shown by"),
            [
                (
                    links.to(one.rollout_id),
                    said(one.text, 400),
                    [element("div", f"{cited.locator} = ", said(cited.shows, 80)) for cited in one.citations],
                )
                for one in found.readings.sentences
            ],
            words=("says", "shown by"),
        )
    for change in found.changes:
        yield element(
            "h3",
            said(
                f"{change.environment}, {change.agent}: {change.before:.3f} in {change.against}, {change.after:.3f} now, over {change.tasks} shared tasks"
            ),
        )
        yield table(
            ("explained by", "adds"),
            [(shift.label, f"{shift.contribution:+.3f}") for shift in change.by_label],
            numbers=("adds",),
        )


def _funnels(funnels: list[Funnel]) -> Markup:
    names = [stage.name for stage in funnels[0].stages]
    most = max(one.stages[0].rollouts for one in funnels)
    return table(
        ("environment, agent", *names, "biggest drop"),
        [
            (
                said(f"{one.environment}, {one.agent}"),
                *(joined(f"{stage.rollouts:,}", length_bar(stage.rollouts, most, 64)) for stage in one.stages),
                f"{one.lost:,} not {one.biggest_drop}" if one.biggest_drop else "none",
            )
            for one in funnels
        ],
    )
