"""Tables of the page, and links to rollouts on it."""

import re
from collections.abc import Container, Iterable, Sequence

from gymflow.analysis.page.markup import Child, Markup, element, escaped, joined


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Child]], *, numbers: Container[str] = (), words: Container[str] = ()
) -> Markup:
    """A table that scrolls by itself where it is too wide. Columns of `numbers` stand right, those of `words` may be long."""
    kinds = ["number" if name in numbers else "words" if name in words else None for name in columns]
    head = element(
        "tr", [element("th", name, class_="number" if name in numbers else None, scope="col") for name in columns]
    )
    body = [
        element("tr", [element("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)]) for row in rows
    ]
    return element("div", element("table", element("thead", head), element("tbody", body)), class_="wide")


class Links:
    """Links to the rollouts that are on the page; the ids of others stay text."""

    def __init__(self, run_id: str, shown: Container[str]) -> None:
        self._shown = shown
        self._ids = re.compile(re.escape(run_id) + r"-\d+")

    def to(self, rollout_id: str, turn: int | None = None, text: str | None = None, **attributes: str | None) -> Markup:
        """A link to a rollout, or to a turn of it. All are of one run, so that `#17` is enough of a name."""
        text = f"#{rollout_id.rpartition('-')[2]}" if text is None else text
        attributes = dict[str, str | None](title=rollout_id) | attributes
        if rollout_id not in self._shown:
            return element("span", text, **attributes)
        place = rollout_id if turn is None else f"{rollout_id}/turn-{turn}"
        return element("a", text, href=f"#{place}", **attributes)

    def within(self, text: str) -> Markup:
        """A text of ours in which rollout ids are links."""
        parts: list[Markup] = []
        at = 0
        for match in self._ids.finditer(text):
            parts += [escaped(text[at : match.start()]), self.to(match.group(), text=match.group())]
            at = match.end()
        return joined(parts, escaped(text[at:]))

    def several(self, rollout_ids: Iterable[str]) -> Markup:
        """Links one after the other."""
        return joined([joined(", " if number else None, self.to(one)) for number, one in enumerate(rollout_ids)])
