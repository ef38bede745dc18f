"""Tool calls within a run: a bad one is answered, the others of its turn run, the rollout goes on, and all are counted."""

from tests.support.runs import scripted


async def test_bad_calls_are_answered_and_the_rollout_goes_on(run, rows):  # mc-unknown-tool, mc-tool-args-not-object
    calls = [
        {"name": "nope", "arguments": {}},
        {"name": "calculate", "arguments": "[1, 2]"},
        {"name": "calculate", "arguments": {"a": 2, "op": "+", "b": 3}},
    ]
    config = scripted(
        environments=[{"name": "arithmetic", "split": "tool", "limit": 1}],
        rules=[{"turn": 0, "tool_calls": calls}, {"turn": 1, "text": "Answer: 5"}],
    )
    card = await run(config)
    assert card.lines[0].scored == 1
    found = rows("select name, status, output from tool_calls order by call_id")
    assert [(name, status) for name, status, _ in found] == [
        ("nope", "unknown_tool"),
        ("calculate", "malformed"),
        ("calculate", "ok"),
    ]
    assert "Tools: calculate" in found[0][2] and "must be a JSON object" in found[1][2] and found[2][2] == "5"
    assert rows("select turns, tool_calls, stop_reason from rollouts") == [(2, 3, "finished")]
