"""Hidden tests on Python code that the answer holds.

    row:    {"entry_point": "double", "tests": ["assert double(2) == 4"]}
    answer: ```python
            def double(x):
                return 2 * x
            ```

The solution runs in one sandbox, the tests in another; between them pass plain values. So the tests cannot be read by the
solution, and neither an always-true `__eq__` nor `os._exit` nor a search through the interpreter's frames passes one.
"""

import ast
import builtins
from typing import Any, Literal

from gymflow.verifiers._code import is_python, solution
from gymflow.verifiers._python_run import Outcome, run_tests
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier, VerifierError


class Case(BaseModel):
    """One call and what it must return; a tuple counts as the list that JSON has for it."""

    model_config = ConfigDict(extra="forbid")

    arguments: list[Any] = Field(default_factory=list)
    keywords: dict[str, Any] = Field(default_factory=dict)
    expected: Any


class PythonTestsTask(BaseModel):
    """`tests`: Python sources, each one test: assertions, `check(candidate)`, `test_*` functions or unittest classes.

    `code_prompt`: code that the answer may continue (HumanEval), or whose imports it may rely on; functions that it defines beside
    the entry point are the task's, also where the answer has its own.
    `own_operators`: the tests apply `==`, `<` or `+` to objects of classes that the answer defines. What these answer is the
    answer's own doing, so it is for tests of such classes only; without it such a comparison fails.
    """

    entry_point: str | None = None
    tests: list[str] = Field(default_factory=list)
    cases: list[Case] = Field(default_factory=list)
    setup: str = ""
    code_prompt: str = ""
    own_operators: bool = False

    @field_validator("tests", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _testable(self) -> "PythonTestsTask":
        if not self.tests and not self.cases:
            raise ValueError("a task has `tests` or `cases`")
        if self.cases and not self.entry_point:
            raise ValueError("`cases` call the `entry_point`, which is missing")
        for source in (self.setup, *self.tests):
            if not is_python(source):
                raise ValueError(f"not valid Python: {source[:80]!r}")
        return self


class PythonTests(Verifier[PythonTestsTask]):
    """Reward 1.0 when all tests pass, else 0.0, or the passed fraction; components hold each test's verdict."""

    needs = frozenset({"response", "sandbox"})
    extracts = True
    includes = ("_code.py", "_python_candidate.py", "_python_run.py", "_python_tester.py", "_python_wire.py")

    class Parameters(BaseParameters):
        """`repeat` runs the tests several times: what does not come out equal each time is flaky, and does not count."""

        time_limit_s: float = Field(10.0, gt=0, description="For all tests of one answer, interpreter start apart.")
        memory_mib: int = Field(512, ge=64)
        reward: Literal["all", "fraction"] = "all"
        tolerance: float = Field(0.0, ge=0, description="For numbers in `cases`: absolute below 1, relative above.")
        repeat: int = Field(1, ge=1)

    async def open(self) -> None:
        """Prove on a right and a wrong answer that this machine can judge: else every answer would read as wrong."""
        job = _job(PythonTestsTask(entry_point="one", tests=["assert one() == 1"]), 0.0)
        right, wrong = [await self._run(f"def one(): return {value}", job) for value in (1, 2)]
        if right.cause is not None or wrong.cause != "failed":
            raise VerifierError(f"the self-test failed: {right.message or 'a wrong answer passed'}")

    async def verify(self, task: PythonTestsTask, evidence: Evidence) -> Verdict:
        code = solution(evidence.final_text, prompt=task.code_prompt, entry_point=task.entry_point)
        if not code.strip():
            return Verdict(reward=0.0, reason="no code in the answer")
        job = _job(task, self.parameters.tolerance)
        outcomes = [await self._run(code, job) for _ in range(self.parameters.repeat)]
        names = [f"test {n + 1}" for n in range(len(task.tests))] + [f"case {n + 1}" for n in range(len(task.cases))]
        flaky = [name for name in names if len({outcome.passed.get(name, False) for outcome in outcomes}) > 1]
        passed = [all(outcome.passed.get(name, False) for outcome in outcomes) for name in names]
        worst = next((outcome for outcome in outcomes if outcome.cause is not None), Outcome())
        reward = float(all(passed)) if self.parameters.reward == "all" else sum(passed) / len(names)
        return Verdict(
            reward=reward,
            components={name: float(good) for name, good in zip(names, passed, strict=True)},
            extracted_answer=code,
            reason=worst.message,
            masked=bool(flaky),
            details={"cause": worst.cause, **({"flaky": flaky} if flaky else {})},
        )

    async def _run(self, code: str, job: dict[str, Any]) -> Outcome:
        return await run_tests(
            code, job, time_limit_s=self.parameters.time_limit_s, memory_mib=self.parameters.memory_mib
        )


def _names(task: PythonTestsTask) -> list[str]:
    """Names that the tests use, without those of the language."""
    used = {
        node.id
        for source in (task.setup, *task.tests)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Name)
    }
    return sorted(
        {name for name in used if not hasattr(builtins, name)} | ({task.entry_point} if task.entry_point else set())
    )


def _helpers(task: PythonTestsTask) -> tuple[set[str], str]:
    """Functions of the prompt that the tests use, and the source that defines them."""
    if task.entry_point is None or not is_python(task.code_prompt):
        return set(), ""
    given = [node for node in ast.parse(task.code_prompt).body if getattr(node, "name", None) != task.entry_point]
    functions = {node.name for node in given if isinstance(node, ast.FunctionDef)} & set(_names(task))
    if not functions or any(isinstance(node, ast.ClassDef) for node in given):
        return set(), ""
    return functions, ast.unparse(ast.Module(given, []))


def _job(task: PythonTestsTask, tolerance: float) -> dict[str, Any]:
    helpers, source = _helpers(task)
    return {
        "names": [name for name in _names(task) if name not in helpers],
        "entry_point": task.entry_point,
        "own_operators": task.own_operators,
        "setup": f"{source}\n{task.setup}",
        "tests": task.tests,
        "cases": [case.model_dump() for case in task.cases],
        "tolerance": tolerance,
    }
