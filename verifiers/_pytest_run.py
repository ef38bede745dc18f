"""One pytest session over a workspace: tests in one fresh sandbox, the workspace's code in another, a socket between them."""

import json
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from gymflow.verifiers._python_run import CANDIDATE, INSIDE, START_S, TESTER, code_files

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes import ExecResult, SandboxLimits, archive
from gymflow.sandboxes.local import LocalProvider
from gymflow.sandboxes.pool import pool
from gymflow.verifiers import VerifierError

KEEP_BYTES = 8 << 20
CODE = (".py", ".pyc", ".pth", ".so", ".pyd")
SOURCE_FOLDERS = ("src", "lib")


async def run_pytest(
    files: Mapping[str, bytes],
    base: Iterable[str],
    tests: Mapping[str, bytes],
    spec: SandboxSpec,
    time_limit_s: float,
    own_operators: bool,
) -> tuple[ExecResult, ExecResult | None]:
    """How the session ended, the lines of `_pytest_report` as its standard output, and how the process under test ended, if it did.

    `files`: the workspace without `tests`; `base`: paths that it had at the start. Raises VerifierError where the local provider
    cannot isolate.
    """
    place = pool("local")
    async with place.place() as provider:
        if not isinstance(provider, LocalProvider) or provider.isolation != "full":
            raise VerifierError("running tests on untrusted code needs full isolation from the local sandbox provider")
        ours, theirs = socket.socketpair()
        packed = archive.pack(files)
        own = modules(base, tests)
        job = {
            "archive": f"{INSIDE}/workspace.tar",
            "folder": spec.workdir,
            "modules": sorted(own),
            "time_limit_s": time_limit_s,
            "own_operators": own_operators,
            "added": sorted(modules(files, tests) - own - sys.stdlib_module_names),
        }
        beside = {path: data for path, data in files.items() if not path.endswith(CODE)}
        with ours, theirs:
            under_test = provider.one_shot(
                spec,
                ["python3", "-I", "-S", f"{INSIDE}/{CANDIDATE}"],
                files={f"{INSIDE}/workspace.tar": packed, **code_files(CANDIDATE)},
                channel=theirs.fileno(),
                keep_bytes=1 << 14,
            )
            # The trusted side needs no more room than a test session takes, whatever the workspace is allowed.
            testing = provider.one_shot(
                spec.model_copy(update={"limits": SandboxLimits(memory_mib=1024, processes=64, disk_mib=512)}),
                ["sh", "-c", _SESSION, "sh", spec.workdir, *_test_files(tests)],
                files={
                    f"{INSIDE}/tests.tar": archive.pack({**beside, **tests}),
                    f"{INSIDE}/job.json": json.dumps(job).encode(),
                    f"{INSIDE}/pytest.ini": f"[pytest]\npythonpath = {spec.workdir}\n".encode(),
                    **code_files(TESTER, "_pytest_remote.py", "_pytest_report.py"),
                },
                channel=ours.fileno(),
                keep_bytes=KEEP_BYTES,
            )
            async with under_test as candidate, testing as tester:
                # Each end must live in one process only, else nobody notices when the other has gone.
                ours.close()
                theirs.close()
                told = await tester.result(time_limit_s + START_S)
                ended = await candidate.ended(0.05)
    return told, ended


def modules(paths: Iterable[str], tests: Iterable[str]) -> set[str]:
    """First names of the modules in a workspace, those of the tests left out."""
    taken = {name for path in tests for name in (path.split("/")[0], PurePosixPath(path).stem)}
    found = set()
    for path in paths:
        parts = path.split("/")
        if parts[0] in SOURCE_FOLDERS and len(parts) > 1:
            parts = parts[1:]
        if path.endswith(".py") and parts[0] not in taken:
            found.add(parts[0].removesuffix(".py"))
    return {name for name in found - taken if name.isidentifier()}


def _test_files(tests: Mapping[str, bytes]) -> Sequence[str]:
    return sorted(path for path in tests if path.endswith(".py") and not path.endswith(("conftest.py", "__init__.py")))


_SESSION = f"""
exec 9>&1 1>&2
folder=$1; shift
mkdir -p "$folder" && cd "$folder" && tar -x -o -f {INSIDE}/tests.tar || exit 98
export PYTHONPATH={INSIDE} PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
export GYMFLOW_REPORT=9 GYMFLOW_WORKSPACE="$(cat {INSIDE}/job.json)"
exec python3 -s -m pytest -q -c {INSIDE}/pytest.ini --rootdir="$folder" -p _pytest_report -p _pytest_remote -p no:cacheprovider "$@"
"""
"""The report goes to standard output, all else to standard error."""
