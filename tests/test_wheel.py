"""The built wheel, installed beside the library that is called `verifiers`: both import, and ours has everything it ships."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the real `verifiers`; their dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(folder / "dist"), str(ROOT)], check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    target = folder / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(wheel), "verifiers"], check=True)
    return target


def python(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python that sees the installed wheel instead of the checkout."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": str(installed), "GYMFLOW_STORE": str(installed / "store")},
        cwd=installed,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_both_packages_import_and_neither_takes_the_others_name(installed: Path) -> None:
    code = (
        "import gymflow, verifiers, gymflow.verifiers, gymflow.verifiers.mcqa\n"
        "print(gymflow.__file__); print(verifiers.__file__); print(gymflow.verifiers.mcqa.__file__)"
    )
    done = python(installed, "-c", code)
    assert done.returncode == 0, done.stderr
    places = [Path(line).relative_to(installed).parts for line in done.stdout.split()]
    assert [place[0] for place in places] == ["gymflow", "verifiers", "gymflow"]


def test_the_main_job_runs_from_the_wheel(installed: Path) -> None:
    listed = python(installed, "-m", "cli.main", "list", "environments", "--json")
    assert listed.returncode == 0 and "arithmetic" in listed.stdout, listed.stderr
    done = python(installed, "-m", "cli.main", "eval", "run", "arithmetic", "--limit", "2", "--inline", "--json")
    assert done.returncode == 0, done.stderr
    assert (installed / "store" / "runs").is_dir()
