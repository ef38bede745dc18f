"""Tests in a workspace: fixes pass, everything that a clever agent leaves behind does not."""

import shutil

import pytest
from gymflow.verifiers._reports import ReportError, junit, tap
from gymflow.verifiers._workspace import PatchError, apply
from gymflow.verifiers.command import Command, CommandTask
from pydantic import ValidationError

from gymflow.sandboxes import archive
from gymflow.sandboxes.local.platform import bubblewrap
from gymflow.verifiers import Evidence, VerifierError

pytestmark = pytest.mark.skipif(isinstance(bubblewrap(), str), reason=str(bubblewrap()))

BROKEN = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"
HIDDEN = "from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n\ndef test_zero():\n    assert add(0, 0) == 0\n"
ROW = {"files": {"calc.py": BROKEN, "README": "calc"}, "tests": {"tests/test_calc.py": HIDDEN}}
ADD, ZERO = "tests/test_calc.py::test_add", "tests/test_calc.py::test_zero"


def left(files: dict[str, str], name: str = "workspace") -> Evidence:
    data = archive.pack(files) if name == "workspace" else files[name].encode()
    return Evidence(response={"output": []}, artifacts={name: "digest"}, read_artifact=lambda digest: data)


@pytest.fixture
def judge(score):
    def verdict(files, row=ROW, **parameters):
        return score(Command, row, left(files), parameters)

    return verdict


def test_a_fixed_workspace_passes_and_an_untouched_one_does_not(judge):
    verdict = judge({"calc.py": FIXED})
    assert verdict.reward == 1.0 and verdict.components == {ADD: 1.0, ZERO: 1.0}, verdict.reason
    untouched = judge(ROW["files"])
    assert untouched.reward == 0.0 and untouched.components == {ADD: 0.0, ZERO: 1.0}
    assert judge(ROW["files"], reward="fraction").reward == 0.5


def test_a_patch_is_judged_on_the_tasks_own_files(score, said):
    patch = "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"
    assert score(Command, ROW, left({"patch": patch}, "patch"), {}).reward == 1.0
    assert score(Command, ROW, said(f"Fixed:\n```diff\n{patch}```"), {}).reward == 1.0
    wrong = score(Command, ROW, said("```diff\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n```"), {})
    assert wrong.reward == 0.0 and "x.py" in wrong.reason
    assert "no `workspace`" in score(Command, ROW, said("I give up."), {}).reason


CONFTEST = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""
PATCHED_RUNNER = """
import _pytest.runner, _pytest.reports
original = _pytest.reports.TestReport.from_item_and_call
def passed(item, call):
    report = original(item, call)
    report.outcome = "passed"
    return report
_pytest.reports.TestReport.from_item_and_call = passed
_pytest.runner.TestReport.from_item_and_call = passed
def add(a, b): return a - b
"""
CHEATS = {
    "edited tests": {"tests/test_calc.py": "def test_add(): pass\ndef test_zero(): pass\n"},
    "a conftest beside the tests": {"tests/conftest.py": CONFTEST},
    "a conftest at the top": {"conftest.py": CONFTEST},
    "pytest.ini": {"pytest.ini": "[pytest]\naddopts = --collect-only\n"},
    "sitecustomize": {"sitecustomize.py": "import os\nos._exit(0)\n"},
    "a pytest of its own": {"pytest.py": "raise SystemExit(0)\n", "pytest/__main__.py": "", "_pytest/__init__.py": ""},
    "a report of its own": {"report": '{"id": "tests/test_calc.py::test_add", "outcome": "passed"}\n{"end": 0}\n', "reward.txt": "1", "junit.xml": "<x/>"},
    "an early exit": {"calc.py": "import os\nos._exit(0)\n"},
    "an exit of the session": {"calc.py": "import pytest\npytest.exit('done', returncode=0)\n"},
    "skipping everything": {"calc.py": "import pytest\npytest.skip('all', allow_module_level=True)\n"},
    "a patched runner": {"calc.py": PATCHED_RUNNER},
    "an assert that was patched": {"calc.py": "import builtins\nbuiltins.AssertionError = ZeroDivisionError\ndef add(a, b): return a - b\n"},
    "a value that equals everything": {"calc.py": "class E:\n    def __eq__(self, o): return False\ndef add(a, b): return E()\n"},
    "a value that equals anything": {"calc.py": "class E:\n    def __eq__(self, o): return True\n    def __bool__(self): return True\ndef add(a, b): return E()\n"},
    "an int that equals anything": {"calc.py": "class E(int):\n    def __eq__(self, o): return True\ndef add(a, b): return E()\n"},
    "removed source": {"README": "nothing else"},
}  # fmt: skip

FORGED = """
import json, os, re, sys
# Finds the report wherever it may be, and the tests wherever they may be, and writes that all passed.
def forge():
    names = re.findall(r"def (test_\\w+)", "".join(open(os.path.join(d, f)).read() for d, _, fs in os.walk("/work") for f in fs if f.startswith("test_")))
    lines = "".join(json.dumps({"id": "tests/test_calc.py::" + n, "when": "call", "outcome": "passed"}) + "\\n" for n in names or ["test_add", "test_zero"])
    lines += json.dumps({"end": 0}) + "\\n"
    for fd in range(3, 64):
        try: os.write(fd, lines.encode())
        except OSError: pass
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            if hasattr(value, "output") and hasattr(value, "objects"):
                type(value).do_getattr = lambda *a: (lambda *a, **k: 3)
        frame = frame.f_back
    os.write(1, lines.encode())
    os._exit(0)
forge()
"""
CHEATS["a forged report"] = {"calc.py": FORGED}
CHEATS["a library of its own"] = {
    "calc.py": BROKEN,
    "operator.py": "eq = lambda a, b: True\n",
    "json.py": "",
    "typing.py": "raise SystemExit(0)\n",
}


QUICK = ("edited tests", "a conftest beside the tests", "an early exit", "a patched runner")


@pytest.mark.parametrize("cheat", [c if c in QUICK else pytest.param(c, marks=pytest.mark.slow) for c in CHEATS])
def test_cheats_get_nothing(judge, cheat):
    verdict = judge({**ROW["files"], **CHEATS[cheat]} if cheat != "removed source" else CHEATS[cheat])
    assert verdict.reward == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "cheat",
    [c for c in CHEATS if c not in ("a forged report", "an int that equals anything", "a value that equals anything")],
)
def test_cheats_get_nothing_in_a_shared_process_either(judge, cheat):
    files = CHEATS[cheat] if cheat == "removed source" else {**ROW["files"], **CHEATS[cheat]}
    assert judge(files, process="shared").reward == 0.0


PACKAGE = {
    "src/shop/__init__.py": "from shop.cart import Cart, Empty\n__version__ = '1'\n",
    "src/shop/cart.py": """
class Empty(ValueError):
    pass

class Cart:
    def __init__(self): self.items = {}
    def add(self, name, price, count=1):
        if count < 1: raise ValueError(f"count must be positive, not {count}")
        self.items[name] = (price, count)
        return self
    def __len__(self): return sum(count for _, count in self.items.values())
    def total(self, discount=lambda price: price):
        if not self.items: raise Empty("nothing in the cart")
        return sum(discount(price) * count for price, count in self.items.values())
    def __iter__(self): return iter(self.items)
""",
    "src/shop/clock.py": "import time\ndef stamp(): return int(time.time())\ndef fill(items): items.append('filled')\n",
}
USES = """
import pytest
import shop
import shop.clock as clock
from shop import cart, Cart
from shop.cart import Empty

def test_objects_iterate_have_a_length_and_take_callbacks():
    one = Cart().add("tea", 3, count=2).add("cup", 5)
    assert list(one) == ["tea", "cup"] and len(one) == 3
    assert one.total() == 11 and one.total(lambda price: 2 * price) == 22
    assert isinstance(one, cart.Cart) and one.items == {"tea": (3, 2), "cup": (5, 1)}

def test_errors_keep_class_and_text():
    with pytest.raises(Empty, match="nothing"):
        Cart().total()
    with pytest.raises(ValueError, match="positive, not 0"):
        Cart().add("tea", 3, count=0)

def test_lists_are_filled_in_place_and_names_can_be_patched(monkeypatch):
    items = []
    clock.fill(items)
    assert items == ["filled"]
    monkeypatch.setattr(clock.time, "time", lambda: 7.5)
    assert clock.stamp() == 7

@pytest.mark.parametrize("name", ["cart", "clock"])
def test_modules(name):
    assert shop.__version__ == "1" and getattr(shop, name)
    with pytest.raises(ImportError):
        from shop import nothing
"""


def test_tests_apart_from_the_code_can_do_what_tests_do(judge):
    verdict = judge(PACKAGE, {"files": PACKAGE, "tests": {"checks/test_shop.py": USES}})
    assert verdict.reward == 1.0 and len(verdict.components) == 5, verdict.reason


COUNTS = """
class Count:
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
    def __contains__(self, item): return True
    def __iter__(self): return iter(())
    def __lt__(self, other): return True
    __eq__ = __gt__ = __lt__
    __hash__ = None
def add(a, b): return Count()
"""
MEASURED = """
import unittest
import pytest
from calc import *
from calc import add

class T(unittest.TestCase):
    def test_almost(self): self.assertAlmostEqual(add(1.5, 2), 3.5)
    def test_in(self): self.assertIn(3, [add(1, 2)])

def test_difference():
    assert abs(add(1.5, 2) - 3.5) < 1e-6

def test_approx():
    assert add(1.5, 2) == pytest.approx(3.5)

def test_order():
    assert add(1, 2) < add(2, 3)
"""


def test_objects_do_not_decide_what_they_differ_by(judge):
    row = {**ROW, "tests": {"tests/test_calc.py": MEASURED}}
    starred = '__all__ = ["abs", "pytest", "unittest", "add"]\nabs = lambda x: 0\npytest = unittest = None\n'
    right = judge({"calc.py": f"__all__ = ['add']\n{FIXED}"}, row)
    assert right.reward == 1.0, right.reason
    for cheat in (COUNTS, starred + BROKEN, starred + COUNTS):
        verdict = judge({"calc.py": cheat}, row, reward="fraction")
        assert set(verdict.components.values()) == {0.0} or verdict.components == {}, verdict.components


def test_operators_of_classes_are_tested_where_the_row_says_so(judge):
    files = {"money.py": "class Money:\n    def __init__(self, n): self.n = n\n    def __add__(self, o): return Money(self.n + o.n)\n    def __lt__(self, o): return self.n < o.n\n"}  # fmt: skip
    test = (
        "from money import Money\ndef test_sum():\n    assert Money(1) + Money(2) == Money(3) and Money(1) < Money(2)\n"
    )
    row = {"files": files, "tests": {"test_money.py": test}}
    assert "own_operators" in judge(files, row).reason
    assert judge(files, {**row, "own_operators": True}).reward == 1.0
    assert (
        judge({"money.py": files["money.py"].replace("+ o.n", "- o.n")}, {**row, "own_operators": True}).reward == 0.0
    )


SKIPPED = """
import calc, pytest
@pytest.mark.skipif(not getattr(calc, "ENABLED", True), reason="x")
def test_add(): assert calc.add(1, 2) == 3
@pytest.mark.xfail(getattr(calc, "KNOWN", False), reason="x")
def test_more(): assert calc.add(1, 3) == 4
def test_zero(): assert calc.add(0, 0) == 0
"""


def test_a_skip_of_a_hidden_test_is_no_pass(judge):
    row = {**ROW, "tests": {"tests/test_calc.py": SKIPPED}}
    assert judge({"calc.py": FIXED}, row).reward == 1.0
    verdict = judge({"calc.py": f"ENABLED = False\nKNOWN = True\n{BROKEN}"}, row)
    assert verdict.reward == 0.0 and sum(verdict.components.values()) == 1 and "skipped" in verdict.reason
    assert judge({"calc.py": f"ENABLED = False\n{FIXED}"}, {**row, "required": [ZERO]}).reward == 1.0


@pytest.mark.parametrize(
    "parameters", [{}, {"process": "shared"}, {"report": "exit_code", "command": "python3 -m pytest -q tests"}]
)
def test_a_file_in_a_folders_place_is_a_wrong_answer_and_no_fault(judge, parameters):
    for name in ("tests", "conftest.py/x"):
        files = {"calc.py": BROKEN, name: "I am in the way"}
        row = {**ROW, "files": {**ROW["files"], "conftest.py": ""}}
        verdict = judge(files, row, **parameters)
        assert verdict.reward == 0.0 and name in verdict.details["reset"]
        assert judge({**files, "calc.py": FIXED}, row, **parameters).reward == 1.0


def test_a_value_that_does_not_fit_into_the_tests_is_a_wrong_answer(judge):
    row = {
        **ROW,
        "tests": {"tests/test_calc.py": "from calc import add\ndef test_add(): assert set(add(1, 2)) == {3}\n"},
    }
    assert judge({"calc.py": "def add(a, b): return range(10**12)\n"}, row, time_limit_s=20).reward == 0.0
    assert judge({"calc.py": "def add(a, b): return [a + b]\n"}, row).reward == 1.0


def test_a_verdict_that_the_code_could_forge_says_so(judge):
    forged = {
        "exit_code": ("python3 -m pytest -q tests", "import os\nos._exit(0)\n"),
        "tap": ("python3 -m pytest -q -s tests", "import os\nos.write(1, b'1..1\\nok 1 - add\\n')\nos._exit(0)\n"),
        "junit": ("python3 -m pytest -q tests --junitxml={report}", "x = 1\n"),
    }
    for report, (command, code) in forged.items():
        assert judge({"calc.py": code}, report=report, command=command).details["shared_process"] is True
        assert "forge" in Command(Command.Parameters(report=report, command=command)).cautions()[0]
    assert "shared_process" not in judge({"calc.py": FIXED}).details and Command().cautions() == []
    assert Command(Command.Parameters(process="shared")).cautions()


def test_a_command_of_ones_own_finds_the_workspaces_modules(judge):
    parameters = {"report": "exit_code", "command": "python3 -m pytest -q tests"}
    assert judge({"calc.py": FIXED}, **parameters).reward == 1.0
    assert judge({"calc.py": BROKEN}, **parameters).reward == 0.0


def test_a_report_without_failures_of_a_command_that_failed_is_no_pass(judge):
    say = "echo 1..1; echo ok 1 - one; exit 3"
    assert "exit code 3" in judge({"calc.py": FIXED}, report="tap", command=say).reason


def test_the_code_does_not_see_the_tests(judge):
    peek = "import os\nseen = [f for _, _, fs in os.walk('/') for f in fs if f.startswith('test_hidden')]\n"
    row = {
        "files": {"calc.py": ""},
        "tests": {"test_hidden.py": "from calc import seen\ndef test_x(): assert seen == []\n"},
    }
    assert judge({"calc.py": peek}, row).reward == 1.0


def test_what_was_set_back_is_recorded(judge):
    verdict = judge(
        {
            "calc.py": FIXED,
            "tests/conftest.py": CONFTEST,
            "tests/test_calc.py": "def test_add(): pass",
            "pytest.ini": "",
        }
    )
    assert verdict.reward == 1.0
    assert verdict.details["reset"] == ["pytest.ini", "tests/conftest.py", "tests/test_calc.py"]
    shared = judge({"calc.py": PATCHED_RUNNER}, process="shared")
    assert shared.details == {"tampered": True, "shared_process": True} and shared.reward == 0.0


def test_protected_files_of_the_task_are_as_they_were(judge):
    row = {**ROW, "files": {**ROW["files"], "pyproject.toml": "[project]\n", "data.json": "3"},
           "tests": {"tests/test_calc.py": HIDDEN.replace("== 3", "== int(open('data.json').read())")}}  # fmt: skip
    cheat = {"calc.py": BROKEN, "data.json": "-1", "pyproject.toml": "[tool.pytest.ini_options]\n"}
    assert judge(cheat, row, protected=["data.json", "pyproject.toml"]).reward == 0.0
    assert judge({"calc.py": FIXED}, row, protected=["data.json"]).reward == 1.0


def test_required_tests_count_and_others_do_not(judge):
    assert judge(ROW["files"], {**ROW, "required": [ZERO]}).reward == 1.0
    verdict = judge({"calc.py": FIXED}, {**ROW, "required": [ADD, "tests/test_calc.py::test_gone"]})
    assert verdict.reward == 0.0 and "test_gone" in verdict.reason


def test_a_required_name_that_no_test_can_have_makes_the_task_ungradable():
    with pytest.raises(ValidationError, match=r"\[100%\]"):
        CommandTask.model_validate({**ROW, "required": ["test_a", "[100%]"]})
    CommandTask.model_validate({**ROW, "required": [ADD, "tests/test_x.py::T::test_y[a-1]", "pkg.Class::test_z"]})


def test_a_path_of_the_task_cannot_lead_outside():
    with pytest.raises(ValidationError, match="outside"):
        CommandTask.model_validate({"tests": {"../../etc/x": ""}})


def test_a_workspace_that_leads_outside_is_refused(score):
    import io
    import tarfile

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("../escape"))
    evidence = Evidence(response={}, artifacts={"workspace": "d"}, read_artifact=lambda d: buffer.getvalue())
    verdict = score(Command, ROW, evidence, {})
    assert verdict.reward == 0.0 and "outside" in verdict.reason


def test_a_loop_is_ended(judge):
    verdict = judge({"calc.py": "while True: pass"}, time_limit_s=3)
    assert verdict.reward == 0.0 and "3 s" in verdict.reason


def test_exit_code_junit_and_tap(judge):
    script = {"tests": {"check.sh": "grep -q 'a + b' calc.py"}, "files": ROW["files"]}
    assert judge({"calc.py": FIXED}, script, report="exit_code", command="sh check.sh").reward == 1.0
    assert judge({"calc.py": BROKEN}, script, report="exit_code", command="sh check.sh").reward == 0.0
    say = "echo 1..2; echo ok 1 - one; grep -q 'a + b' calc.py && echo ok 2 - two || echo not ok 2 - two"
    assert judge({"calc.py": FIXED}, script, report="tap", command=say).components == {"one": 1.0, "two": 1.0}
    assert judge({"calc.py": BROKEN}, script, report="tap", command=say).reward == 0.0
    assert (
        "no complete report" in judge({"calc.py": FIXED}, script, report="tap", command="echo 1..3; echo ok 1").reason
    )
    write = 'echo \'<testsuite><testcase classname="a" name="b"/></testsuite>\' > {report}'
    assert judge({"calc.py": FIXED}, script, report="junit", command=write).components == {"a::b": 1.0}
    assert judge({"calc.py": FIXED, "report.xml": "x"}, script, report="junit", command="true {report}").reward == 0.0


def test_a_test_command_that_is_not_there_is_an_error_and_not_a_wrong_answer(judge):
    with pytest.raises(VerifierError, match="not there"):
        judge({"calc.py": FIXED}, report="tap", command="no-such-runner")


def test_parameters_that_cannot_work_are_refused():
    for parameters in ({"report": "tap"}, {"report": "junit", "command": "pytest"}):
        with pytest.raises(ValidationError):
            Command.Parameters(**parameters)


async def test_the_self_test_tells_right_from_wrong():
    await Command().open()


# --- reports ---


def test_tap():
    text = "TAP version 14\n1..4\nok 1 - a\nnot ok 2 - b # TODO later\nok 3 - c # SKIP no net\nnot ok 4\n"
    assert tap(text) == {"a": True, "b": True, "c": False, "test 4": False}
    for broken in ("ok 1 - a\n", "1..2\nok 1\n", "1..1\nBail out! disk full\n"):
        with pytest.raises(ReportError):
            tap(broken)


def test_junit():
    xml = b'<testsuites><testsuite><testcase classname="m" name="a"/><testcase name="b"><failure/></testcase><testcase name="c"><skipped/></testcase></testsuite></testsuites>'
    assert junit(xml) == {"m::a": True, "b": False, "c": False}
    for broken in (
        b"",
        b"<x",
        b'<testsuite tests="2"><testcase name="a"/></testsuite>',
        b"<!DOCTYPE x [<!ENTITY a 'b'>]><x/>",
    ):
        with pytest.raises(ReportError):
            junit(broken)


# --- patches ---


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": "1\n2\n3\n"}, {"a": "1\nX\n3\n"}),
        ({"a": "x"}, {"a": "x\n"}),
        ({"a": "x\n"}, {"a": "x", "new/b": "b\n"}),
        (
            {"a": "".join(f"{n}\n" for n in range(40))},
            {"a": "".join(f"{n}\n" for n in range(40) if n not in (3, 30)) + "end\n"},
        ),
        ({"a": "gone\n", "b": "stays\n"}, {"b": "stays\n"}),
        ({"a": "é\n\n\nz\n"}, {"a": "é\n\ny\n\nz\n"}),
    ],
)
def test_patches_of_git_apply(before, after, tmp_path):
    import subprocess

    def git(*arguments):
        return subprocess.run(
            ["git", "-c", "core.quotepath=off", *arguments], cwd=tmp_path, capture_output=True, check=True
        ).stdout

    git("init", "-q")
    for files in (before, after):
        for path in tmp_path.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        git("add", "-A")
        if files is before:
            git("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "x")
    patch = git("diff", "--cached", "--no-renames").decode()
    assert apply(patch, {k: v.encode() for k, v in before.items()}) == {k: v.encode() for k, v in after.items()}


def test_a_hunk_whose_line_numbers_are_off_is_placed_by_its_lines():
    base = {"a": b"".join(b"%d\n" % n for n in range(20))}
    patch = "--- a/a\n+++ b/a\n@@ -2,3 +2,3 @@\n 9\n-10\n+ten\n 11\n"
    assert b"9\nten\n11" in apply(patch, base)["a"]
    with pytest.raises(PatchError, match="does not fit"):
        apply("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-nothing\n+x\n", base)
