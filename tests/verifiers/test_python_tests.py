"""Hidden tests on Python code: right answers pass in every shape, cheats do not, and causes have their right names."""

import contextlib
import textwrap
import time
from pathlib import Path

import pytest
from gymflow.verifiers._code import fenced, solution
from gymflow.verifiers.python_tests import PythonTests

from gymflow.sandboxes.local.platform import bubblewrap
from gymflow.verifiers import VerifierError
from gymflow.verifiers import _python_run as run_module

pytestmark = pytest.mark.skipif(isinstance(bubblewrap(), str), reason=str(bubblewrap()))

QUICK = {"time_limit_s": 3.0, "memory_mib": 256}
CODE = run_module.code_files


def block(code: str) -> str:
    return f"Here you are:\n```python\n{textwrap.dedent(code).strip()}\n```"


@pytest.fixture
def judge(score, said):
    """`judge(code, tests, ...)` -> verdict."""

    def verdict(code, tests=("assert f(1) == 2",), parameters=None, **row):
        row = {"entry_point": "f", "tests": list(tests), **row}
        return score(PythonTests, row, said(block(code)), {**QUICK, **(parameters or {})})

    return verdict


# --- the reported faults of this area ---


PROMPT = "def f(x):\n"
FAULTS = {
    "cx-eq-override": ("    class E:\n        def __eq__(self,o): return True\n    return E()\n", 0.0, "failed"),
    "cx-frame-inject": (
        "    import sys\n    fr=sys._getframe()\n    while fr:\n        if 'result' in fr.f_locals:\n"
        "            fr.f_locals['result'].append('passed'); break\n        fr=fr.f_back\n    import os; os.kill(os.getpid(),9)\n",
        0.0,
        "crash",
    ),
    "cx-mem-bomb": ("    a=bytearray(8*10**9); return x+1\n", 0.0, "memory"),
    "cx-network": ("    import socket; socket.create_connection(('127.0.0.1',80),1); return x+1\n", 0.0, "failed"),
    "cx-os-exit": ("    import os; os._exit(0)\n", 0.0, "crash"),
    "cx-stdout-flood": ("    print('x'*10**8); return x+1\n", 1.0, None),
    "cx-swallow-timeout": (
        "    while True:\n        try:\n            while True: pass\n        except BaseException: pass\n",
        0.0,
        "timeout",
    ),
    "cx-top-level-exit": ("    return x+1\nraise SystemExit(0)\n", 0.0, "load"),
    "cx-background-child": ("    import subprocess; subprocess.Popen(['sleep','5001']); return x+1\n", 1.0, None),
    "cx-env-secrets": ("    import os; print(dict(os.environ)); return x+1\n", 1.0, None),
}


@pytest.mark.parametrize("case", FAULTS)
def test_reported_faults(case, score, said, monkeypatch):
    completion, reward, cause = FAULTS[case]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-host")
    row = {"entry_point": "f", "tests": ["assert f(1)==2"], "code_prompt": PROMPT}
    verdict = score(PythonTests, row, said(f"```python\n{completion}```"), QUICK)
    assert (verdict.reward, verdict.details["cause"]) == (reward, cause)
    stored = verdict.model_dump_json()
    assert "sk-of-the-host" not in stored and len(stored) < 1_000_000
    # What the kernel has killed with its group stays in sight until it is reaped.
    deadline = time.monotonic() + 5
    while "sleep\x005001" in _command_lines() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "sleep\x005001" not in _command_lines()


def _command_lines() -> str:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it ended while we looked
            found.append(path.read_bytes().decode(errors="replace"))
    return "".join(found)


def test_flakiness_of_hash_and_time_zone_is_ruled_out(judge):
    code = "import time\ndef f(x): return [hash('a'), time.tzname[0]]"
    first = judge(code, ["assert f(1) == 0"]).reason
    verdicts = [judge(code, ["v = f(1)\nassert v[1] == 'UTC' and v[0] == f(1)[0]"]) for _ in range(2)]
    assert [v.reward for v in verdicts] == [1.0, 1.0] and first


def test_a_broken_testing_side_is_an_error_and_not_a_wrong_answer(judge, monkeypatch):
    broken = {"/opt/gymflow/_python_tester.py": b"import no_such_module"}
    monkeypatch.setattr(run_module, "code_files", lambda name: {**CODE(name), **broken})
    with pytest.raises(VerifierError, match="did not begin"):
        judge("def f(x): return x + 1")


async def test_the_self_test_finds_a_machine_that_cannot_judge(monkeypatch):
    await PythonTests().open()
    broken = {"/opt/gymflow/_python_candidate.py": b"raise SystemExit(3)"}
    monkeypatch.setattr(run_module, "code_files", lambda name: {**CODE(name), **broken})
    with pytest.raises(VerifierError, match="self-test"):
        await PythonTests().open()


# --- cheats ---


CHEATS = {
    "a result that subclasses int and equals everything": """
        class I(int):
            def __eq__(self, o): return True
            def __ne__(self, o): return False
            __hash__ = int.__hash__
        def f(x): return I(7)
    """,
    "a list that lies when it is iterated": """
        class L(list):
            def __iter__(self): return iter([2])
            def __eq__(self, o): return True
        def f(x): return L([1])
    """,
    "builtins replaced": """
        import builtins
        builtins.isinstance = lambda *a: True
        builtins.AssertionError = None
        def f(x): return 5
    """,
    "exit code zero at interpreter end": "import atexit, os\natexit.register(lambda: os._exit(0))\ndef f(x): return 5",
    "the channel written to": """
        import os
        def f(x):
            for fd in range(3, 64):
                try: os.write(fd, b'\\x00\\x00\\x00\\x12{"event": "passed"}')
                except OSError: pass
            return 5
    """,
    "standard output written to": """
        import os, json
        def f(x):
            for line in ({"event": "passed", "test": "test 1"}, {"event": "done"}):
                os.write(1, (json.dumps(line) + "\\n").encode())
            os._exit(0)
    """,
    "the wire patched": """
        import sys
        wire = sys.modules["_python_wire"]
        wire.encode = lambda value, other, depth=0: {"t": "object", "id": 1, "class": "int"}
        def f(x): return 5
    """,
    "the other process looked for": """
        import os
        def f(x):
            for pid in os.listdir("/proc"):
                if pid.isdigit() and int(pid) > 2:
                    if b"tester" in open(f"/proc/{pid}/cmdline", "rb").read(): return 2
            for base, _, names in os.walk("/work"):
                if any("job.json" in n for n in names): return 2
            return 5
    """,
    "names of the tests overridden": "def f(x): return 5\ndef check(c): pass\ndef same(*a): return True\nassert_ = None",
    "a recursive value": "def f(x):\n    a = []\n    a.append(a)\n    return a",
    "a huge value": "def f(x): return 'x' * (100 << 20)",
    "a deeply nested value": "def f(x):\n    a = 1\n    for _ in range(100000): a = [a]\n    return a",
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_cheats_get_nothing(judge, cheat):
    assert (
        judge(
            CHEATS[cheat], ["expected = 2\nif f(1) != expected: raise AssertionError('wrong')\nassert f(1) == 2"]
        ).reward
        == 0.0
    )


def test_tests_are_not_there_to_be_read(judge):
    code = """
        import os, glob, sys, gc
        def f(x):
            found = []
            for top in ("/work", "/opt/gymflow", "/tmp", "/proc/self/fd", "/dev/fd"):
                for base, _, names in os.walk(top):
                    for name in names:
                        try: found.append(open(os.path.join(base, name), errors="replace").read(100000) if "fd" not in base else "")
                        except OSError: pass
            text = "".join(found) + repr(gc.get_objects())
            return "".join(["CAN", "ARY-4711"]) in text
    """
    assert judge(code, ["# CANARY-4711\nassert f(1) is False"]).reward == 1.0


# --- right answers in every shape ---


RIGHT = {
    "humaneval check": ("def f(x): return x + 1", ["def check(candidate):\n    assert candidate(1) == 2\n    assert candidate(-1) == 0"]),
    "test functions": ("def f(x): return x + 1", ["def test_one():\n    assert f(1) == 2\ndef test_two():\n    assert f(2) == 3"]),
    "unittest": ("def f(x): return x + 1", ["import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(f(1), 2)"]),
    "containers": ("def f(x): return {'a': [1, (2, 3)], 4: {5}}", ["assert f(1) == {'a': [1, (2, 3)], 4: {5}}"]),
    "odd numbers": (
        "def f(x): return [float('inf'), 10**400, 1j, -0.0, 2**53 + 1]",
        ["import math\nv = f(1)\nassert v[:3] == [math.inf, 10**400, 1j] and math.copysign(1, v[3]) == -1 and v[4] == 2**53 + 1"],
    ),
    "nan": ("def f(x): return float('nan')", ["assert f(1) != f(1)"]),
    "text": ("def f(x): return x[::-1] + '\\ud800é'", ["assert f('ab') == 'ba\\ud800é'"]),
    "bytes": ("def f(x): return x + b'\\xff'", ["assert f(b'\\x00') == b'\\x00\\xff'"]),
    "library types": (
        "from decimal import Decimal\nfrom datetime import *\nfrom collections import *\nfrom fractions import Fraction\n"
        "def f(x): return [Decimal('1.5'), date(2020, 1, 2), timedelta(1), Counter('aab'), deque([1]), Fraction(1, 3)]",
        ["from decimal import Decimal\nimport datetime as d\nfrom collections import deque\nfrom fractions import Fraction\n"
         "assert f(1) == [Decimal('1.5'), d.date(2020, 1, 2), d.timedelta(1), {'a': 2, 'b': 1}, deque([1]), Fraction(1, 3)]"],
    ),
    "named tuples": ("from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\ndef f(x): return P(x)", ["assert f(1) == (1,)"]),
    "argument changed in place": ("def f(x): x.sort(); x[0].append(9)", ["a = [[2], [1]]\ninner = a[1]\nassert f(a) is None\nassert a == [[1, 9], [2]]"]),
    "builtin exceptions": ("def f(x): raise ValueError('bad', x)", ["try:\n    f(3)\nexcept ValueError as e:\n    assert e.args == ('bad', 3)\nelse:\n    assert False"]),
    "own exceptions": (
        "class Odd(KeyError): pass\ndef f(x): raise Odd(x)",
        ["try:\n    f(3)\nexcept Odd as e:\n    assert isinstance(e, KeyError) and e.args == (3,)\nelse:\n    assert False"],
    ),
    "callbacks": ("def f(g, xs): return [g(x) for x in xs]", ["assert f(lambda x: x * 2, [1, 2]) == [2, 4]"]),
    "callbacks that raise": ("def f(g):\n    try: g()\n    except ZeroDivisionError: return 'caught'", ["assert f(lambda: 1 / 0) == 'caught'"]),
    "generators": ("def f(n):\n    for i in range(n): yield i * i", ["assert list(f(3)) == [0, 1, 4]\ng = f(2)\nassert next(g) == 0"]),
    "a generator given": ("def f(xs): return sum(xs)", ["assert f(x for x in [1, 2]) == 3"]),
    "a returned function": ("def f(n): return lambda x: x + n", ["assert f(2)(3) == 5"]),
    "keyword arguments": ("def f(a, *, b=1): return a - b", ["assert f(a=3, b=2) == 1"]),
    "printing": ("def f(x):\n    print('noise')\n    return 1", ["assert f(1) == 1"]),
    "a main guard": ("def f(x): return 1\nif __name__ == '__main__':\n    raise SystemExit(f(input()))", ["assert f(1) == 1"]),
    "recursion": ("def f(n): return 1 if n < 2 else n * f(n - 1)", ["assert f(20) == 2432902008176640000"]),
    "helpers used by the tests": ("def poly(xs, x): return sum(c * x**i for i, c in enumerate(xs))\ndef f(xs): return -xs[0] / xs[1]", ["assert poly([1, 2], f([1, 2])) == 0"]),
    "constants": ("LIMIT = 5\ndef f(x): return LIMIT", ["assert LIMIT == f(0)"]),
    "a module that the solution imports too": ("import math\ndef f(x): return math.sqrt(x)", ["import math\nassert math.isclose(f(2), 1.41421356, rel_tol=1e-6)"]),
}  # fmt: skip


@pytest.mark.parametrize("shape", RIGHT)
def test_right_answers_pass(judge, shape):
    code, tests = RIGHT[shape]
    verdict = judge(code, tests)
    assert verdict.reward == 1.0, verdict.reason


def test_classes_are_used_from_afar(judge):
    code = """
        from dataclasses import dataclass
        class Stack:
            def __init__(self, *items): self.items = list(items)
            def push(self, x): self.items.append(x); return self
            def pop(self): return self.items.pop()
            def __len__(self): return len(self.items)
            def __getitem__(self, i): return self.items[i]
            def __contains__(self, x): return x in self.items
            def __add__(self, o): return Stack(*self.items, *o.items)
            def __repr__(self): return f"Stack({self.items})"
            def __lt__(self, o): return len(self) < len(o)
            def __bool__(self): return bool(self.items)
        @dataclass
        class Point:
            x: int
            y: int = 0
        def f(x): return Point(x, 2)
    """
    tests = """
        s = Stack(1)
        assert s.push(2) is not None and len(s) == 2 and s[0] == 1 and 2 in s and 3 not in s
        assert list(s) == [1, 2] and repr(s) == "Stack([1, 2])" and isinstance(s, Stack) and not isinstance(s, Point)
        t = s + Stack(9)
        assert t.pop() == 9 and s < s + s and not Stack() and s.items == [1, 2] and (s + s).items == [1, 2, 1, 2]
        s.items = [5]
        assert s.pop() == 5
        try:
            Stack().pop()
        except IndexError:
            pass
        else:
            assert False
        assert f(1) == Point(1, 2) and f(1) != Point(1, 3) and f(1).x == 1
    """
    verdict = judge(code, [textwrap.dedent(tests)], own_operators=True)
    assert verdict.reward == 1.0, verdict.reason
    without = "s = Stack(1)\nassert s.push(2).items == [1, 2] and len(s) == 2 and 2 in s and 3 not in s and f(1).x == 1 and s == s"
    assert judge(code, [without]).reward == 1.0
    assert "own_operators" in judge(code, ["assert f(1) == Point(1, 2)"]).reason


def test_an_object_never_equals_a_value_nor_another_object_that_holds_something_else(judge):
    code = """
        class E:
            def __init__(self, v): self.v = v
            def __eq__(self, o): return True
            def __lt__(self, o): return True
            def __hash__(self): return 2
        def f(x): return E(x)
    """
    assert judge(code, ["assert f(1) == E(1)"], own_operators=True).reward == 1.0
    for test in ("assert f(1) == E(2)", "assert f(1) == 2", "assert 2 == f(1)", "assert f(1) in [2]", "assert f(1) < 2", "assert {2: 1}[f(1)]"):  # fmt: skip
        assert judge(code, [test]).reward == judge(code, [test], own_operators=True).reward == 0.0, test


ANY = """
class Any:
    def __sub__(self, other): return 0.0
    __rsub__ = __add__ = __radd__ = __mul__ = __truediv__ = __mod__ = __xor__ = __sub__
    def __abs__(self): return 0.0
    def __round__(self, *digits): return 0.0
    def __contains__(self, item): return True
    def __float__(self): return 0.0
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __eq__ = __lt__
    __hash__ = None
def f(*_): return Any()
"""
COMPARED = {
    "a difference": ("assert abs(f(2.5) - 7.25) < 1e-6", "7.25"),
    "a reflected difference": ("assert abs(7.25 - f(2.5)) < 1e-6", "7.25"),
    "the difference in a check": ("def check(candidate):\n    assert abs(candidate(2) - 3.5) < 1e-6", "3.5"),
    "unittest's almost equal": (
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertAlmostEqual(f(2), 3.75)", "3.75",
    ),
    "unittest's in": ("import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertIn(5, f(2))", "[5]"),
    "containment": ("assert 5 in f(2)", "iter([4, 5])"),
    "order": ("assert f(1) < f(2)", "x"),
    "a remainder": ("assert f(2) % 7 == 0.0", "14"),
    "a symmetric difference": ("assert not f(2) ^ {1}", "{1}"),
}  # fmt: skip


@pytest.mark.parametrize("form", COMPARED)
def test_an_object_does_not_decide_what_its_difference_to_the_expected_value_is(judge, form):
    test, right = COMPARED[form]
    assert judge(ANY, [test]).reward == 0.0
    assert judge(f"def f(x): return {right}", [test]).reward == 1.0


def test_arithmetic_with_the_tests_own_values_gives_no_value_even_where_classes_are_tested(judge):
    assert judge(ANY, ["assert abs(f(2.5) - 7.25) < 1e-6"], own_operators=True).reward == 0.0
    code = """
        class V:
            def __init__(self, x): self.x = x
            def __mul__(self, k): return V(self.x * k) if isinstance(k, int) else NotImplemented
        def f(x): return V(x)
    """
    tests = [
        "assert f(2) * 3 == V(6) and (f(2) * 3).x == 6",
        "try:\n    f(2) * 'a'\nexcept TypeError: pass\nelse: assert False",
    ]
    assert judge(code, tests, own_operators=True).reward == 1.0


def test_the_solution_puts_no_names_of_its_own_into_the_tests(judge):
    code = """
        import __main__
        fake = {"f": lambda *a: True, "abs": lambda *a: 0, "all": lambda *a: True, "isinstance": lambda *a: True}
        __main__.Server.do_names = lambda *a: fake
    """
    for test in (
        "assert abs(f(2) - 3.75) < 1e-6",
        "assert all(f(i) == i for i in (3, 4))",
        "assert isinstance(f(2), list)",
    ):
        assert judge(code, [test]).reward == 0.0, test
        assert judge("def f(x): return [x] if x == 2 else x", ["assert isinstance(f(2), list) and all(f(i) == i for i in (3, 4))"]).reward == 1.0  # fmt: skip


def test_helpers_of_the_prompt_are_the_tasks_own(judge):
    prompt = 'import math\n\ndef poly(xs, x):\n    return sum(c * math.pow(x, i) for i, c in enumerate(xs))\n\ndef f(xs):\n    """A zero."""\n'
    tests = ["assert abs(poly([1, 2], f([1, 2]))) < 1e-4"]
    assert judge("def poly(xs, x): return 0\ndef f(xs): return 5", tests, code_prompt=prompt).reward == 0.0
    assert judge("def f(xs): return -xs[0] / xs[1]", tests, code_prompt=prompt).reward == 1.0


def test_an_object_is_read_past_what_its_class_says_of_itself(judge):
    code = """
        class P:
            __dict__ = property(lambda self: {"a": 1})
            def __init__(self, *_): pass
        class S:
            __slots__ = ("v",)
            def __init__(self, v): self.v = v
            def __getattribute__(self, name): return 1
        def f(x): return P()
    """
    for test in ("assert f(1) == P(42)", "assert S(1) == S(2)"):
        assert judge(code, [test], own_operators=True).reward == 0.0, test
    assert judge(code, ["assert S(2) == S(2)"], own_operators=True).reward == 1.0


def test_a_value_that_does_not_fit_into_the_tests_is_the_solutions_doing(judge):
    verdict = judge("def f(x): return range(10**12)", ["assert set(f(3)) == {0, 1, 2}"])
    assert verdict.reward == 0.0 and verdict.details["cause"] in ("memory", "failed")


def test_a_solution_that_fails_in_the_setup_fails_the_test(judge):
    verdict = judge("def f(x): raise ValueError('no')", ["assert value == 2"], setup="value = f(1)")
    assert verdict.reward == 0.0 and "no" in verdict.reason
    assert judge("def f(x): return 2", ["assert value == 2"], setup="value = f(1)").reward == 1.0


# --- verdicts ---


def test_each_test_has_its_verdict_and_a_fraction_may_be_the_reward(judge):
    tests = ["assert f(1) == 2", "assert f(1) == 3", "assert f(2) == 3"]
    verdict = judge("def f(x): return x + 1", tests, {"reward": "fraction"})
    assert verdict.components == {"test 1": 1.0, "test 2": 0.0, "test 3": 1.0}
    assert verdict.reward == pytest.approx(2 / 3) and "test 2" in verdict.reason
    assert judge("def f(x): return x + 1", tests).reward == 0.0


def test_cases_are_tests_as_data(judge):
    cases = [
        {"arguments": [[1, 2]], "expected": [2, 1]},
        {"arguments": [[]], "keywords": {"default": 7}, "expected": 7},
        {"arguments": [[True]], "expected": [True]},
    ]
    code = "def f(xs, default=None): return tuple(reversed(xs)) or default"
    assert judge(code, (), cases=cases).reward == 1.0
    verdict = judge("def f(xs, default=None): return 1", (), cases=cases)
    assert verdict.reward == 0.0 and "expected [2, 1]" in verdict.reason
    assert judge("def f(x): return 0.1 + 0.2", (), cases=[{"arguments": [0], "expected": 0.3}]).reward == 0.0
    assert (
        judge("def f(x): return 0.1 + 0.2", (), {"tolerance": 1e-9}, cases=[{"arguments": [0], "expected": 0.3}]).reward
        == 1.0
    )
    assert judge("def f(x): return 1", (), cases=[{"arguments": [0], "expected": True}]).reward == 0.0
    near = [{"arguments": [5_000_004], "expected": 5_000_000}, {"arguments": [5_000_004.0], "expected": 5_000_000}]
    for case in near:
        assert judge("def f(x): return x", (), {"tolerance": 1e-6}, cases=[case]).reward == 0.0


def test_flaky_tests_are_found_by_repetition_and_not_counted(judge):
    code = "import os\ndef f(x): return os.urandom(1)[0]"
    verdict = judge(code, ["assert f(1) % 2 == 0", "assert f(1) < 256"], {"repeat": 12, "reward": "fraction"})
    assert verdict.details["flaky"] == ["test 1"] and verdict.masked and verdict.reward == 0.5


def test_an_answer_without_code_or_without_the_function_says_so(score, said, judge):
    row = {"entry_point": "f", "tests": ["assert f(1) == 2"]}
    assert "no code" in score(PythonTests, row, said(""), QUICK).reason
    assert "'f'" in judge("def g(x): return 2").reason
    assert "SyntaxError" in judge("def f(x) return 2").reason
    assert score(PythonTests, row, said("I do not know."), QUICK).reward == 0.0


def test_a_row_that_cannot_be_tested_is_refused():
    for row in ({}, {"cases": [{"expected": 1}]}, {"tests": ["assert f(1"]}):
        with pytest.raises(ValueError):
            PythonTests.task_fields.model_validate(row)


# --- the program in an answer ---


def test_the_block_that_defines_the_function_is_taken():
    text = "```python\ndef f(x):\n    return 1\n```\nUse it:\n```python\nprint(f(2))\n```\n```text\nout\n```"
    assert fenced(text, ("python",), defining="f") == "def f(x):\n    return 1"
    assert fenced(text, ("python",)) == "print(f(2))"
    assert fenced("~~~\ncode\n~~~", ("python",)) == "code"
    assert fenced("no block", ("python",)) is None
    assert fenced("```python\nnever closed\n", ("python",)) == "never closed"


def test_a_continuation_is_put_behind_its_prompt():
    prompt = 'import math\n\ndef f(x):\n    """Add one."""\n'
    assert solution("```python\n    return x + 1\n```", prompt=prompt, entry_point="f").endswith(
        '"""Add one."""\n    return x + 1'
    )
    whole = solution("```python\ndef f(x):\n    return math.pi\n```", prompt=prompt, entry_point="f")
    assert whole.startswith("import math") and whole.count("def f") == 1
