"""Terminal tasks whose references pass in a real sandbox, whose cheats do not, and other Harbor folders beside them."""

import itertools
import re

import pytest
from gymflow.environments.terminal_tasks import harbor
from gymflow.environments.terminal_tasks.cheats import CHEATS
from gymflow.environments.terminal_tasks.tasks import generate

from gymflow.contracts.sandbox import sandbox_of
from gymflow.errors import InputError
from gymflow.sandboxes import open_sandbox
from gymflow.sandboxes.local.platform import bubblewrap
from gymflow.verifiers import Evidence, Verdict

pytestmark = pytest.mark.skipif(isinstance(bubblewrap(), str), reason=str(bubblewrap()))

NAMES = [row["task_id"] for row in itertools.chain(generate("test"), generate("train"))]
QUICK = ("file_modes", "release_archive")


def chosen(names):
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


async def played(bench, name: str, command: str) -> Verdict:
    """The verdict on an agent that ran one command."""
    environment = bench("terminal_tasks")
    task = next(one for split in ("test", "train") for one in environment.tasks(split) if one.task_id == name)
    spec = sandbox_of(environment.manifest.sandbox, task.sandbox)
    async with open_sandbox(spec) as sandbox:
        await sandbox.exec(command, timeout_s=60)
        left = await sandbox.get_archive(spec.workdir)
    evidence = Evidence(response={"output": []}, artifacts={"workspace": "d"}, read_artifact=lambda digest: left)
    fields = environment.verifier.task_fields.model_validate(
        {**task.verifier_fields, "sandbox": {**task.verifier_fields["sandbox"], "workdir": spec.workdir}}
    )
    return await environment.verifier.verify(fields, evidence)


def test_there_are_fifteen_tasks_and_the_splits_share_none():
    test, train = ([row["task_id"] for row in generate(split)] for split in ("test", "train"))
    assert len(test) >= 15 and train and not set(test) & set(train)
    with pytest.raises(ValueError, match="unknown split 'dev'"):
        next(generate("dev"))


@pytest.mark.parametrize("name", NAMES)
def test_no_row_shows_the_solution(name):
    [row] = (row for row in itertools.chain(generate("test"), generate("train")) if row["task_id"] == name)
    solution = (harbor.HERE / "tasks" / name / "solution" / "solve.sh").read_text()
    assert solution not in row["sandbox"]["files"].values()
    assert not any(path.startswith(("tests/", "solution/")) for path in row["sandbox"]["files"])


@pytest.mark.parametrize("name", chosen(NAMES))
async def test_the_reference_scores_one_and_doing_nothing_zero(bench, name):
    solution = (harbor.HERE / "tasks" / name / "solution" / "solve.sh").read_text()
    solved = await played(bench, name, solution)
    assert solved.reward == 1.0, solved.reason
    assert (await played(bench, name, "true")).reward == 0.0


@pytest.mark.parametrize(
    ("trick", "name"),
    [
        pytest.param(trick, name, marks=() if (trick, name) == ("rewards", "crontab") else pytest.mark.slow)
        for trick, name in itertools.product(CHEATS, ("crontab", "duplicate_files", "timesheet"))
    ],
)
async def test_cheats_score_nothing(bench, trick, name):
    verdict = await played(bench, name, CHEATS[trick])
    assert verdict.reward == 0.0
    assert (trick == "rewards") == bool(verdict.details.get("tamper_suspected"))


# --- other folders ---


def write_task(folder, **files):
    parts = {
        "task.toml": '[metadata]\ndifficulty = "hard"\ncategory = "ops"\n[environment]\nmemory = "2G"\ncpus = 2\n',
        "instruction.md": "Do it.\n",
        "environment/Dockerfile": "FROM debian\nWORKDIR /srv/box\nCOPY data/ ./data/\nCOPY a.txt /srv/box/b.txt\nENV MODE=x\n",
        "environment/data/one.csv": "1\n",
        "environment/a.txt": "a\n",
        "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
    }
    for name, text in {**parts, **files}.items():
        if text is not None:
            (folder / "one" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "one" / name).write_text(text)
    return folder


def test_a_harbor_folder_becomes_a_row(tmp_path):
    [row] = harbor.tasks(write_task(tmp_path))
    assert row["sandbox"] == {
        "workdir": "/srv/box",
        "files": {"data/one.csv": "1\n", "b.txt": "a\n"},
        "env": {"MODE": "x"},
        "limits": {"cpus": 2, "memory_mib": 2048},
    }
    assert row["tags"] == ["ops", "hard", "template-one"]
    assert (row["task_id"], row["instruction"], row["time_limit_s"]) == ("one", "Do it.", 600.0)


def test_an_image_stands_for_what_its_dockerfile_runs(tmp_path):
    runs = "FROM debian\nRUN apt-get install -y \\\n  jq\n"
    with pytest.raises(InputError, match=r"Dockerfile:2: RUN needs an image"):
        list(harbor.tasks(write_task(tmp_path, **{"environment/Dockerfile": runs})))
    named = '[environment]\ndocker_image = "registry/jq:1"\nmemory_mb = 64\n'
    [row] = harbor.tasks(write_task(tmp_path, **{"environment/Dockerfile": runs, "task.toml": named}))
    assert row["sandbox"] == {"workdir": "/app", "image": "registry/jq:1", "limits": {"memory_mib": 64}}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"tests/test.sh": None, "tests/other.sh": ""}, r"no test\.sh"),
        ({"instruction.md": None}, r"instruction\.md"),
        ({"task.toml": "x = "}, r"task\.toml"),
        ({"environment/Dockerfile": "WORKDIR /app\nCOPY gone /app"}, "there is no gone"),
        ({"environment/Dockerfile": "WORKDIR /app\nCOPY a.txt /etc/a.txt"}, "outside of the working directory"),
        ({"environment/Dockerfile": "FROM x\nCOPY"}, r"Dockerfile:2: COPY takes"),
        ({"environment/Dockerfile": "FROM x\nWORKDIR\n"}, r"Dockerfile:2: WORKDIR takes"),
        ({"environment/Dockerfile": "FROM x\nENV\n"}, r"Dockerfile:2: ENV takes"),
        ({"environment/Dockerfile": "FROM x\nENV A=1 B\n"}, r"Dockerfile:2: ENV takes"),
        ({"environment/Dockerfile": "FROM x\nENV A='x\n"}, r"Dockerfile:2: no closing quotation"),
        ({"environment/Dockerfile": "WORKDIR /\nCOPY a.txt ."}, "the working directory is /"),
        ({"environment/Dockerfile": "COPY --chmod=755 a.txt /app/"}, r"--chmod=755 needs an image"),
        ({"environment/Dockerfile": "COPY --from=b /x /app/"}, r"--from=b needs an image"),
        ({"task.toml": "metadata = 'x'"}, r"task\.toml: metadata: 'x' is no table"),
        ({"task.toml": "[environment]\ncpus = 'two'"}, r"task\.toml: cpus: 'two' is no number"),
        ({"task.toml": "[environment]\nmemory_mb = -5"}, r"task\.toml: memory_mb: -5"),
        ({"task.toml": "[environment]\ngpus = 1"}, r"task\.toml: environment\.gpus"),
        ({"task.toml": "[verifier]\ntimeout_sec = 'soon'"}, r"task\.toml: timeout_sec"),
        ({"task.toml": "[verifier]\nenv = {A = 'b'}"}, r"task\.toml: verifier\.env"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(tmp_path, files, message):
    with pytest.raises(InputError, match=message):
        list(harbor.tasks(write_task(tmp_path, **files)))


@pytest.mark.parametrize(
    "source",
    [
        "../../secret",
        "../solution/solve.sh",
        "/etc/hostname",
        "data/../../solution/solve.sh",
        "../*",
        "link",
        "li*",
        "linked/x",
        "data",
    ],
)
def test_nothing_but_the_folder_of_the_dockerfile_comes_to_the_agent(tmp_path, source):
    (tmp_path / "secret").write_text("of the host")
    folder = write_task(
        tmp_path, **{"environment/Dockerfile": f"COPY {source} /app/", "solution/solve.sh": "reference"}
    )
    (folder / "one/environment/link").symlink_to("../solution/solve.sh")
    (folder / "one/environment/linked").symlink_to("../..")
    (folder / "one/environment/data/up").symlink_to("/etc/hostname")
    with pytest.raises(InputError, match=r"lies outside|leads out|there is no"):
        list(harbor.tasks(folder))


@pytest.mark.parametrize("place", ["environment/x", "tests/x", "instruction.md", "task.toml", "environment/Dockerfile"])
@pytest.mark.parametrize("kind", ["file", "folder", "nothing"])
def test_a_link_out_of_a_task_is_refused_wherever_it_stands(tmp_path, place, kind):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("[metadata]")
    folder = write_task(
        tmp_path, **{"environment/Dockerfile": None if place == "environment/x" else "COPY a.txt /app/"}
    )
    link = folder / "one" / place
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / {"file": "outside/secret", "folder": "outside", "nothing": "outside/none"}[kind])
    with pytest.raises(InputError, match=re.escape(str(link))):
        harbor.row(folder / "one")


@pytest.mark.parametrize(
    ("lines", "files"),
    [
        ('COPY ["a.txt", "."]', {"a.txt": "a\n"}),
        ("COPY *.txt ./", {"a.txt": "a\n"}),
        ("COPY a.txt \\\n# why\n\n  b.txt", {"b.txt": "a\n"}),
        ("COPY . .", {"a.txt": "a\n", "data/one.csv": "1\n"}),
        ("COPY --chown=1000 a.txt /data/", None),
    ],
)
def test_dockerfiles_are_read_as_docker_reads_them(tmp_path, lines, files):
    text = f"FROM x\nWORKDIR srv\nWORKDIR box\n{lines}\n"
    folder = write_task(tmp_path, **{"environment/Dockerfile": text})
    if files is None:
        with pytest.raises(InputError, match="outside of the working directory"):
            harbor.row(folder / "one")
        return
    sandbox = harbor.row(folder / "one")["sandbox"]
    assert (sandbox["workdir"], sandbox["files"]) == ("/srv/box", files)


def test_a_program_among_the_files_is_refused_since_its_mode_would_be_lost(tmp_path):
    folder = write_task(tmp_path)
    (folder / "one/environment/data/one.csv").chmod(0o755)
    with pytest.raises(InputError, match=r"one\.csv is executable"):
        harbor.row(folder / "one")


def test_a_folder_without_tasks_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"no folder in it has a task\.toml"):
        next(harbor.tasks(tmp_path))
