"""Harbor-style tasks: the reward is what the hidden tests write, in a sandbox that the agent never saw."""

import io
import tarfile

import pytest
from gymflow.verifiers.terminal import Terminal, TerminalTask
from pydantic import ValidationError

from gymflow.sandboxes import archive
from gymflow.sandboxes.local.platform import bubblewrap
from gymflow.verifiers import Evidence, VerifierError

pytestmark = pytest.mark.skipif(isinstance(bubblewrap(), str), reason=str(bubblewrap()))

TEST = """
mkdir -p /logs/verifier
if [ "$(cat /app/sorted.txt 2>/dev/null)" = "$(sort /tests/given.txt)" ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""
ROW = {"files": {"given.txt": "b\na\n"}, "tests": {"test.sh": TEST, "given.txt": "b\na\n"}}


@pytest.fixture
def judge(score):
    def verdict(files, row=ROW):
        data = archive.pack(files)
        evidence = Evidence(response={}, artifacts={"workspace": "d"}, read_artifact=lambda digest: data)
        return score(Terminal, row, evidence, {"time_limit_s": 20.0})

    return verdict


def test_the_reward_is_what_the_tests_write(judge):
    assert judge({"given.txt": "b\na\n", "sorted.txt": "a\nb\n"}).reward == 1.0
    assert judge(ROW["files"]).reward == 0.0


def test_several_rewards_are_components(judge):
    row = {"tests": {"test.sh": 'echo \'{"reward": 0.5, "style": 1}\' > /logs/verifier/reward.json'}}
    verdict = judge({}, row)
    assert verdict.reward == 0.5 and verdict.components == {"reward": 0.5, "style": 1.0}
    assert judge({}, {"tests": {"test.sh": 'echo \'{"a": 0, "b": 1}\' > /logs/verifier/reward.json'}}).reward == 0.5


def test_a_reward_that_the_agent_planted_is_gone_and_recorded(judge):
    verdict = judge({"reward.json": '{"reward": 1}', "logs/verifier/reward.txt": "1", "tests/test.sh": "echo 1"})
    assert verdict.reward == 0.0 and verdict.details["tamper_suspected"] is True


FORGERIES = {
    "a reward.json, which would win": "open('/logs/verifier/reward.json', 'w').write('{\"reward\": 1}')",
    "a reward that is written again and again": """
import os, time
if os.fork() == 0:
    os.setsid()
    for fd in range(3): os.close(fd)
    while True:
        open("/logs/verifier/reward.txt", "w").write("1")
        time.sleep(0.001)
""",
    "a reward.json that is none": "open('/logs/verifier/reward.json', 'w').write('none')",
    "an end of the tests alone": """
import os
one = os.getppid()
while one > 2:
    parent = int(open(f"/proc/{one}/stat").read().rsplit(")", 1)[1].split()[1])
    if b"test.sh" in open(f"/proc/{one}/cmdline", "rb").read() and b"before" not in open(f"/proc/{one}/cmdline", "rb").read():
        os.kill(one, 9)
    one = parent
""",
    "an end of all processes": "import os\nos.system('kill -9 -1')",
    "a file for the folder": "import shutil\nshutil.rmtree('/logs/verifier')\nopen('/logs/verifier', 'w').write('1')",
}
RUNS = {
    "tests": {
        "test.sh": 'if [ "$(python3 /app/solve.py)" = 42 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt'
    }
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_programs_of_the_agent_that_the_tests_run_give_no_reward(judge, forgery):
    assert judge({"solve.py": FORGERIES[forgery] + "\nprint(0)\n"}, RUNS).reward == 0.0


def test_a_program_that_leaves_something_running_may_be_right(judge):
    leaving = "import subprocess\nsubprocess.Popen(['sleep', '5003'], stdout=subprocess.DEVNULL, start_new_session=True)\nprint(42)\n"
    assert judge({"solve.py": leaving}, RUNS).reward == 1.0


def test_a_disk_that_the_agent_filled_leaves_room_for_the_tests(judge):
    row = {**ROW, "sandbox": {"limits": {"disk_mib": 24}}}
    full = {"given.txt": "b\na\n", "big": b"x" * (23 << 20)}
    assert judge(full, row).reward == 0.0
    assert judge({**full, "sorted.txt": "a\nb\n"}, row).reward == 1.0
    assert judge({"big": b"x" * (200 << 20)}, row).reward == 0.0


def test_a_folder_where_the_task_has_a_file_is_taken_out(judge):
    row = {**ROW, "files": {**ROW["files"], "conftest.py": "x"}}
    verdict = judge({"sorted.txt": "a\nb\n", "conftest.py/x": "1"}, row)
    assert verdict.reward == 1.0 and verdict.details["reset"] == ["conftest.py/x", "conftest.py"]


def test_tests_that_write_no_reward_are_an_error_and_not_a_wrong_answer(judge):
    for script in (
        "exit 0",
        "echo x > /logs/verifier/reward.txt",
        "echo nan > /logs/verifier/reward.txt",
        "echo '{}' > /logs/verifier/reward.json",
    ):
        with pytest.raises(VerifierError):
            judge({}, {"tests": {"test.sh": script}})


def test_tests_without_an_end_are_ended(score):
    data = archive.pack({})
    evidence = Evidence(response={}, artifacts={"workspace": "d"}, read_artifact=lambda digest: data)
    verdict = score(Terminal, {"tests": {"test.sh": "sleep 60"}}, evidence, {"time_limit_s": 1.0})
    assert verdict.reward == 0.0 and "timeout" in verdict.reason


def test_a_task_without_test_sh_is_refused():
    with pytest.raises(ValidationError, match=r"test\.sh"):
        TerminalTask.model_validate({"tests": {"other.sh": ""}})


COMPARES = """
mkdir -p /logs/verifier
if cmp -s /app/out.txt /tests/expected.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


def left(*members):
    """A `workspace` artifact of (name, type, content or link's target)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind, value in members:
            member = tarfile.TarInfo(name)
            member.type, member.mode = kind, 0o755
            data = value if kind == tarfile.REGTYPE else b""
            member.size, member.linkname = len(data), value if kind == tarfile.SYMTYPE else ""
            tar.addfile(member, io.BytesIO(data))
    return Evidence(response={}, artifacts={"workspace": "d"}, read_artifact=lambda digest: buffer.getvalue())


FOLDER, LINK, FILE = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.REGTYPE
UP = [("s1", FOLDER, ""), ("s1/s2", FOLDER, ""), ("s1/s2/a", LINK, "../..")]


@pytest.mark.parametrize(
    "members",
    [
        [("out.txt", LINK, "s1/s2/a/../tests/expected.txt"), *UP],
        [*UP, ("out.txt", LINK, "s1/s2/a/../tests/expected.txt")],
        [("out.txt", LINK, "../tests/expected.txt")],
        [("out.txt", LINK, "/tests/expected.txt")],
        [("d", LINK, "../tests"), ("out.txt", LINK, "d/expected.txt")],
        [
            ("conftest.py", LINK, "s1/s2"),
            ("out.txt", LINK, "conftest.py/../../tests/expected.txt"),
            ("s1/s2", FOLDER, ""),
        ],
    ],
)
def test_a_link_to_the_hidden_tests_earns_nothing(score, members):
    row = {"tests": {"test.sh": COMPARES, "expected.txt": "the answer"}}
    assert score(Terminal, row, left(*members), {"time_limit_s": 20.0}).reward == 0.0


def test_a_link_inside_the_workspace_and_a_right_answer_behind_it_count(score):
    row = {"tests": {"test.sh": COMPARES, "expected.txt": "the answer"}}
    evidence = left(("d", FOLDER, ""), ("d/real", FILE, b"the answer"), ("e", LINK, "d"), ("out.txt", LINK, "e/real"))
    assert score(Terminal, row, evidence, {"time_limit_s": 20.0}).reward == 1.0


def test_a_link_does_not_take_the_place_of_what_is_protected(score):
    test = (
        'if [ -L /app/data ] || [ -L /app/data/new ] || [ "$(cat /app/data/x)" != ours ]; then echo 0; else echo 1; fi'
    )
    row = {
        "files": {"data/x": "ours"},
        "tests": {"test.sh": f"mkdir -p /logs/verifier; ({test}) > /logs/verifier/reward.txt"},
    }
    for members in (
        [("data", LINK, "mine"), ("mine", FOLDER, ""), ("mine/x", FILE, b"theirs")],
        [("data", FOLDER, ""), ("data/x", LINK, "../mine"), ("data/new", LINK, "../mine"), ("mine", FILE, b"theirs")],
    ):
        parameters = {"time_limit_s": 20.0, "protected": ["data/*"]}
        assert score(Terminal, row, left(*members), parameters).reward == 1.0
