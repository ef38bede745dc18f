"""What a live display needs to know of a run, kept as counters so that watching costs nothing."""

import math
import time
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

from gymflow.contracts.outcome import Status
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.verdict import VerdictRecord
from gymflow.store import Store, connect

RATE_WINDOW_S = 15.0
FEW = 5
"""Recent rollouts from which there is a recent pace."""
EARLIER = """
    SELECT environment, task_key, count(*), sum(reward)
    FROM outcomes
    WHERE run_id = $run_id AND verdict_set = $verdict_set AND outcome = 'scored'
    GROUP BY ALL
"""


@dataclass(slots=True)
class TaskMeans:
    """The mean reward of every task of an environment, and their sum and sum of squares, kept up to date one rollout at a time."""

    total: float = 0.0
    squares: float = 0.0
    _tasks: dict[str, tuple[int, float]] = field(default_factory=dict)

    def add(self, task: str, reward: float, rollouts: int = 1) -> None:
        """Take in what `rollouts` rollouts of a task came to together."""
        count, rewards = self._tasks.get(task, (0, 0.0))
        before = rewards / count if count else 0.0
        count, rewards = count + rollouts, rewards + reward
        self._tasks[task] = count, rewards
        self.total += rewards / count - before
        self.squares += (rewards / count) * (rewards / count) - before * before

    def estimate(self) -> tuple[float, float] | None:
        """The mean over tasks, and half its 95 % interval (normal, of independent tasks; infinite where it is not known); None before
        the first, and for rewards whose sum is beyond a 64-bit float."""
        n = len(self._tasks)
        mean = self.total / n if n else math.nan
        if not math.isfinite(mean):
            return None
        if n == 1 or not math.isfinite(self.squares):
            return mean, math.inf
        variance = max(self.squares - n * mean * mean, 0.0) / (n - 1)
        return mean, 1.96 * math.sqrt(variance / n)


@dataclass
class Progress:
    """Counts of one run, and rewards per environment; those of a resumed run begin with what it holds."""

    planned: int = 0
    already: int = 0
    done: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    unverified: Counter[str] = field(default_factory=Counter)
    rewards: dict[str, TaskMeans] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def count(self, record: RolloutRecord, verdict: VerdictRecord | None) -> None:
        """Take a durable rollout in."""
        rollout = record.rollout
        self.done += 1
        if rollout.status is Status.FAILED and rollout.failure is not None:
            self.failures[rollout.failure.value] += 1
        if verdict is not None and verdict.verdict is None and verdict.failure is not None:
            self.unverified[verdict.failure.value] += 1
        if verdict is not None and verdict.verdict is not None:
            self.rewards.setdefault(rollout.environment, TaskMeans()).add(rollout.task_key, verdict.verdict.reward)
        now = time.monotonic()
        self._recent.append((now, rollout.usage.completion_tokens or 0))
        while self._recent and now - self._recent[0][0] > RATE_WINDOW_S:
            self._recent.popleft()

    @property
    def left(self) -> int:
        """Planned rollouts that are not durable yet."""
        return self.planned - self.already - self.done

    def tokens_per_s(self) -> float:
        """Completion tokens per second over the last seconds."""
        if not self._recent:
            return 0.0
        span = max(time.monotonic() - self._recent[0][0], 1.0)
        return sum(tokens for _, tokens in self._recent) / span

    def remaining_s(self) -> float | None:
        """Seconds left at the recent pace, or at that since the start where rollouts take longer; None while there is none."""
        if not self.done:
            return None
        if len(self._recent) < FEW:
            return self.left * self.elapsed_s / self.done
        span = time.monotonic() - self._recent[0][0]
        return self.left * span / len(self._recent)

    @property
    def elapsed_s(self) -> float:
        """Seconds since this process began to work on the run."""
        return time.monotonic() - self.started


def earlier_rewards(store: Store, run_id: str, verdict_set: str) -> dict[str, TaskMeans]:
    """What a run holds already, as `Progress.rewards` begins with it."""
    with connect(store.root, runs=[run_id]) as connection:
        found = connection.execute(EARLIER, {"run_id": run_id, "verdict_set": verdict_set}).fetchall()
    rewards: dict[str, TaskMeans] = defaultdict(TaskMeans)
    for environment, task, rollouts, reward in found:
        rewards[environment].add(task, reward, rollouts)
    return dict(rewards)
