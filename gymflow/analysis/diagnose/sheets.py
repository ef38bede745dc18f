"""A diagnosis as tables of text, for the terminal, the Markdown report and the Prefect UI."""

from collections.abc import Iterator

from gymflow.analysis.sheets import Sheet, number
from gymflow.contracts.diagnosis import CauseCount, Diagnosis, Divergence, Readings

DIVERGENCES_SHOWN = 10


def headline(diagnosis: Diagnosis) -> str:
    """The counts in a sentence."""
    text = (
        f"run {diagnosis.run_id}: {diagnosis.passed} of {diagnosis.rollouts} rollouts pass, {diagnosis.labelled} labelled, "
        f"{diagnosis.unexplained} unexplained, {diagnosis.missing} missing; {diagnosis.citations} citations checked"
    )
    if diagnosis.dropped_citations:
        text += f", {diagnosis.dropped_citations} did not hold"
    if diagnosis.against and not diagnosis.changes:
        text += f"; it shares no scored task with run {diagnosis.against}, so nothing is said about a change"
    return text


def diagnosis_sheets(diagnosis: Diagnosis) -> Iterator[Sheet]:
    """What to look at first, then everything that led there; tables without a row are left out."""
    for sheet in (
        Sheet("look first", ("what",), [(line,) for line in diagnosis.look_first]),
        _proposals(diagnosis),
        _causes(diagnosis),
        _meanings(diagnosis),
        _buckets(diagnosis),
        _funnels(diagnosis),
        _suspects(diagnosis),
        _divergences(diagnosis.divergences),
        *_changes(diagnosis),
        *_readings(diagnosis.readings),
    ):
        if sheet.rows:
            yield sheet


def _proposals(diagnosis: Diagnosis) -> Sheet:
    return Sheet(
        "interventions, with the most that each could add to the score",
        ("intervention", "environment", "agent", "rollouts", "tasks", "gain at most", "because of", "such as"),
        [
            (
                one.intervention,
                one.environment,
                one.agent,
                str(one.rollouts),
                str(one.tasks),
                number(one.gain),
                ", ".join(f"{cause} {count}" for cause, count in one.causes.items()),
                ", ".join(one.supported_by[:2]),
            )
            for one in diagnosis.proposals
        ],
    )


def _causes(diagnosis: Diagnosis) -> Sheet:
    return Sheet(
        "root causes",
        ("cause", "environment", "agent", "rollouts", "tasks", "evidence, such as"),
        [
            (
                f"{one.root_cause}: {one.cause}",
                one.environment,
                one.agent,
                str(one.rollouts),
                str(one.tasks),
                _evidence(one),
            )
            for one in diagnosis.causes
        ],
    )


def _meanings(diagnosis: Diagnosis) -> Sheet:
    return Sheet(
        "what these causes are",
        ("cause", "meaning"),
        [*{one.cause: (one.cause, one.about) for one in diagnosis.causes}.values()],
    )


def _evidence(cause: CauseCount) -> str:
    first = cause.examples[0].citations[0]
    return f"{first.rollout_id} {first.locator} = {first.shows[:40]}"


def _buckets(diagnosis: Diagnosis) -> Sheet:
    return Sheet(
        "tasks over their repeats",
        (
            "environment",
            "agent",
            "tasks",
            "always",
            "sometimes",
            "never",
            "missing",
            "sometimes, such as",
            "never, such as",
        ),
        [
            (
                one.environment,
                one.agent,
                *map(str, (one.tasks, one.always, one.sometimes, one.never, one.missing)),
                ", ".join(one.sometimes_tasks[:3]),
                ", ".join(one.never_tasks[:3]),
            )
            for one in diagnosis.buckets
        ],
    )


def _funnels(diagnosis: Diagnosis) -> Sheet:
    names = [stage.name for stage in diagnosis.funnels[0].stages] if diagnosis.funnels else []
    return Sheet(
        "how far the rollouts came",
        ("environment", "agent", *names, "biggest drop"),
        [
            (
                one.environment,
                one.agent,
                *(str(stage.rollouts) for stage in one.stages),
                f"{one.lost} not {one.biggest_drop}" if one.biggest_drop else "none",
            )
            for one in diagnosis.funnels
        ],
    )


def _suspects(diagnosis: Diagnosis) -> Sheet:
    return Sheet(
        "suspect tasks",
        ("task", "environment", "agent", "why", "shown by"),
        [
            (
                one.task_id,
                one.environment,
                one.agent,
                one.detail,
                ", ".join(cited.rollout_id for cited in one.citations[:3]),
            )
            for one in diagnosis.suspects
        ],
    )


def _divergences(found: list[Divergence]) -> Sheet:
    return Sheet(
        "where passing and failing repeats of a task part",
        ("task", "agent", "turn", "passing", "does", "failing", "does instead"),
        [
            (
                one.task_id,
                one.agent,
                str(one.turn),
                one.passing,
                one.passing_move[:80],
                one.failing,
                one.failing_move[:80],
            )
            for one in found[:DIVERGENCES_SHOWN]
        ],
    )


def _changes(diagnosis: Diagnosis) -> Iterator[Sheet]:
    for one in diagnosis.changes:
        difference = one.after - one.before
        yield Sheet(
            f"{one.environment}, {one.agent}: {one.before:.3f} in {one.against}, {one.after:.3f} now, over {one.tasks} shared tasks",
            ("explained by", "adds"),
            [
                *((shift.label, f"{shift.contribution:+.3f}") for shift in one.by_label),
                ("together", f"{difference:+.3f}"),
            ],
        )


def _readings(readings: Readings | None) -> Iterator[Sheet]:
    if readings is None:
        return
    yield Sheet(
        readings_line(readings),
        ("rollout", "says", "shown by"),
        [
            (
                one.rollout_id,
                one.text,
                "; ".join(f"{cited.locator} = {cited.shows[:60]}" for cited in one.citations),
            )
            for one in readings.sentences
        ],
    )


def readings_line(readings: Readings) -> str:
    """What a model made of it, in numbers."""
    unread = "".join(f", {count} {kind}" for kind, count in readings.unread.items())
    return (
        f"{readings.model} read {readings.rollouts} rollouts{unread}: {readings.label_count} labels and {len(readings.sentences)} "
        f"sentences hold, {readings.dropped_labels} and {readings.dropped_sentences} were dropped"
    )
