"""What changes a component's digest, and what must not."""

from pathlib import Path

import pytest

from gymflow.errors import InputError
from gymflow.registry import Registry
from tests.support.cases import fault
from tests.support.environments import VERIFIER, write_environment


def environment_digest(folder: Path, **changes: object) -> str:
    registry = Registry()
    entry = registry.environment(folder)
    return registry.environment_digest(entry, entry.manifest.model_copy(update=changes))


def test_the_environment_digest_is_pinned(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "pinned", files={"tasks.py": "A = 1\n"})
    assert environment_digest(folder) == "a8b74e66d13a9aa48d2b894b12b0db2b130c06414e4ce3c24ea01d09a545cbb7"


def test_the_verifier_digest_is_pinned(tmp_path: Path) -> None:
    (tmp_path / "verifiers").mkdir()
    (tmp_path / "verifiers" / "same.py").write_text(VERIFIER)
    assert (
        Registry([tmp_path]).verifier_digest("same")
        == "8bb9dffe1df0457d659eae16a2fc5aec04e3ff4f7f5fffb269e67dbf802eea63"
    )


@pytest.mark.parametrize(
    "file", ["README.md", "fixtures.jsonl", "test.jsonl", "verifier.py", ".notes", "__pycache__/x.pyc"]
)
def test_files_that_no_agent_sees_leave_the_environment_digest(tmp_path: Path, file: str) -> None:
    folder = write_environment(tmp_path / "env", files={"tasks.py": "A = 1\n"})
    before = environment_digest(folder)
    (folder / file).parent.mkdir(exist_ok=True)
    with (folder / file).open("a") as stream:
        stream.write("\n")
    assert environment_digest(folder) == before


@pytest.mark.parametrize("file", ["tasks.py", "world/map.json"])
def test_code_and_state_change_the_environment_digest(tmp_path: Path, file: str) -> None:
    folder = write_environment(tmp_path / "env", files={"tasks.py": "A = 1\n"})
    before = environment_digest(folder)
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text("{}")
    assert environment_digest(folder) != before


def test_a_renamed_file_changes_the_environment_digest(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "env", files={"tasks.py": "A = 1\n"})
    before = environment_digest(folder)
    (folder / "tasks.py").rename(folder / "task.py")
    assert environment_digest(folder) != before


def test_of_the_manifest_only_what_the_agent_sees_counts(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "env")
    before = environment_digest(folder)
    assert environment_digest(folder, description="Other words.", pass_threshold=0.5, tags=["x"]) == before
    assert environment_digest(folder, session_parameters={"size": 5}) != before
    assert environment_digest(folder, offers=["messages", "tools"]) != before


def test_the_place_of_an_environment_does_not_matter(tmp_path: Path) -> None:
    digests = {environment_digest(write_environment(tmp_path / parent / "env")) for parent in ("a", "b")}
    assert len(digests) == 1


def test_pv_verifier_changed(tmp_path: Path) -> None:
    assert fault("pv-verifier-changed") == {"edit": "verifier source"}
    registry = Registry()
    folder = write_environment(tmp_path / "env")
    before = registry.verifier_digest("./verifier.py", registry.environment(folder))
    (folder / "verifier.py").write_text(VERIFIER.replace("said == wanted", "wanted in said"))
    assert registry.verifier_digest("./verifier.py", registry.environment(folder)) != before


def test_included_files_and_declared_distributions_are_part_of_a_verifier(tmp_path: Path) -> None:
    (tmp_path / "verifiers").mkdir()
    lines = '    includes = ("words.txt",)\n    distributions = ("pydantic",)\n\n    class Parameters'
    (tmp_path / "verifiers" / "same.py").write_text(VERIFIER.replace("    class Parameters", lines))
    registry = Registry([tmp_path])
    with pytest.raises(InputError, match=r"includes 'words.txt', which does not exist"):
        registry.verifier_digest("same")
    (tmp_path / "verifiers" / "words.txt").write_text("one")
    before = registry.verifier_digest("same")
    (tmp_path / "verifiers" / "words.txt").write_text("two")
    assert registry.verifier_digest("same") != before


def test_included_folders_and_what_is_collected_are_in_the_digest(tmp_path: Path) -> None:
    write_environment(tmp_path / "office", files={"world.py": "A = 1\n"})
    folder = write_environment(tmp_path / "env", includes=["../office"])
    before = environment_digest(folder)
    assert environment_digest(folder, includes=[]) != before
    (tmp_path / "office" / "world.py").write_text("A = 2\n")
    assert environment_digest(folder) != before
    assert environment_digest(folder, collects=["patch"]) == environment_digest(folder)
    with_sandbox = environment_digest(folder, sandbox={"workdir": "/app"})
    assert environment_digest(folder, sandbox={"workdir": "/app"}, collects=["patch"]) != with_sandbox
    with pytest.raises(InputError, match=r"includes: there is no folder \.\./gone"):
        environment_digest(folder, includes=["../gone"])
