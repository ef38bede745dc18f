"""Putting the page together, piece by piece."""

import base64
import hashlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from gymflow import __version__
from gymflow.analysis.page.diagnosed import diagnosed
from gymflow.analysis.page.gathering import Contents, Line, gather
from gymflow.analysis.page.markup import Markup, element, said
from gymflow.analysis.page.sections import KINDS, every, grouped, task_anchor, title
from gymflow.analysis.page.tables import Links
from gymflow.analysis.page.trajectories import packed
from gymflow.store import Store
from gymflow.store.files import Files, disk_error

MOST = 5000
"""Rollouts on a page; of a larger run those that passed are left out first."""


async def write_page(store: Store, run_id: str, path: Path | None = None) -> Path:
    """Write the page of a run in its current verdict set, by default as `reports/report.html` of the run. InputError where the disk
    refuses."""
    contents = await gather(store, run_id)
    target = path or contents.reader.layout.reports / "report.html"
    files = Files()
    try:
        files.make_folder(target.parent)
        files.replace_by(target, (piece.encode() for piece in _pieces(contents)))
    except OSError as error:
        raise disk_error(target, error) from error
    return target


def _pieces(contents: Contents) -> Iterator[str]:
    shown = _shown(contents.lines)
    links = Links(contents.reader.run_id, {line.rollout_id for line in shown})
    style, script = (resources.files(__package__).joinpath(name).read_text() for name in ("page.css", "page.js"))
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    yield '<!DOCTYPE html>\n<html lang="en"><head>'
    yield element("meta", charset="utf-8")
    yield element("meta", http_equiv="Content-Security-Policy", content=policy)
    yield element("meta", name="viewport", content="width=device-width, initial-scale=1")
    yield element("title", f"{contents.reader.document.name}: {contents.reader.run_id}")
    yield f"<style>{style}</style></head><body><main>"
    yield from every(contents, links)
    yield diagnosed(contents, links)
    yield from _rollouts(contents, shown)
    yield element("footer", f"gymflow {__version__}. Times are UTC. Store: {contents.profile.store}")
    yield f"</main><script>{script}</script></body></html>\n"


def _rollouts(contents: Contents, shown: list[Line]) -> Iterator[str]:
    yield "<section>"
    yield title("Rollouts")
    if len(shown) < len(contents.lines):
        yield element(
            "p", f"{len(shown):,} of {len(contents.lines):,} rollouts, those that did not pass first; gym show has all."
        )
    yield _tools(shown)
    stories = dict[str, str]()
    waiting = iter(
        packed(
            contents.reader,
            [line.plan_index for line in shown if line.outcome != "missing"],
            contents.verdict_set,
            contents.marks,
        )
    )
    several = len(contents.profile.lines) > 1
    for tasks in grouped(shown).values():
        for repeats in tasks:
            first = repeats[0]
            where = f"{first.environment}, {first.agent}: " if several else ""
            yield f'<div class="task" id="{task_anchor(first)}">'
            yield element("h3", said(f"{where}{first.task_id}"))
            for line in repeats:
                # Stories come in the order of the store; those that are early wait for their turn.
                while line.outcome != "missing" and line.rollout_id not in stories:
                    rollout_id, story = next(waiting)
                    stories[rollout_id] = story
                yield _rollout(line, stories.pop(line.rollout_id, None), contents)
            yield "</div>"
    yield "</section>"


def _rollout(line: Line, story: str | None, contents: Contents) -> Markup:
    reward = "" if line.reward is None else f"reward {line.reward:g}"
    found = [
        mark for mark in contents.marks.get(line.rollout_id, ()) if mark.kind == "finding" and mark.level != "info"
    ]
    label = contents.labels.get(line.rollout_id)
    answer = said(line.extracted_answer, 80) if line.extracted_answer is not None else None
    size = [
        f"{line.turns} turn{'' if line.turns == 1 else 's'}" if line.turns is not None else "",
        f"{line.completion_tokens:,} tokens" if line.completion_tokens else "",
    ]
    summary = element(
        "summary",
        element("span", class_=f"cell {line.kind}"),
        f"repeat {line.repeat}",
        element("span", f"#{line.plan_index}", class_="soft"),
        " ",
        element("span", ", ".join(filter(None, (KINDS[line.kind], reward)))),
        " ",
        element("span", answer, class_="answer") if answer else None,
        element("span", said(line.failure), class_="tag") if line.failure else None,
        element("span", label, class_="tag") if label else None,
        [element("span", name, class_="tag") for name in dict.fromkeys(mark.name for mark in found)],
        element("span", ", ".join(filter(None, size)), class_="soft"),
    )
    body = (
        Markup(f'<script type="text/plain">{story}</script>')
        if story
        else element("p", "Nothing is stored of it.", class_="soft")
    )
    return element("details", summary, body, id=line.rollout_id, class_="rollout", data_kind=line.kind)


def _tools(shown: list[Line]) -> Markup:
    kinds = [kind for kind in KINDS if any(line.kind == kind for line in shown)]
    options = [
        element("option", "all outcomes", value=""),
        *(element("option", KINDS[kind], value=kind) for kind in kinds),
    ]
    return element(
        "div",
        element(
            "input",
            id="words",
            type="search",
            placeholder="task, answer, label, finding …",
            aria_label="filter rollouts",
        ),
        element("select", options, id="kind", aria_label="outcome"),
        element("span", f"{len(shown)} of {len(shown)}", id="count", class_="soft"),
        element("noscript", "Trajectories are unpacked by the page's own script."),
        class_="tools",
    )


def _shown(lines: list[Line]) -> list[Line]:
    if len(lines) <= MOST:
        return lines
    chosen = {line.rollout_id for line in sorted(lines, key=lambda line: line.kind == "passed")[:MOST]}
    return [line for line in lines if line.rollout_id in chosen]


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
