"""What all rollouts of a run use together, and the budget that bounds it."""

import time

from gymflow.contracts.run import RunBudget
from gymflow.contracts.trajectory import Usage
from gymflow.errors import RunIncomplete


class BudgetExhausted(RunIncomplete):
    """The run's budget is used up. Rollouts that needed another call are missing, neither failed nor scored."""


class Uncounted(RunIncomplete):
    """An endpoint does not tell what a budget bounds. Every further call would be paid for outside of it."""


TIME_OVER = "the run's time is over (run_budget.wall_time_s)"


class Spending:
    """Counts every role's calls. A call that is under way when the budget runs out is finished; none is begun after that."""

    def __init__(self, budget: RunBudget, *, calls: int = 0, tokens: int = 0, cost_usd: float = 0.0) -> None:
        """`calls`, `tokens`, `cost_usd`: what the run has used before, in earlier processes."""
        self.budget = budget
        self.calls, self.tokens, self.cost_usd = calls, tokens, cost_usd
        self._began = time.monotonic()

    @property
    def exhausted(self) -> str | None:
        """What is used up, in words."""
        budget = self.budget
        if budget.max_calls is not None and self.calls >= budget.max_calls:
            return f"the run's budget is used up: {self.calls} of {budget.max_calls} model calls made (run_budget.max_calls)"
        if budget.max_tokens is not None and self.tokens >= budget.max_tokens:
            return (
                f"the run's budget is used up: {self.tokens} of {budget.max_tokens} tokens used (run_budget.max_tokens)"
            )
        if budget.max_cost_usd is not None and self.cost_usd >= budget.max_cost_usd:
            return (
                f"the run's budget is used up: {self.cost_usd:.4f} of {budget.max_cost_usd:g} US dollars spent "
                "(run_budget.max_cost_usd)"
            )
        if budget.wall_time_s is not None and time.monotonic() - self._began >= budget.wall_time_s:
            return TIME_OVER
        return None

    def begin(self, *, bounded: bool) -> None:
        """Count a call that is about to be made. Raises BudgetExhausted for a `bounded` one that the budget does not allow; a
        judge's are not bounded, so that what was paid for is scored."""
        if bounded and (reason := self.exhausted):
            raise BudgetExhausted(reason)
        self.calls += 1

    def add(self, usage: Usage, cost_usd: float | None) -> None:
        """Count what a call used."""
        self.tokens += (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
        self.cost_usd += cost_usd or 0.0
