"""Programs that read and write: comparison, limits, compiled programs, published rows."""

import pytest
from gymflow.verifiers.stdin_stdout import StdinStdout, StdinStdoutTask, matches

from gymflow.sandboxes.local.platform import bubblewrap

pytestmark = pytest.mark.skipif(isinstance(bubblewrap(), str), reason=str(bubblewrap()))

ADD = {"tests": [{"input": "2 3\n", "output": "5\n"}, {"input": "10 -4", "output": "6"}]}


@pytest.fixture
def judge(score, said):
    def verdict(code, row=ADD, **parameters):
        return score(StdinStdout, row, said(f"```python\n{code}\n```"), parameters)

    return verdict


def test_a_right_program_passes_every_test(judge):
    verdict = judge("a, b = map(int, input().split())\nprint(a + b)")
    assert verdict.reward == 1.0 and verdict.components == {"test 1": 1.0, "test 2": 1.0}


def test_a_half_right_program_gets_nothing_or_its_fraction(judge):
    assert judge("print(5)").reward == 0.0
    verdict = judge("print(5)", reward="fraction")
    assert verdict.reward == 0.5 and verdict.reason == "test 2: wrong"


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("while True: pass", "timeout"),
        ("x = bytearray(1 << 30)\nprint(5)", "memory"),
        ("raise SystemExit(1)", "crash"),
        ("print(5)\nimport os; os.kill(os.getpid(), 9)", "crash"),
        ("while True: print('x' * 10000)", "output"),
        ("this is not Python", "crash"),
    ],
)
def test_causes_have_their_names(judge, code, cause):
    row = {"tests": [{"input": "", "output": "5"}]}
    assert judge(code, row, time_limit_s=2, memory_mib=128).details["cause"] in (
        cause,
        "timeout" if cause == "output" else cause,
    )


def test_expected_outputs_are_nowhere_in_the_sandbox(judge):
    code = "import os\nfor top in ('/work', '/tmp', '/opt/gymflow'):\n  for b, _, fs in os.walk(top):\n    for f in fs:\n      print(open(os.path.join(b, f)).read())"
    row = {"tests": [{"input": "", "output": "SECRET-17"}]}
    assert judge(code, row).reward == 0.0


def test_no_state_passes_from_test_to_test(judge):
    code = "import os\nn = len(os.listdir('/tmp'))\nopen('/tmp/x', 'w').write('1')\nprint(n)"
    assert judge(code, {"tests": [{"input": "", "output": "0"}] * 3}).reward == 1.0


def test_a_program_may_be_compiled_first(judge):
    parameters = {
        "file": "main.src",
        "compile": ["sh", "-c", "cp main.src main.sh"],
        "run": ["sh", "main.sh"],
        "languages": ["python"],
    }
    assert judge("read a b; echo $((a + b))", **parameters).reward == 1.0
    failing = {**parameters, "compile": ["sh", "-c", "echo broken; exit 1"]}
    assert judge("x", **failing).details["cause"] == "compile"


def test_comparison_by_bytes_lines_and_words():
    assert not matches("5", "5\n", "exact") and matches("5\n", "5\n", "exact")
    assert matches("a  \r\nb\n\n", "a\nb", "lines") and not matches(" a", "a", "lines")
    assert matches("0.3333", "0.33333333", "tokens", 1e-3) and matches("nan", "nan ", "tokens") is not False
    assert not matches("inf", "1", "tokens", 1.0) and not matches("1 2", "1", "tokens")


def test_words_are_numbers_only_as_they_are_written():
    assert not matches("9007199254740992", "9007199254740993", "tokens") and not matches("1_0", "10", "tokens")
    assert not matches("5000001", "5000000", "tokens", 1e-6) and not matches("5000001.0", "5000000", "tokens", 1e-6)
    assert (
        matches("2.9999999999", "3", "tokens", 1e-6)
        and matches("2.0", "2", "tokens")
        and matches("1e1", "10", "tokens")
    )
    for expected in ("inf", "-inf", "nan", "1e999"):
        assert not matches("5", expected, "tokens", 1e-6) and not matches(expected, "5", "tokens", 1e9), expected
        assert matches(expected, expected, "tokens", 1e-6)


def test_a_compiled_program_can_be_run(judge):
    script = "#!/bin/sh\nread a b\necho $((a + b))"
    build = ["sh", "-c", "mkdir bin && cp main.src bin/main && chmod +x bin/main"]
    parameters = {"file": "main.src", "compile": build, "run": ["bin/main"], "languages": ["python"]}
    assert judge(script, **parameters).reward == 1.0
    assert judge(script.replace("+", "-"), **parameters).reward == 0.0


def test_published_rows_are_read_as_they_are(peer):
    rows = [row["task"] for row in peer("code_gen") if row["task"]]
    assert rows and all(StdinStdoutTask.model_validate(row).tests for row in rows)


def test_published_rollouts_get_their_published_reward(peer, score):
    from gymflow.verifiers import Evidence

    for row in peer("code_gen"):
        if row["task"]:
            verdict = score(StdinStdout, row["task"], Evidence(response=row["rollout"]["response"]), {})
            assert verdict.reward == row["rollout"]["reward"]


async def test_the_self_test_runs_a_program():
    await StdinStdout().open()
