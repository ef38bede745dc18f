"""What turns and tool calls cost, a turn: `python -m tests.perf.bench_turns [ROLLOUTS]`.

Rollouts of 20 turns with a tool call each are stored. Then turns are built from calls (as for a foreign harness), read as views, and
told as `gym show` and the page tell them; CPU milliseconds per turn are printed. The bound is 0.5.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gymflow.analysis.moments import moments
from gymflow.analysis.trajectory import turn_stories
from gymflow.contracts.trajectory import ToolCall
from gymflow.interop.ng_trajectory import history_of
from gymflow.interop.observing import Observer
from gymflow.store import Store, connect
from tests.analysis.conftest import Planter, Said, Sample

TURNS = 20
PARAGRAPH = "The tool says what it found, and the agent goes on from there. " * 8


def fill(store: Store, rollouts: int) -> None:
    """The run `bench`."""

    def called(turn: int) -> ToolCall:
        return ToolCall(
            call_id=f"c{turn}", name="look", arguments='{"at": 1}', output=PARAGRAPH, started_at=1.0, ended_at=1.5
        )

    turns = [Said(PARAGRAPH, tools=[called(turn)]) for turn in range(TURNS - 1)]
    Planter(store).run("bench", [[Sample([*turns, Said("The answer is (A).")])] for _ in range(rollouts)])


def cpu_ms(work: Callable[[], Any], turns: int) -> float:
    """CPU milliseconds per turn."""
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start) / turns


if __name__ == "__main__":
    rollouts = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with tempfile.TemporaryDirectory() as folder:
        place = Store(Path(folder) / "store")
        fill(place, rollouts)
        reader = place.run("bench")
        records = list(reader.records(range(rollouts)))

        def observed() -> None:
            for record in records:
                observer = Observer()
                for call in record.model_calls:
                    observer.add(
                        history_of(call, record.model_calls), call.output, model=call.model, started_at=call.started_at
                    )
                observer.trajectory()

        def viewed() -> None:
            with connect(place.root, runs=["bench"]) as connection:
                for view, column in (("turns", "tool_calls"), ("tool_calls", "length(output)")):
                    connection.execute(f"select sum({column}) from {view}").fetchall()

        for name, work in (
            ("built from calls", observed),
            ("read as views", viewed),
            ("told", lambda: [list(moments(record)) for record in records]),
            ("as questions and answers", lambda: [list(turn_stories(record)) for record in records]),
        ):
            print(f"{name:<26} {cpu_ms(work, rollouts * TURNS):.4f} ms CPU a turn")
