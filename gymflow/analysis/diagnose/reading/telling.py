"""A rollout as it is given to a model to read: every text under the locator by which it can be cited."""

from collections.abc import Iterator, Mapping
from typing import Any

from gymflow import keys
from gymflow.analysis.moments import moments, said, tools
from gymflow.analysis.wording import json_text, parts
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.verdict import VerdictRecord

MOST = 48_000
"""Characters of a record; the middle of a longer one is left out, and said to be."""
LONGEST = 4_000
"""Characters of one text; of a longer one the middle is left out."""


def told(record: RolloutRecord, verdict: VerdictRecord | None, task: Mapping[str, Any]) -> str:
    """The record between two lines with a marker. The marker is a digest of what it encloses: nothing within can foresee it."""
    lines = [line for line in _lines(record, verdict, task) if line]
    text = _shortened("\n".join(lines), MOST)
    marker = keys.digest([record.rollout.rollout_id, text])[:24]
    return f"==== {marker}\n{text}\n==== {marker}"


def _lines(record: RolloutRecord, verdict: VerdictRecord | None, task: Mapping[str, Any]) -> Iterator[str]:
    rollout = record.rollout
    fields = {name: value for name, value in task.items() if name != "responses_create_params"}
    yield f"the task's fields, the verifier's among them: {_shortened(json_text(fields), LONGEST)}"
    if rollout.stop_reason is not None:
        yield f"[rollout/stop_reason] {rollout.stop_reason.value}"
    if verdict is not None:
        yield f"[verdict/passed] {str(verdict.passed).lower()}"
        if verdict.verdict is not None:
            given = verdict.verdict
            yield f"[verdict/extracted_answer] {given.extracted_answer}" if given.extracted_answer is not None else ""
            yield f"[verdict/reason] {_shortened(given.reason, LONGEST)}" if given.reason else ""
    for moment in moments(record):
        yield f"-- {moment.title}"
        for call in moment.calls:
            for item in moment.unseen(call):
                for who, text in parts(item):
                    yield f"{who} (cannot be cited): {_shortened(text, LONGEST)}"
            for who, text in said(call):
                if who != "call":
                    yield f"[calls/{call.index}/output] {who}: {_shortened(text, LONGEST)}"
            if call.finish_reason is not None:
                yield f"[calls/{call.index}/finish_reason] {call.finish_reason}"
        for position, tool in enumerate(tools(moment.turn)):
            place = f"turns/{moment.index}/tool_calls/{position}"
            yield f"[{place}/arguments] {tool.name}: {_shortened(tool.arguments, LONGEST)}"
            yield f"[{place}/status] {tool.status}"
            if tool.output is not None:
                yield f"[{place}/output] {_shortened(tool.output, LONGEST)}"


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
