"""What a person reads in the Prefect UI: reports as artifacts of the flow run. Outside of a flow run nothing happens."""

import base64
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from gymflow.analysis.sheets import Sheet
from tasks import in_flow_run


async def publish(
    key: str,
    sheets: Iterable[Sheet],
    plots: Iterable[Path] = (),
    *,
    lead: str = "",
    diffs: Mapping[str, str] | None = None,
) -> None:
    """One markdown artifact with all tables and plots (PNG). `key` names the series that the UI shows the latest of, such as
    `scorecard-mcqa`; the lines of `lead` stand before the tables, each a paragraph, and `diffs`, by title, behind them."""
    if not in_flow_run():
        return
    from prefect.artifacts import acreate_markdown_artifact

    await acreate_markdown_artifact("\n".join([markdown(sheets, lead, diffs), *map(_image, plots)]), key=slug(key))


def markdown(sheets: Iterable[Sheet], lead: str = "", diffs: Mapping[str, str] | None = None) -> str:
    """The tables, and the differences behind them, as GitHub's markdown."""
    parts = [f"{_escaped(line)}\n" for line in lead.splitlines()]
    for sheet in sheets:
        rule = "|".join("---:" if right else "---" for right in sheet.numbers)
        rows = [_row(sheet.columns), f"|{rule}|", *map(_row, sheet.rows)]
        parts.append(f"### {_escaped(sheet.title)}\n\n" + "\n".join(rows) + "\n")
    parts += [_diff(*titled) for titled in (diffs or {}).items()]
    return "\n".join(parts)


def slug(text: str) -> str:
    """Lower-case letters, digits and dashes: all that an artifact's key may have."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "report"


def _diff(title: str, text: str) -> str:
    # A fence is longer than every run of backticks in what it encloses.
    fence = "`" * max(3, 1 + max(map(len, re.findall("`*", text))))
    return f"### {_escaped(title)}\n\n{fence}diff\n{text.rstrip()}\n{fence}\n"


def _image(plot: Path) -> str:
    data = base64.b64encode(plot.read_bytes()).decode()
    return f"![{_escaped(plot.stem)}](data:image/png;base64,{data})\n"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_escaped, cells)) + " |"


def _escaped(text: str) -> str:
    """Names are the user's: they are shown as they are, not as markup."""
    return re.sub(r"([\\`*_{}<>#|\[\]!])", r"\\\1", " ".join(text.split()))
