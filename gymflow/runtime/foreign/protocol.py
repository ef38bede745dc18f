"""What goes into a foreign agent's sandbox and what comes out: a job as JSON, events as JSON lines (see `worker.py`).

A harness writes the `Job` of its command line for a `Visit`, and reads its event stream into what was `Seen`.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from gymflow.contracts.trajectory import ToolCall
from gymflow.models import wire

PID_FILE = "/tmp/.gymflow-worker"
GRACE_S = 2.0
"""How long an agent that is told to end may take before it is killed."""


@dataclass(frozen=True, slots=True)
class Visit:
    """What one start of an agent is about, in terms of what it sees from inside."""

    command: list[str]
    """The start of its argument vector."""
    prompt: str
    instructions: str | None
    """What the task says as system, to be put behind the agent's own system prompt."""
    model: str
    url: str
    """Of its model calls, without `/v1`."""
    key: str
    tools_url: str | None
    """Of the environment's tools over MCP; None where it has none."""
    workspace: str
    state: str
    """A folder of its own for its configuration and records."""
    resumed: bool = False
    """Whether it is to go on with the conversation of its start before."""


@dataclass(frozen=True, slots=True)
class Job:
    """One start of an agent. `files`: absolute path -> text, written before it; `ignore`: texts whose lines are left out; `collect`:
    patterns of files whose lines are events too, read when it has ended."""

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    stdin: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    ignore: list[str] = field(default_factory=list)
    collect: list[str] = field(default_factory=list)

    def encoded(self, cwd: str, limit_s: float) -> bytes:
        """For the worker's stdin; the agent is ended after `limit_s` seconds."""
        bounds = {"limit_s": limit_s, "grace_s": GRACE_S}
        return wire.dumps({**asdict(self), "cwd": cwd, "pid_file": PID_FILE, **bounds})


@dataclass(frozen=True, slots=True)
class Event:
    """A JSON object that the agent wrote as one line: on stdout, or into a file that was collected. `at`: seconds since the epoch."""

    at: float
    body: dict[str, Any]
    from_file: bool = False


@dataclass(slots=True)
class Span:
    """A tool call as the agent told of it."""

    started_at: float | None
    ended_at: float | None = None
    failed: bool = False


@dataclass(slots=True)
class Seen:
    """What an agent's event stream told."""

    spans: dict[str, Span] = field(default_factory=dict)
    """By the model's id of the tool call."""
    subagents: dict[str, str] = field(default_factory=dict)
    """Response id -> id of the tool call that started the subagent which made this model call."""
    compactions: list[float] = field(default_factory=list)
    """When a history was replaced by its summary."""
    failure: str | None = None
    """The agent's words, where it says that it failed."""

    def began(self, at: float, call_id: str) -> None:
        """A tool call began; of several such words the first holds."""
        self.spans.setdefault(call_id, Span(at))

    def ended(self, at: float, call_id: str, *, failed: bool = False) -> None:
        """A tool call ended; of several such words the first holds."""
        span = self.spans.setdefault(call_id, Span(None))
        if span.ended_at is None:
            span.ended_at = at
        span.failed = span.failed or failed


@dataclass(frozen=True, slots=True)
class Ended:
    """How a start ended. `late`: it took too long and was made to; `left`: processes that it left behind, which the worker ended;
    `problem`: why it did not begin."""

    exit_code: int
    late: bool
    left: int
    problem: str | None = None


@dataclass(slots=True)
class Output:
    """What the worker wrote. Without `ended` the worker itself was ended."""

    events: list[Event] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    ended: Ended | None = None

    def words(self) -> str:
        """The last that the agent said on stderr or outside its events, for a message."""
        return "\n".join(self.stderr)[-1500:].strip()


def read(stdout: bytes) -> Output:
    """The worker's lines. One that was cut off is left out; what an agent writes that is no JSON object counts as its words."""
    output = Output()
    for line in _lines(stdout):
        match line["stream"]:
            case "stdout" | "file" as stream:
                body = _object(line["line"])
                if body is not None:
                    output.events.append(Event(line["at"], body, from_file=stream == "file"))
                elif stream == "stdout":
                    output.stderr.append(line["line"])
            case "stderr":
                output.stderr.append(line["line"])
            case "end":
                output.ended = Ended(line["exit_code"], line["late"], line["left"], line.get("error"))
    return output


@dataclass(slots=True)
class ServedCall:
    """A tool call that came over MCP and was answered here. `meta`: what the agent added to it."""

    record: ToolCall
    meta: dict[str, Any]
    reward: float | None = None
    done: bool = False


def _lines(stdout: bytes) -> Iterator[dict[str, Any]]:
    for line in stdout.split(b"\n"):
        if line and (value := _object(line)) is not None:
            yield value


def _object(text: str | bytes) -> dict[str, Any] | None:
    try:
        value = wire.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
