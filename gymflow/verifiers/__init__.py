"""The contract of a verifier: a function of task and evidence.

    class ExactTask(BaseModel):
        expected_answer: str

    class Exact(Verifier[ExactTask]):
        async def verify(self, task: ExactTask, evidence: Evidence) -> Verdict:
            return Verdict(reward=float(evidence.final_text.strip() == task.expected_answer))

The module holds exactly one Verifier subclass whose name, in snake case, is the module's (`mcqa.py`: `Mcqa`). Its type
argument is the pydantic model of the task fields it reads; a nested class `Parameters` declares its parameters. The
example's values decide what validation checks, so types there should be exact. A verifier must give the same verdict for
the same evidence; what it must not do is read the clock, the network or another rollout.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict

from gymflow.contracts.outcome import VerdictFailure
from gymflow.contracts.verdict import Anchor, Verdict
from gymflow.paths import shipped
from gymflow.verifiers.evidence import Evidence

if TYPE_CHECKING:
    from gymflow.sandboxes import Sandbox

__path__.append(str(shipped("verifiers")))

__all__ = ["Anchor", "BaseParameters", "Evidence", "Rerun", "Verdict", "Verifier", "VerifierError", "VerifierTimeout"]

Need = Literal["response", "trajectory", "state", "artifacts", "sandbox", "judge"]
Rerun = Literal["stateless", "replay", "recorded", "live"]

TaskFields = TypeVar("TaskFields", bound=BaseModel)


class BaseParameters(BaseModel):
    """Base of a verifier's or harness's parameters: an unknown one is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class VerifierError(Exception):
    """The verifier could not decide: recorded as `verifier_error`, never as a reward of zero."""

    failure: VerdictFailure = VerdictFailure.VERIFIER_ERROR


class VerifierTimeout(VerifierError):
    """It could not decide in time: recorded as `verifier_timeout`."""

    failure = VerdictFailure.VERIFIER_TIMEOUT


class Verifier(Generic[TaskFields]):
    """Scores evidence. One instance serves a whole run, concurrently; `open` and `close` frame its life."""

    needs: ClassVar[frozenset[Need]] = frozenset({"response"})
    rerun: ClassVar[Rerun] = "stateless"
    extracts: ClassVar[bool] = False
    """Whether a verdict names the answer that it is about in `extracted_answer`, so that one without says that none was given."""
    version: ClassVar[str] = "1"
    includes: ClassVar[tuple[str, ...]] = ()
    """Further files, relative to the module, that are part of its code digest."""
    distributions: ClassVar[tuple[str, ...]] = ()
    """Installed distributions whose version is part of its code digest."""

    class Parameters(BaseParameters):
        """No parameters."""

    task_fields: ClassVar[type[BaseModel]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in getattr(cls, "__orig_bases__", ()):
            arguments = get_args(base)
            if arguments and isinstance(arguments[0], type) and issubclass(arguments[0], BaseModel):
                cls.task_fields = arguments[0]

    def __init__(self, parameters: BaseModel | None = None) -> None:
        self.parameters: Any = parameters if parameters is not None else self.Parameters()

    async def open(self) -> None:
        """Start worker processes and the like; called before the first `verify`."""

    async def close(self) -> None:
        """End them; idempotent."""

    def lenient(self) -> BaseModel | None:
        """Parameters that also accept a right answer in the wrong shape; None where there are no wider ones.

        Diagnosis scores failed rollouts a second time under them: what passes then failed for its form alone.
        """
        return None

    def cautions(self) -> list[str]:
        """What whoever uses this verifier with these parameters should know: validation says each once, as a warning."""
        return []

    async def observe(self, task: TaskFields, sandbox: "Sandbox") -> dict[str, bytes]:
        """Artifacts that only the agent's own sandbox can give, taken when the episode has ended and nothing of the agent runs in it
        any more. Asked only where `rerun` is `recorded`: what is taken there cannot be taken again."""
        return {}

    async def verify(self, task: TaskFields, evidence: Evidence) -> Verdict:
        """The verdict. Any exception is recorded as `verifier_error` with its message; the run goes on."""
        raise NotImplementedError
