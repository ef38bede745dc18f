"""All models of a run: opened, checked and closed together.

async with Gateway(config.models, concurrency=64) as gateway:
    await gateway.probe()
    client = gateway.client("policy", seed=17, budgets=Budgets())
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self

from gymflow.contracts.model import ModelIdentity, ModelSpec
from gymflow.contracts.run import Budgets, RunBudget
from gymflow.errors import InputError
from gymflow.models.base import ContextOverflow, ModelError, Provider
from gymflow.models.client import AGENT_ROLE, ModelClient
from gymflow.models.health import PROBE_TIMEOUT_S
from gymflow.models.providers import make_provider
from gymflow.models.spending import Spending
from gymflow.models.upstream import Upstream
from gymflow.secrets import Redactor

PROBE_PAUSE_S = 0.5
"""Between two probes of an endpoint that answers, but not yet well: a server that starts, a rate that is exceeded."""


class Gateway:
    """Holds one provider per model; hands out a client per rollout."""

    def __init__(
        self,
        models: Mapping[str, ModelSpec],
        *,
        concurrency: int | None = None,
        unreachable_s: float = 30.0,
        providers: Mapping[str, Provider] | None = None,
        spending: Spending | None = None,
    ) -> None:
        """`concurrency`: calls in flight to a model that names no bound of its own. `providers`: by model name, ready-made
        ones that are used instead of building one from the specification. `spending`: what all clients count in together."""
        self.spending = spending or Spending(RunBudget())
        self.redactor = Redactor.of(*models.values())
        given = providers or {}
        self._upstreams = {
            name: Upstream(
                name, given.get(name) or make_provider(spec), concurrency=concurrency, unreachable_s=unreachable_s
            )
            for name, spec in models.items()
        }

    async def open(self) -> None:
        """Open all providers; none stays open when one cannot."""
        try:
            for upstream in self._upstreams.values():
                await upstream.provider.open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close all providers; idempotent."""
        for upstream in self._upstreams.values():
            await upstream.health.close()
            await upstream.provider.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __getitem__(self, model: str) -> Upstream:
        """A model by its name in the run."""
        return self._upstreams[model]

    @property
    def waiting_for(self) -> dict[str, str]:
        """The models whose endpoints are out of reach now or have asked for a pause, by name, with the reason; their calls wait."""
        reasons = {name: upstream.waits_for for name, upstream in self._upstreams.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def identities(self) -> dict[str, ModelIdentity]:
        """By model name; what the keys of rollouts digest."""
        return {name: upstream.provider.identity() for name, upstream in self._upstreams.items()}

    async def probe(self) -> None:
        """Prove within seconds that calls can succeed; the gateway is open. Raises InputError that says of each model that
        cannot be called why, in the endpoint's own words."""
        await self._check({name: upstream.provider.probe for name, upstream in self._upstreams.items()})

    async def preflight(self) -> None:
        """The same before a run, with a gateway that is not open: no model is loaded and no server started for it."""
        await self._check({name: upstream.provider.preflight for name, upstream in self._upstreams.items()})

    async def _check(self, checks: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
        failures = await asyncio.gather(*(self._failure(name, check) for name, check in checks.items()))
        if any(failures):
            raise InputError("\n".join(failure for failure in failures if failure))

    async def _failure(self, name: str, check: Callable[[], Awaitable[None]]) -> str | None:
        where = self._upstreams[name].spec.base_url or self._upstreams[name].spec.provider
        reason = f"{self.redactor.text(where)} did not answer within {PROBE_TIMEOUT_S:g} s"
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                while True:
                    try:
                        await check()
                    except ModelError as error:
                        if error.status is None or not error.retryable:
                            raise
                        reason = str(error)
                    else:
                        return None
                    await asyncio.sleep(PROBE_PAUSE_S)
        except (ModelError, ContextOverflow, InputError) as error:
            reason = str(error)
        except TimeoutError:
            pass
        return f"model {name!r}: {reason}"

    def client(
        self,
        model: str,
        *,
        seed: int | None = None,
        budgets: Budgets | None = None,
        auxiliary: Mapping[str, str] | None = None,
    ) -> ModelClient:
        """A client for one rollout. `auxiliary`: further roles of the rollout (a simulated user) by the model they call."""
        roles = {AGENT_ROLE: model, **(auxiliary or {})}
        return ModelClient(
            {role: self._upstreams[name] for role, name in roles.items()},
            seed=seed,
            budgets=budgets or Budgets(),
            redactor=self.redactor,
            spending=self.spending,
        )
