"""A program that reads its input and writes its answer, as programming contests have it.

    row:    {"tests": [{"input": "2 3\\n", "output": "5\\n"}]}
    answer: ```python
            a, b = map(int, input().split())
            print(a + b)
            ```

Every test runs in a sandbox of its own; the expected output never enters one. Published rows with
`verifier_metadata.unit_tests` are read as they are.
"""

import asyncio
import io
import math
import re
import tarfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from gymflow.verifiers._code import PYTHON, fenced
from pydantic import BaseModel, Field, model_validator

from gymflow.sandboxes import ExecResult, SandboxLimits, SandboxSpec, archive, open_sandbox, run_once
from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier, VerifierError

Compare = Literal["exact", "lines", "tokens"]
Result = Literal["passed", "wrong", "timeout", "memory", "output", "crash"]

KEEP_BYTES = 8 << 20
COMPILE_S = 60.0


class IoTest(BaseModel):
    """What the program reads, and what it must write."""

    input: str
    output: str


class StdinStdoutTask(BaseModel):
    """The tests of one task, in order."""

    tests: list[IoTest] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _published_form(cls, row: Any) -> Any:
        if isinstance(row, dict) and "tests" not in row:
            unit = (row.get("verifier_metadata") or {}).get("unit_tests") or {}
            if unit.get("fn_name"):
                raise ValueError("unit_tests with `fn_name` call a function: that is the verifier python_tests")
            pairs = zip(unit.get("inputs", ()), unit.get("outputs", ()), strict=True)
            return {**row, "tests": [{"input": given, "output": wanted} for given, wanted in pairs]}
        return row


@dataclass(frozen=True)
class Program:
    """What a test starts from. `executables`: files that can be run as they are, each as `./path`."""

    files: Mapping[str, bytes]
    executables: tuple[str, ...] = ()


_EXECUTABLE = 'while [ "$1" != -- ]; do chmod +x "$1"; shift; done; shift; exec "$@"'


class StdinStdout(Verifier[StdinStdoutTask]):
    """Reward 1.0 when every test passes, else 0.0, or the passed fraction; components hold each test's verdict."""

    needs = frozenset({"response", "sandbox"})
    extracts = True
    includes = ("_code.py",)

    class Parameters(BaseParameters):
        """`compare`: bytes for bytes; line by line without trailing blanks; or by words, numbers within `tolerance`."""

        compare: Compare = "lines"
        tolerance: float = Field(
            0.0, ge=0, description="For numbers with a fraction in `tokens`: absolute below 1, relative above."
        )
        time_limit_s: float = Field(5.0, gt=0, description="For each test.")
        memory_mib: int = Field(512, ge=32)
        reward: Literal["all", "fraction"] = "all"
        languages: list[str] = Field(default_factory=lambda: list(PYTHON), description="Code blocks that are taken.")
        file: str = "main.py"
        compile: list[str] | None = Field(None, description="Makes the program out of `file`; once per answer.")
        run: list[str] = Field(default_factory=lambda: ["python3", "main.py"])

    async def open(self) -> None:
        """Prove that this machine can run a program, where it is the default one: else every answer would read as wrong."""
        if self.parameters.run == ["python3", "main.py"]:
            result = await self._once(Program({"main.py": b"print(input())"}), "echo\n")
            if not result.ok or result.stdout != b"echo\n":
                raise VerifierError(f"the self-test failed: {result.outcome} {result.text()[:300]}")

    async def verify(self, task: StdinStdoutTask, evidence: Evidence) -> Verdict:
        code = fenced(evidence.final_text, self.parameters.languages)
        if code is None:
            code = evidence.final_text
        if not code.strip():
            return Verdict(reward=0.0, reason="no code in the answer")
        program = Program({self.parameters.file: code.encode("utf-8", "surrogateescape")})
        if self.parameters.compile is not None:
            built = await self._compiled(program)
            if isinstance(built, ExecResult):
                return Verdict(reward=0.0, extracted_answer=code, reason=f"does not compile: {built.text().strip()[:500]}",
                               details={"cause": "compile"})  # fmt: skip
            program = built
        results = await asyncio.gather(*(self._test(program, test) for test in task.tests))
        passed = [result == "passed" for result in results]
        first = next((n for n, good in enumerate(passed) if not good), None)
        return Verdict(
            reward=float(all(passed)) if self.parameters.reward == "all" else sum(passed) / len(passed),
            components={f"test {n + 1}": float(good) for n, good in enumerate(passed)},
            extracted_answer=code,
            reason=None if first is None else f"test {first + 1}: {results[first]}",
            details={"cause": None if first is None else results[first], "results": dict(Counter(results))},
        )

    async def _test(self, program: Program, test: IoTest) -> Result:
        result = await self._once(program, test.input)
        match result.outcome:
            case "timeout":
                return "timeout"
            case "oom":
                return "memory"
            case "output_limit":
                return "output"
        if result.truncated:
            return "output"
        if not result.ok:
            return "crash"
        written = result.stdout.decode(errors="replace")
        good = matches(written, test.output, self.parameters.compare, self.parameters.tolerance)
        return "passed" if good else "wrong"

    def _spec(self) -> SandboxSpec:
        limits = SandboxLimits(memory_mib=self.parameters.memory_mib, processes=64, disk_mib=64, output_mib=64)
        return SandboxSpec(limits=limits)

    async def _once(self, program: Program, text: str) -> ExecResult:
        command = self.parameters.run
        if program.executables:
            command = ["sh", "-c", _EXECUTABLE, "sh", *program.executables, "--", *command]
        return await run_once(
            self._spec(),
            command,
            files=program.files,
            stdin=text.encode("utf-8", "surrogateescape"),
            timeout_s=self.parameters.time_limit_s,
            keep_bytes=KEEP_BYTES,
        )

    async def _compiled(self, program: Program) -> Program | ExecResult:
        """The program after compiling, or how that failed."""
        async with open_sandbox(
            SandboxSpec(limits=SandboxLimits(memory_mib=1024, processes=64, disk_mib=256))
        ) as sandbox:
            for path, data in program.files.items():
                await sandbox.put(path, data)
            result = await sandbox.exec(self.parameters.compile, timeout_s=COMPILE_S)
            if not result.ok:
                return result
            made = await sandbox.get_archive(sandbox.spec.workdir)
        with tarfile.open(fileobj=io.BytesIO(made)) as members:
            executables = [f"./{one.name}" for one in members if one.isreg() and one.mode & 0o100]
        return Program(archive.read(made), tuple(executables))


def matches(written: str, expected: str, compare: Compare, tolerance: float = 0.0) -> bool:
    """Whether an output counts as the expected one.

    >>> matches("1 \\n2", "1\\n2\\n", "lines"), matches("1\\n2", "1 2", "lines"), matches("1\\n2.0", "1 2", "tokens", 1e-9)
    (True, False, True)
    """
    if compare == "exact":
        return written == expected
    if compare == "lines":
        return _lines(written) == _lines(expected)
    ours, theirs = written.split(), expected.split()
    return len(ours) == len(theirs) and all(
        a == b or _close(a, b, tolerance) for a, b in zip(ours, theirs, strict=True)
    )


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]+")


def _close(written: str, expected: str, tolerance: float) -> bool:
    """Whether two words are numbers, and one within the tolerance of the other. A whole number has no tolerance: what is written
    for it must be nearest to it."""
    if not (_NUMBER.fullmatch(written) and _NUMBER.fullmatch(expected)):
        return False
    ours, theirs = Decimal(written), Decimal(expected)
    if ours == theirs:
        return True
    near, wanted = float(ours), float(theirs)
    if not (math.isfinite(near) and math.isfinite(wanted)):
        return False
    if _WHOLE.fullmatch(expected) and (_WHOLE.fullmatch(written) or round(ours) != int(theirs)):
        return False
    return abs(near - wanted) <= tolerance * max(1.0, abs(wanted))
