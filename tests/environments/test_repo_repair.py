"""Repositories whose references pass, whose bugs do not, and whose visible tests notice nothing."""

import itertools

import pytest
from gymflow.environments.repo_repair.cheats import CHEATS, cheat
from gymflow.environments.repo_repair.repository import repositories
from gymflow.environments.repo_repair.tasks import generate

from gymflow.sandboxes import archive, patch
from gymflow.sandboxes.local.platform import bubblewrap
from gymflow.verifiers import Evidence

pytestmark = pytest.mark.skipif(isinstance(bubblewrap(), str), reason=str(bubblewrap()))

REPOSITORIES = repositories()
QUICK = ("slugs", "signals")


def chosen(names):
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


def workspace(files: dict[str, str]) -> Evidence:
    data = archive.pack(files)
    return Evidence(response={"output": []}, artifacts={"workspace": "d"}, read_artifact=lambda digest: data)


def task_of(bench, name: str):
    return next(one for split in ("test", "train") for one in bench.tasks(split) if one.task_id == name)


async def reward(bench, name: str, evidence: Evidence) -> float:
    fields = bench.verifier.task_fields.model_validate(task_of(bench, name).verifier_fields)
    verdict = await bench.verifier.verify(fields, evidence)
    return verdict.reward


def test_there_are_twenty_tasks_and_the_splits_share_none():
    test, train = ([row["task_id"] for row in generate(split)] for split in ("test", "train"))
    assert len(test) >= 20 and train and not set(test) & set(train)
    with pytest.raises(ValueError, match="unknown split 'dev'"):
        next(generate("dev"))


@pytest.mark.parametrize("name", REPOSITORIES)
def test_a_repository_has_an_issue_several_modules_and_tests_of_both_kinds(name):
    one = REPOSITORIES[name]
    assert len([path for path in one.files if path.startswith(f"{name}/")]) >= 3
    assert any(path.startswith("tests/test_") for path in one.files) and "README.md" in one.files
    assert all(path.startswith("checks/test_") for path in one.tests)
    assert len(one.issue) > 80
    assert one.broken() != one.files
    for path, text in {**one.files, **one.broken(), **one.tests}.items():
        if path.endswith(".py"):
            compile(text, path, "exec")


@pytest.mark.parametrize("name", REPOSITORIES)
def test_no_row_shows_the_answer(name):
    [row] = (row for row in itertools.chain(generate("test"), generate("train")) if row["task_id"] == name)
    assert not any(path.startswith("checks/") for path in row["sandbox"]["files"])
    assert row["sandbox"]["files"] == REPOSITORIES[name].broken()


@pytest.mark.parametrize("name", chosen(REPOSITORIES))
async def test_the_reference_scores_one_and_doing_nothing_zero(bench, name):
    environment, one = bench("repo_repair"), REPOSITORIES[name]
    solved = {path: text.encode() for path, text in one.files.items()}
    made = patch.diff({path: text.encode() for path, text in one.broken().items()}, solved)
    answer = Evidence(response={"output": []}, artifacts={"patch": "d"}, read_artifact=lambda digest: made)
    assert await reward(environment, name, answer) == 1.0
    nothing = Evidence(response={"output": []}, artifacts={"patch": "d"}, read_artifact=lambda digest: b"")
    assert await reward(environment, name, nothing) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", REPOSITORIES)
async def test_the_visible_tests_pass_with_the_bug_and_without(bench, name):
    environment, one = bench("repo_repair"), REPOSITORIES[name]
    visible = {path: text for path, text in one.files.items() if path.startswith("tests/")}
    for files in (one.files, one.broken()):
        fields = environment.verifier.task_fields.model_validate({"files": files, "tests": visible})
        assert (await environment.verifier.verify(fields, workspace(files))).reward == 1.0


@pytest.mark.parametrize(
    ("trick", "name"),
    [
        pytest.param(trick, name, marks=() if (trick, name) in {("report", "slugs"), ("always", "spans")} else pytest.mark.slow)
        for trick, name in itertools.product(CHEATS, ("slugs", "spans", "letters"))
    ],
)  # fmt: skip
async def test_cheats_score_nothing(bench, trick, name):
    files = cheat(trick, REPOSITORIES[name].broken())
    assert await reward(bench("repo_repair"), name, workspace(files)) == 0.0
