"""What all providers behind HTTP share: keys, the probe, and one exchange per attempt."""

from abc import abstractmethod
from typing import Any, ClassVar, Literal

from gymflow.contracts.model import ModelIdentity, ModelSpec, Sampling
from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.trajectory import Usage
from gymflow.errors import InputError
from gymflow.models import wire
from gymflow.models.base import ModelError, ModelRequest, ModelResponse, Provider
from gymflow.models.dialects import DialectError
from gymflow.models.http import Endpoint, error_words
from gymflow.secrets import is_secret_name, resolve, resolve_key
from gymflow.suggest import closest, did_you_mean

Dialect = Literal["chat", "responses", "messages"]


class HttpProvider(Provider):
    """A subclass says which dialect it speaks: the path, and how requests and answers are written in it."""

    default_url: ClassVar[str]
    default_key: ClassVar[str]
    key_header: ClassVar[str] = "authorization"
    known_parameters: ClassVar[frozenset[str]] = frozenset({"price", "headers"})
    dialect: Dialect

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        if not spec.model:
            raise InputError(
                f"a model of provider {spec.provider!r} needs `model`: the name that the endpoint serves it by"
            )
        for name in spec.parameters.keys() - self.known_parameters:
            raise InputError(
                f"model {spec.model!r}: no parameter {name!r}; {did_you_mean(name, self.known_parameters)}"
            )
        self._endpoint: Endpoint | None = None

    @property
    @abstractmethod
    def path(self) -> str:
        """Where calls are posted, relative to the base URL."""

    @property
    def fixed_headers(self) -> dict[str, str]:
        """Headers that every request to this kind of endpoint carries."""
        return {}

    @abstractmethod
    def encode(self, request: ModelRequest) -> dict[str, Any]:
        """The body of a call. Raises DialectError for what the dialect cannot say."""

    @abstractmethod
    def decode(self, payload: dict[str, Any]) -> ModelResponse:
        """A 200 answer. Raises DialectError when it is none."""

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint, once open."""
        if self._endpoint is None:
            raise RuntimeError("the provider is not open")
        return self._endpoint

    async def open(self) -> None:
        self._endpoint = self._make_endpoint()
        await self._endpoint.open()

    async def close(self) -> None:
        if self._endpoint is not None:
            await self._endpoint.close()

    def identity(self) -> ModelIdentity:
        return ModelIdentity(provider=self.spec.provider, model=self.spec.model, revision=self.spec.revision)

    async def probe(self) -> None:
        """Ask which models are served; where that settles nothing, make the smallest possible call."""
        status, headers, content = await self.endpoint.send("GET", "/models")
        served = _served(content) if status == 200 else []
        if self.spec.model in served:
            return
        if status in (401, 403):
            raise self.endpoint.failure(status, headers, content)
        smallest = Sampling(max_output_tokens=16)
        try:
            await self.complete(ModelRequest([{"role": "user", "content": "Say ok."}], sampling=smallest))
        except ModelError as error:
            if not served:
                raise
            meant = closest(self.spec.model, served)
            hint = f"did you mean {meant!r}?" if meant else f"it serves {', '.join(served[:8])}"
            words = f"{error.message} (the endpoint does not list {self.spec.model!r}; {hint})"
            raise ModelError(error.kind, words, status=error.status) from error

    async def complete(self, request: ModelRequest) -> ModelResponse:
        try:
            data = wire.dumps(self.encode(request))
        except (DialectError, TypeError, ValueError) as error:
            raise ModelError(FailureKind.MODEL_ERROR, f"the request cannot be sent: {error}") from error
        status, headers, content = await self.endpoint.send("POST", self.path, data)
        if status != 200:
            if status == 400 and error_words(content)[0] == "content_filter":
                # Azure refuses a prompt so; that is the model's policy at work, not an endpoint that failed.
                return ModelResponse(output=[], finish_reason="content_filter", usage=Usage())
            raise self.endpoint.failure(status, headers, content)
        return self.decoded(self.endpoint.parsed(content))

    def decoded(self, payload: dict[str, Any]) -> ModelResponse:
        """`decode`, with an answer that is none as a ModelError."""
        try:
            return self.decode(payload)
        except DialectError as error:
            words = f"{self.endpoint.shown_url}: {error}"
            raise ModelError(FailureKind.MODEL_ERROR, words, status=200, retryable=True) from error

    def _make_endpoint(self) -> Endpoint:
        """Secrets are resolved here and nowhere earlier. An endpoint of the user's own gets no key unless one is named."""
        spec, field = self.spec, f"model {self.spec.model!r}"
        reference = spec.api_key or (None if spec.base_url else self.default_key)
        headers = dict(self.fixed_headers)
        secrets: list[str] = []
        for name, value in spec.parameters.get("headers", {}).items():
            headers[name.lower()] = resolve(value, f"{field}, header {name}")
            if is_secret_name(name) or headers[name.lower()] != value:
                secrets.append(headers[name.lower()])
        if reference is not None:
            key = resolve_key(reference, f"{field}, api_key")
            secrets.append(key)
            headers[self.key_header] = f"Bearer {key}" if self.key_header == "authorization" else key
        return Endpoint(
            resolve(spec.base_url or self.default_url, f"{field}, base_url"),
            headers=headers,
            secrets=secrets,
            key_name=reference,
            connections=spec.concurrency,
        )


def _served(content: bytes) -> list[str]:
    try:
        return [model["id"] for model in wire.loads(content)["data"]]
    except (ValueError, KeyError, TypeError):
        return []
