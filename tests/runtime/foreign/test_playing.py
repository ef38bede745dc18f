"""The base of foreign harnesses, with an agent of our own in the real sandbox."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gymflow.collecting import collect
from gymflow.contracts.model import ModelSpec
from gymflow.contracts.outcome import FailureKind, Status, StopReason
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.run import Budgets, EnvironmentSelection, Limits
from gymflow.errors import InputError, RolloutFailure
from gymflow.harnesses import Harness
from gymflow.registry import Registry
from gymflow.runtime.foreign import Event, ForeignHarness, Job, Seen, Visit
from gymflow.runtime.foreign.playing import opening
from gymflow.sandboxes.local.platform import bubblewrap
from gymflow.user_roots import VARIABLE

HERE = Path(__file__).parent
Play = Callable[..., Any]


@dataclass(frozen=True)
class Script:
    """A script of this folder in place of an installed command line."""

    source: Path = HERE / "ours"
    package: str = "ours"
    version: str = "1"
    folder: Path = HERE
    ready: bool = True
    needs_node: bool = False

    def argv(self, folder: Path, node: Path) -> list[str]:
        return ["python3", f"{folder}/agent.py"]


class Ours(ForeignHarness):
    installation = Script()  # type: ignore[assignment]
    started: list[Visit] = []  # noqa: RUF012

    def job(self, visit: Visit) -> Job:
        self.started.append(visit)
        return Job(argv=[*visit.command, visit.prompt], env={"URL": visit.url, "TOOLS": visit.tools_url or ""})

    def see(self, event: Event, seen: Seen) -> None:
        seen.failure = event.body["why"] if event.body["type"] == "failed" else seen.failure


@pytest.fixture
def play(home: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """One rollout of our agent on the counter; each text is the model's next answer."""
    if isinstance(reason := bubblewrap(), str):
        pytest.skip(f"no isolation here: {reason}")
    monkeypatch.setenv(VARIABLE, str(HERE / "root"))
    Ours.started.clear()
    original = Registry.harness_class
    monkeypatch.setattr(
        Registry, "harness_class", lambda self, name: Ours if name == "simple" else original(self, name)
    )

    async def run(
        *texts: str, environment: str = "counter", rules: Sequence[Any] = (), **budgets: Any
    ) -> RolloutRecord:
        rules = [*rules, *({"turn": turn, "text": text} for turn, text in enumerate(texts))]
        model = ModelSpec(provider="scripted", parameters={"rules": rules}, max_retries=0)
        samples = collect(
            EnvironmentSelection(name=environment),
            model=model,
            budgets=Budgets(**budgets),
            limits=Limits(max_attempts=1),
        )
        [sample] = [sample async for sample in samples]
        record: RolloutRecord = sample.record
        return record

    return run


async def test_tools_that_no_answer_of_the_model_holds_are_recorded_at_their_turn(play: Play) -> None:
    record = await play("tool('add'); tool('add')", "done")
    turns = record.evidence.trajectory.turns
    assert [[(call.name, call.output, call.timing) for call in turn.tool_calls] for turn in turns] == [
        [("add", "1", "executor"), ("add", "2", "executor")],
        [],
    ]
    assert turns[0].step is not None and turns[0].step.reward == 0.5
    assert record.evidence.snapshot == {"count": 2}
    assert (record.rollout.status, record.rollout.stop_reason) == (Status.COMPLETED, StopReason.FINISHED)
    [visit] = Ours.started
    assert (visit.prompt, visit.instructions, visit.resumed) == ("Count.", "Be brief.\n\nYou count.", False)
    assert visit.model == "scripted", "a model without a name goes by its provider's"
    assert visit.key in visit.url and visit.tools_url == f"{visit.url}/mcp"


async def test_the_environment_can_end_the_episode_while_the_agent_works(play: Play) -> None:
    began = time.monotonic()
    record = await play("tool('add'); tool('finish'); time.sleep(300)")
    assert record.rollout.stop_reason is StopReason.ENVIRONMENT_DONE
    step = record.evidence.trajectory.turns[0].step
    assert step is not None and (step.reward, step.done) == (0.5, True)
    assert time.monotonic() - began < 60


async def test_what_breaks_in_the_environment_is_not_the_agents(play: Play) -> None:
    record = await play("tool('fail'); time.sleep(300)", "done")
    assert (record.rollout.status, record.rollout.failure) == (Status.FAILED, FailureKind.ENVIRONMENT_ERROR)
    assert "the counter fell down" in (record.rollout.failure_message or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("print('boom', file=sys.stderr); sys.exit(3)", "exit code 3: boom"),
        ("say(type='failed', why='no idea'); sys.exit(0)", "no idea"),
    ],
)
async def test_an_agent_that_fails_says_why(play: Play, text: str, message: str) -> None:
    record = await play(text)
    assert (record.rollout.failure, record.rollout.failure_message) == (FailureKind.HARNESS_ERROR, message)


async def test_a_turn_over_the_limit_is_refused_and_the_agent_ends(play: Play) -> None:
    record = await play("tool('add')", "tool('add')", "done", max_turns=2)
    assert record.rollout.stop_reason is StopReason.MAX_TURNS
    assert (record.rollout.turns, record.evidence.snapshot) == (2, {"count": 2})


async def test_an_agent_that_asks_again_and_again_has_an_end(play: Play) -> None:
    """What does not fit the model's context ends nothing by itself: the agent may compact its history, or go on for ever."""
    again = (
        "import urllib.error\n"
        "while True:\n"
        "    try: post(f'{URL}/v1/responses', {'model': 'm', 'input': 'too much'})\n"
        "    except urllib.error.HTTPError as error: say(type='refused', why=error.read().decode())"
    )
    record = await play(again, max_turns=8, rules=[{"contains": "too much", "error": {"context_overflow": True}}])
    assert (record.rollout.status, record.rollout.stop_reason) == (Status.COMPLETED, StopReason.MAX_TURNS)
    assert (record.rollout.turns, record.rollout.model_calls) == (1, 8)


async def test_a_model_that_fails_is_asked_once_however_often_the_agent_asks(play: Play) -> None:
    again = (
        "import urllib.error\n"
        "for _ in range(30):\n"
        "    try: post(f'{URL}/v1/responses', {'model': 'm', 'input': 'fail'})\n"
        "    except urllib.error.HTTPError: pass"
    )
    record = await play(again, rules=[{"contains": "fail", "error": {"message": "no", "retryable": False}}])
    assert (record.rollout.status, record.rollout.failure) == (Status.FAILED, FailureKind.MODEL_ERROR)
    assert record.rollout.model_calls == 2


async def test_an_agent_that_ends_without_an_answer_of_the_model_is_no_zero(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mute(Ours):
        def job(self, visit: Visit) -> Job:
            code = f"""import urllib.request, urllib.error
try: urllib.request.urlopen({visit.url!r} + "/v1/responses", b'{{"input": 5}}')
except urllib.error.HTTPError: pass"""
            return Job(argv=["python3", "-c", code])

    monkeypatch.setattr(Registry, "harness_class", lambda self, name: Mute)
    record = await play("done")
    assert (record.rollout.status, record.rollout.failure) == (Status.FAILED, FailureKind.HARNESS_ERROR)
    assert "without an answer of the model: `input` must be a string or a list" in (
        record.rollout.failure_message or ""
    )


@pytest.mark.slow
async def test_running_out_of_memory_is_the_agents_doing(play: Play) -> None:
    record = await play("b'x' * (3 << 30)", "done")
    assert (record.rollout.status, record.rollout.stop_reason) == (Status.COMPLETED, StopReason.OUT_OF_MEMORY)


async def test_an_agent_that_never_asks_has_stalled(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    class Idle(Ours):
        class Parameters(Ours.Parameters):
            timeout_s: float = 1.0

        def job(self, visit: Visit) -> Job:
            return Job(argv=["sleep", "300"])

    monkeypatch.setattr(Registry, "harness_class", lambda self, name: Idle)
    record = await play("done")
    assert record.rollout.failure is FailureKind.HARNESS_STALLED
    assert (record.rollout.failure_message or "").startswith("it made no model call within")


async def test_tools_that_nobody_answers_are_not_left_out_silently(play: Play) -> None:
    record = await play("done", environment="open_tools")
    assert record.rollout.failure is FailureKind.HARNESS_ERROR
    assert "the task's tools have nobody who answers them" in (record.rollout.failure_message or "")


async def test_a_harness_that_is_not_installed_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ours, "installation", Script(ready=False))
    with pytest.raises(InputError, match="ours 1 is not installed; `gym env prepare ours` does that"):
        await Ours().open()


def test_a_conversation_that_has_begun_is_told_as_one() -> None:
    items = [
        {"role": "developer", "content": "Rules."},
        {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
        {"type": "message", "role": "user", "content": "And now?"},
    ]
    assert opening(items, "First.") == ("User: Hello\n\nAssistant: Hi\n\nUser: And now?", "First.\n\nRules.")
    assert opening(items[1:2], None) == ("Hello", None)
    with pytest.raises(RolloutFailure, match="'input_image'"):
        opening([{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}], None)


def test_every_harness_says_what_it_lacks() -> None:
    assert Harness.missing() is None
