r"""Tests in a workspace: the files that an agent left, or a patch, judged by a command in a fresh sandbox.

    row:      {"files": {"calc.py": "def add(a, b): return a - b"},
               "tests": {"tests/test_calc.py": "from calc import add\ndef test_add(): assert add(1, 2) == 3"}}
    evidence: artifact `workspace` (a tar archive) or `patch`, or a diff in the answer

Before the tests run, files that a runner obeys (conftest.py, pytest.ini, sitecustomize.py, …) and protected files are as they
were at the start, and what looks like a verdict is gone. With `report: pytest` the tests run in one sandbox and the workspace's
code in another: an imported module is looked up there, plain values come back, and what they are compared with stays here. Tests
that cannot do with that (they patch the code's insides, capture its output, hand it files) need `process: shared`; then each
hidden test file gets tests of ours that must fail, so that a runner that was patched to pass everything is found out, but the
verdict is made in the process under test, and says so.

Only `pytest` with separate processes makes its verdict out of reach. An exit code, TAP or JUnit of a command that loads the workspace's
code can be forged by it (`os._exit(0)` at import), and no check out here can tell: such verdicts carry `shared_process`. They are for
commands that only look at the workspace, or that run its programs as processes of their own and judge what these write.
"""

import json
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from gymflow.verifiers._pytest_run import run_pytest
from gymflow.verifiers._reports import OutOfTime, ReportError, junit, tap
from gymflow.verifiers._workspace import NoWorkspace, PatchError, Workspace, guarded, workspace_of
from pydantic import BaseModel, Field, model_validator

from gymflow.sandboxes import ExecResult, SandboxLimits, SandboxSpec, TooLarge, UnsafePath, archive, open_sandbox
from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier, VerifierError

Report = Literal["exit_code", "pytest", "junit", "tap"]
Process = Literal["separate", "shared"]

OUT = "/opt/gymflow/out"
PLUGIN = Path(__file__).with_name("_pytest_report.py")
KEEP_BYTES = 8 << 20

_TEST_ID = re.compile(r"^[\w./\[\]\-:, ()+=<>'\"@%#*&!?|~^$\\]*[A-Za-z_]\w*(?:\[.*\])?$", re.DOTALL)
"""A name that a test can have at all; `[100%]` and `====` out of a log cannot be one."""


class CommandTask(BaseModel):
    """`files`: the workspace at the start. `tests`: hidden files, put in before the command. `required`: tests that must pass;
    default: all that are reported, and a skipped one has not passed. `own_operators`: with tests in a process of their own, whether
    they apply `==`, `<` or `+` to objects of the workspace's classes, which these then answer as they like."""

    files: dict[str, str] = Field(default_factory=dict)
    tests: dict[str, str] = Field(default_factory=dict)
    required: list[str] | None = None
    own_operators: bool = False

    @model_validator(mode="after")
    def _gradable(self) -> "CommandTask":
        for path in (*self.files, *self.tests):
            archive.safe_name(path)
        impossible = [name for name in self.required or () if not _TEST_ID.match(name)]
        if impossible:
            raise ValueError(
                f"no test can have the name {', '.join(map(repr, impossible))}: this task cannot be graded"
            )
        return self


class Unusable(Exception):
    """The workspace is none that a sandbox takes."""


class Command(Verifier[CommandTask]):
    """Reward 1.0 when all required tests pass (or the command exits with zero), else 0.0; components hold each test's."""

    needs = frozenset({"artifacts", "sandbox"})
    includes = (
        "_code.py", "_pytest_remote.py", "_pytest_report.py", "_pytest_run.py", "_python_candidate.py", "_python_run.py",
        "_python_tester.py", "_python_wire.py", "_reports.py", "_workspace.py",
    )  # fmt: skip

    class Parameters(BaseParameters):
        """`command` runs in the workspace; `{report}` in it is where a JUnit file must go. `pytest` has its own command."""

        report: Report = "pytest"
        process: Process = Field("separate", description="Of `report: pytest`: whether tests and workspace share one.")
        command: str | None = None
        protected: list[str] = Field(default_factory=lambda: ["test_*.py", "*_test.py"], description="Globs of files that are the task's.")  # fmt: skip
        sandbox: SandboxSpec = Field(default_factory=lambda: SandboxSpec())
        time_limit_s: float = Field(120.0, gt=0)
        memory_mib: int = Field(1024, ge=64)
        reward: Literal["all", "fraction"] = "all"

        @model_validator(mode="after")
        def _has_command(self) -> "Command.Parameters":
            if self.report != "pytest" and not self.command:
                raise ValueError(f"report `{self.report}` needs a `command`")
            if self.report == "pytest" and self.process == "separate" and self.sandbox.provider != "local":
                raise ValueError("`process: separate` needs the local provider; set `process: shared` for another")
            if self.report == "junit" and "{report}" not in (self.command or ""):
                raise ValueError("the command must write its JUnit file to `{report}`")
            return self

        @property
        def shares_process(self) -> bool:
            """Whether the workspace's code may run where the verdict is made."""
            return self.report != "pytest" or self.process == "shared"

    def cautions(self) -> list[str]:
        """See Verifier."""
        if not self.parameters.shares_process:
            return []
        return [
            f"verifier command with report `{self.parameters.report}`: code of the workspace that the command loads can forge the verdict; "
            "`report: pytest` with `process: separate` keeps them apart"
        ]

    async def open(self) -> None:
        """Prove that a right and a wrong workspace are told apart here."""
        if self.parameters.report == "pytest":
            row = CommandTask(
                tests={"test_self.py": "from subject import one\ndef test_one():\n    assert one() == 1\n"}
            )
            for value, wanted in ((1, 1.0), (2, 0.0)):
                verdict = await self._judge(row, {"subject.py": f"def one(): return {value}".encode()})
                if verdict.reward != wanted:
                    raise VerifierError(f"the self-test failed: {verdict.reason or 'a wrong workspace passed'}")

    async def verify(self, task: CommandTask, evidence: Evidence) -> Verdict:
        base = _bytes(task.files)
        try:
            left = workspace_of(evidence, base)
        except (NoWorkspace, PatchError, UnsafePath, TooLarge) as error:
            return Verdict(reward=0.0, reason=str(error))
        return await self._judge(task, left)

    async def _judge(self, task: CommandTask, left: Mapping[str, bytes]) -> Verdict:
        if self.parameters.report == "pytest" and self.parameters.process == "separate":
            return await self._judge_apart(task, left)
        canaries = _canaries(task.tests) if self.parameters.report == "pytest" else {}
        tests = {path: text + canaries.get(path, "") for path, text in task.tests.items()}
        work = guarded(left, _bytes(task.files), _bytes(tests), self.parameters.protected)
        try:
            result, told = await self._run(work, sorted(path for path in tests if path.endswith(".py")))
        except Unusable as error:
            return Verdict(reward=0.0, reason=str(error))
        if self.parameters.report == "exit_code":
            return self._verdict(task, {}, work, result, passed=result.ok)
        if result.outcome != "exited":
            return self._verdict(task, {}, work, result, passed=False)
        try:
            outcomes = self._outcomes(result, told)
        except ReportError as error:
            return self._verdict(task, {}, work, result, passed=False, reason=f"no complete report: {error}")
        planted = {name: outcomes.pop(name) for name in list(outcomes) if name.rsplit("_", 1)[-1] in _marks(canaries)}
        if self.parameters.report == "pytest" and (any(planted.values()) or len(planted) != len(canaries)):
            fooled = any(planted.values())
            reason = "the test runner was tampered with" if fooled else "the tests did not run to their end"
            return self._verdict(
                task, {} if fooled else outcomes, work, result, passed=False, reason=reason, fooled=fooled
            )
        if self.parameters.report in ("tap", "junit") and all(outcomes.values()) and not result.ok:
            reason = f"the report names no failure, and the command ended with exit code {result.exit_code}"
            return self._verdict(task, {}, work, result, passed=False, reason=reason)
        return self._verdict(task, outcomes, work, result, passed=None)

    async def _judge_apart(self, task: CommandTask, left: Mapping[str, bytes]) -> Verdict:
        """Tests and workspace in processes of their own."""
        base, tests = _bytes(task.files), _bytes(task.tests)
        work = guarded(left, base, tests, self.parameters.protected)
        files = {path: data for path, data in work.files.items() if path not in tests}
        told, ended = await run_pytest(
            files, base, tests, self._spec(), self.parameters.time_limit_s, task.own_operators
        )
        _require_pytest(told)
        if told.outcome == "exited" and told.exit_code == 98:
            raise VerifierError(f"the tests could not be put in: {told.text().strip()[-300:]}")
        lost = "out of memory" if ended is not None and ended.outcome == "oom" else None
        late = f"not done within {self.parameters.time_limit_s:g} s"
        if told.outcome != "exited":
            held = (
                "what the workspace's code gave did not fit into the tests' memory" if told.outcome == "oom" else None
            )
            return self._verdict(task, {}, work, told, passed=False, reason=lost or held or late)
        try:
            outcomes, errors = _pytest_outcomes(told.stdout)
        except OutOfTime:
            return self._verdict(task, {}, work, told, passed=False, reason=lost or late)
        except ReportError as error:
            raise VerifierError(
                f"no complete report: {error}; {told.stderr.decode(errors='replace')[-500:]}"
            ) from error
        return self._verdict(task, outcomes, work, told, passed=None, reason=lost, errors=errors)

    def _spec(self) -> SandboxSpec:
        limits = SandboxLimits(memory_mib=self.parameters.memory_mib, processes=128)
        given = self.parameters.sandbox.limits.model_dump(exclude_none=True)
        spec: SandboxSpec = self.parameters.sandbox
        return spec.model_copy(update={"limits": limits.model_copy(update=given)})

    async def _run(self, work: Workspace, test_files: list[str]) -> tuple[ExecResult, bytes]:
        spec = self._spec()
        report = f"{OUT}/report"
        async with open_sandbox(spec) as sandbox:
            try:
                await sandbox.put_archive(spec.workdir, archive.pack(work.files))
            except (OSError, UnsafePath, TooLarge) as error:
                raise Unusable(f"the workspace cannot be put anywhere else: {error}") from error
            await sandbox.put(f"{OUT}/.keep", b"")
            command: str | list[str]
            # A command of the task's own finds modules as it does anywhere; ours must not find the workspace's.
            env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "GYMFLOW_REPORT": report}
            if self.parameters.report == "pytest":
                env |= {"PYTHONPATH": "/opt/gymflow/lib", "PYTHONSAFEPATH": "1"}
                await sandbox.put("/opt/gymflow/lib/_pytest_report.py", PLUGIN.read_bytes())
                await sandbox.put("/opt/gymflow/pytest.ini", f"[pytest]\npythonpath = {spec.workdir}\n".encode())
                command = [
                    "python3", "-s", "-m", "pytest", "-q", "-c", "/opt/gymflow/pytest.ini", f"--rootdir={spec.workdir}",
                    "-p", "_pytest_report", "-p", "no:cacheprovider", *test_files,
                ]  # fmt: skip
            else:
                command = (self.parameters.command or "").replace("{report}", report)
            result = await sandbox.exec(
                command,
                env=env,
                timeout_s=self.parameters.time_limit_s,
                keep_bytes=KEEP_BYTES,
            )
            if self.parameters.report == "pytest":
                _require_pytest(result)
            if result.exit_code == 127 and self.parameters.report != "exit_code":
                raise VerifierError(f"the test command is not there: {result.text().strip()[-300:]}")
            try:
                told = await sandbox.get(report, max_bytes=KEEP_BYTES)
            except (FileNotFoundError, IsADirectoryError, UnsafePath, TooLarge):
                told = b""
        return result, told

    def _outcomes(self, result: ExecResult, told: bytes) -> dict[str, bool]:
        report: Report = self.parameters.report
        found: dict[str, bool]
        if report == "junit":
            found = junit(told)
        else:
            found = tap(result.stdout.decode(errors="replace")) if report == "tap" else _pytest_outcomes(told)[0]
        return found

    def _verdict(
        self, task: CommandTask, outcomes: Mapping[str, bool], work: Workspace, result: ExecResult, *,
        passed: bool | None, reason: str | None = None, fooled: bool = False, errors: Mapping[str, str] | None = None,
    ) -> Verdict:  # fmt: skip
        counted = {name: outcomes.get(name, False) for name in task.required} if task.required else dict(outcomes)
        failed = [name for name, good in counted.items() if not good]
        complete = bool(counted) and not failed if passed is None else passed
        share = sum(counted.values()) / len(counted) if counted and passed is not False else float(complete)
        if reason is None and not complete:
            ended = {"timeout": f"not done within {self.parameters.time_limit_s:g} s", "oom": "out of memory"}
            last = result.text().strip()[-500:]
            said = "".join(f"; {errors[name]}" for name in failed if errors and name in errors)[:600]
            reason = ended.get(result.outcome) or (f"failed: {', '.join(failed[:5])}{said}" if failed else f"exit code {result.exit_code}: {last}")  # fmt: skip
        return Verdict(
            reward=float(complete) if self.parameters.reward == "all" else share,
            components={name: float(good) for name, good in counted.items()},
            reason=reason,
            details={
                **({"reset": work.reset} if work.reset else {}),
                **({"tampered": True} if fooled else {}),
                **({"shared_process": True} if self.parameters.shares_process else {}),
            },
        )


def _require_pytest(result: ExecResult) -> None:
    if b"No module named pytest" in result.stderr:
        raise VerifierError("pytest is not installed where the tests run: pip install pytest, or choose an image")


def _bytes(files: Mapping[str, str]) -> dict[str, bytes]:
    return {archive.safe_name(path): text.encode("utf-8", "surrogateescape") for path, text in files.items()}


def _canaries(tests: Mapping[str, str]) -> dict[str, str]:
    """For each test file a test that fails, under a name that only we know to be ours."""
    made = {}
    for path in tests:
        name = path.rsplit("/", 1)[-1]
        if name.startswith("test_") or name.endswith("_test.py"):
            left, right = secrets.randbelow(1000), 1000 + secrets.randbelow(1000)
            made[path] = f"\n\ndef test_value_{secrets.token_hex(6)}():\n    assert {left} == {right}\n"
    return made


def _marks(canaries: Mapping[str, str]) -> set[str]:
    return {match[1] for text in canaries.values() if (match := re.search(r"test_value_(\w+)\(", text))}


def _pytest_outcomes(told: bytes) -> tuple[dict[str, bool], dict[str, str]]:
    """Test id -> passed, and what the failed ones said, out of the plugin's lines. Raises ReportError where the session did not
    come to its end."""
    found: dict[str, bool] = {}
    errors: dict[str, str] = {}
    ended = False
    for line in told.splitlines():
        try:
            entry: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise ReportError("the report is damaged") from error
        if "timeout" in entry:
            raise OutOfTime("the session ran out of time")
        if "end" in entry:
            ended = True
        else:
            # The workspace may decide what a test is skipped for, or expected to fail for.
            found[entry["id"]] = entry["outcome"] == "passed" and found.get(entry["id"], True)
            if said := entry.get("error") or (
                entry["outcome"] == "skipped" and "skipped; name the `required` tests if it may be"
            ):
                errors[entry["id"]] = said
    if not ended:
        raise ReportError("the session did not come to its end")
    return found, errors
