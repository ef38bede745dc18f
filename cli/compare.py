"""`gym eval compare`: what changed between runs, and whether it is enough."""

import asyncio

from rich.console import Console

from cli.choosing import existing_store
from cli.recording import recording
from cli.sheets import put_sheets
from cli.terminal import one_line, print_json, results
from gymflow.analysis.comparison_sheets import comparison_sheets, headlines, warnings
from gymflow.contracts.comparison import Comparison
from gymflow.errors import GateFailed
from gymflow.store import Store


def compare_runs(
    base: str,
    candidates: list[str],
    *,
    by: list[str],
    gates: list[str],
    gates_file: str | None,
    effect: float | None,
    verdicts: str | None,
    store: str | None,
    inline: bool,
    json: bool,
) -> None:
    """Print the comparison; raises GateFailed after it where a gate does not hold."""
    place = existing_store(store)
    failed: GateFailed | None = None
    with recording(inline):
        from flows.compare import compare

        try:
            report = asyncio.run(compare(base, candidates, by, gates, gates_file, effect, verdicts, place.address))
        except GateFailed as error:
            failed = error
            report = _stored(place, base, (candidates or [base])[0])
    if json:
        print_json(report.model_dump(mode="json"))
    else:
        put_comparison(results(), report)
    if failed is not None:
        raise failed


def put_comparison(console: Console, report: Comparison) -> None:
    """What differs first, then the tables."""
    for line in headlines(report):
        console.print(one_line(line), style="italic", soft_wrap=True)
    for warning in warnings(report):
        console.print(one_line(warning), style="yellow", soft_wrap=True)
    console.print()
    put_sheets(console, comparison_sheets(report))
    folder = f"{report.store}/runs/{report.candidates[-1].run_id}/reports"
    console.print(f"\nreports   {folder}/comparison-{report.base_run_id}.*", soft_wrap=True)


def _stored(store: Store, base: str, candidate: str) -> Comparison:
    """The report that the flow put beside the run before its gate failed."""
    runs = [store.resolve_run_id(name.partition(":")[0]) for name in (base, candidate)]
    path = store.layout.run(runs[1]).reports / f"comparison-{runs[0]}.json"
    return Comparison.model_validate_json(path.read_bytes())
