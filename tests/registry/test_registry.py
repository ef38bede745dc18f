"""Finding components in shipped, user and installed roots."""

import importlib
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from gymflow.environments import Session
from gymflow.errors import InputError
from gymflow.registry import Registry
from tests.support.environments import VERIFIER, write_environment

HARNESS = '''"""Says nothing."""

from gymflow.harnesses import Harness


class Mute(Harness):
    needs = frozenset({"messages", "shell"})
'''

SESSION = """
from gymflow.environments import Session, Snapshot

from .tasks import START


class Counter(Session):
    async def start(self):
        self.count = START
        return await super().start()

    async def snapshot(self):
        return Snapshot({"count": self.count})
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A user root with one of each kind."""
    folder = tmp_path / "mine"
    write_environment(
        folder / "environments" / "counting",
        files={"session.py": SESSION, "tasks.py": "START = 7\n"},
        session="session:Counter",
        verifier={"name": "same"},
    )
    (folder / "verifiers").mkdir()
    (folder / "verifiers" / "same.py").write_text(VERIFIER)
    (folder / "harnesses").mkdir()
    (folder / "harnesses" / "mute.py").write_text(HARNESS)
    return folder


def test_a_users_root_adds_its_components_to_the_shipped_ones(root: Path) -> None:
    registry = Registry([root])
    names = {summary.name for summary in registry.environments()}
    assert {"counting", "mcqa"} <= names
    assert {"mute", "simple"} <= registry.harness_names
    assert registry.verifier_class("same").task_fields.model_fields.keys() == {"answer"}


def test_roots_can_come_from_the_environment_variable(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYMFLOW_PATH", str(root))
    assert Registry().environment("counting").root == "mine"


def test_a_missing_root_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        Registry([tmp_path / "nowhere"])


async def test_a_session_imports_the_modules_beside_it(root: Path) -> None:
    registry = Registry([root])
    session_class = registry.session_class(registry.environment("counting"))
    session = session_class(None, seed=0)  # type: ignore[arg-type]
    await session.start()
    snapshot = await session.snapshot()
    assert snapshot is not None and snapshot.state == {"count": 7}


def test_an_environment_without_a_session_has_the_stateless_one() -> None:
    registry = Registry()
    assert registry.session_class(registry.environment("mcqa")) is Session


def test_plugin_classes_survive_pickling_also_into_another_process(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYMFLOW_PATH", str(root))
    cls = Registry().verifier_class("same")
    assert pickle.loads(pickle.dumps(cls)) is cls
    code = "import gymflow, pickle, sys; print(pickle.loads(sys.stdin.buffer.read()).__name__)"
    child = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(cls), capture_output=True, check=True)
    assert child.stdout.strip() == b"Same"


def test_shipped_plugins_are_modules_of_the_engines_packages() -> None:
    assert (
        Registry().harness_class("single_turn") is importlib.import_module("gymflow.harnesses.single_turn").SingleTurn
    )


def test_one_name_in_two_roots_is_refused_with_both_places_and_a_full_name_chooses(tmp_path: Path) -> None:
    first = write_environment(tmp_path / "one" / "environments" / "twin")
    second = write_environment(tmp_path / "two" / "environments" / "twin", description="The other one.")
    registry = Registry([tmp_path / "one", tmp_path / "two"])
    with pytest.raises(InputError) as caught:
        registry.environment("twin")
    assert str(first) in str(caught.value) and str(second) in str(caught.value)
    assert registry.environment("two:twin").manifest.description == "The other one."
    assert {summary.name for summary in registry.environments()} >= {"one:twin", "two:twin"}


def test_roots_of_the_same_folder_name_are_told_apart(tmp_path: Path) -> None:
    for parent in ("a", "b"):
        write_environment(tmp_path / parent / "plugins" / "environments" / "twin")
    registry = Registry([tmp_path / "a" / "plugins", tmp_path / "b" / "plugins"])
    assert [one.qualified for one in registry.found("environments") if one.name == "twin"] == [
        "b/plugins:twin",
        "plugins:twin",
    ]
    assert registry.environment("b/plugins:twin").folder.parts[-4] == "b"


def test_a_folder_is_named_by_its_path(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "loose")
    assert Registry().environment(folder).name == "loose"
    assert Registry().environment(f"{tmp_path}/loose").folder == folder


def test_a_folder_here_never_takes_the_place_of_a_component(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mcqa", "loose"):
        write_environment(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    registry = Registry()
    assert registry.environment("mcqa").root == "gymflow"
    assert registry.environment("./mcqa").folder == tmp_path / "mcqa"
    assert registry.environment("loose").folder == tmp_path / "loose"


@pytest.mark.parametrize(
    ("name", "meant"),
    [("arithmetc", "arithmetic"), ("MCQA ", "mcqa"), ("work_place", "workplace"), ("gymflow:mcq", "mcqa")],
)
def test_an_unknown_name_says_what_was_probably_meant(name: str, meant: str) -> None:
    with pytest.raises(InputError, match=f"did you mean {meant}"):
        Registry().environment(name)


@pytest.mark.parametrize("kind", ["harness", "verifier"])
def test_every_kind_of_name_has_a_did_you_mean(kind: str) -> None:
    registry = Registry()
    with pytest.raises(InputError, match="did you mean"):
        registry.harness_class("singel_turn") if kind == "harness" else registry.verifier_class("mcqq")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_library\n", "No module named 'no_such_library'"),
        ("def broken(:\n", "SyntaxError in line 1"),
        ("x = 1\n", "exactly one Verifier subclass; it defines none"),
        ("1 / 0\n", r"ZeroDivisionError.*bad\.py:1"),
    ],
)
def test_a_broken_plugin_is_listed_with_its_reason_and_the_others_work(root: Path, code: str, reason: str) -> None:
    (root / "verifiers" / "bad.py").write_text(code)
    listed = {summary.name: summary for summary in Registry([root]).verifiers()}
    assert listed["same"].broken is None
    assert listed["bad"].broken is not None
    with pytest.raises(InputError, match=reason):
        Registry([root]).verifier_class("bad")


def test_a_broken_manifest_is_listed_with_its_file_and_line(root: Path) -> None:
    folder = write_environment(root / "environments" / "wrong", licence=None, licens="MIT")
    listed = {summary.name: summary for summary in Registry([root]).environments()}
    assert listed["counting"].broken is None
    assert f"{folder}/environment.yaml:" in (listed["wrong"].broken or "")
    assert "did you mean licence" in (listed["wrong"].broken or "")


def test_a_manifest_must_carry_the_name_of_its_folder(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "folder", name="another")
    with pytest.raises(InputError, match=r"environment\.yaml:1: name: 'another'"):
        Registry().environment(folder)


def test_a_session_reference_that_leads_nowhere_names_the_field(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "loose", session="sesion:Counter", files={"session.py": SESSION})
    registry = Registry()
    with pytest.raises(InputError, match=r"session: there is no module 'sesion'.*did you mean session"):
        registry.session_class(registry.environment(folder))


def test_installed_packages_are_found_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "acme_gym"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "checks.py").write_text(VERIFIER)
    write_environment(package / "quiz", verifier={"name": "acme_same"})
    (package / "quiz" / "__init__.py").write_text("")
    info = tmp_path / "acme_gym-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-gym\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[gymflow.verifiers]\nacme_same = acme_gym.checks:Same\n[gymflow.environments]\nquiz = acme_gym.quiz\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry()
    assert registry.verifier_class("acme_same").__module__ == "acme_gym.checks"
    assert registry.environment("acme-gym:quiz").folder == package / "quiz"
