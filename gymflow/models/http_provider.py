"""What all providers behind HTTP share: keys, the probe, and one exchange per attempt."""

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from gymflow.contracts.model import ModelIdentity, ModelSpec, Sampling
from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.trajectory import Usage
from gymflow.errors import InputError
from gymflow.models import wire
from gymflow.models.base import Dialect, EventSink, ModelError, ModelRequest, ModelResponse, Provider
from gymflow.models.dialects import DialectError, Interrupted
from gymflow.models.dialects.events import ASSEMBLERS, Assembler, EventStream
from gymflow.models.http import Endpoint, error_words
from gymflow.models.serving import SERVED
from gymflow.secrets import is_secret_header, resolve, resolve_key
from gymflow.suggest import closest, did_you_mean

Read = TypeVar("Read")


class HttpProvider(Provider):
    """A subclass says which dialect it speaks: the path, and how requests and answers are written in it."""

    default_url: ClassVar[str]
    default_key: ClassVar[str]
    key_header: ClassVar[str] = "authorization"
    known_parameters: ClassVar[frozenset[str]] = frozenset({"price", "headers"})
    dialect: Dialect | None

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

    def request_headers(self, request: ModelRequest) -> dict[str, str] | None:
        """Headers of one call."""
        return None

    @abstractmethod
    def encode(self, request: ModelRequest) -> dict[str, Any]:
        """The body of a call. Raises DialectError for what the dialect cannot say."""

    def adapt(self, body: dict[str, Any], request: ModelRequest) -> None:
        """Change a foreign harness's body, which is passed on as it is but for the model's name, where it must be."""

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
        status, headers, content = await self.endpoint.send(
            "POST", self.path, self._data(request, stream=False), self.request_headers(request)
        )
        if status != 200:
            if status == 400 and error_words(content)[0] == "content_filter":
                # Azure refuses a prompt so; that is the model's policy at work, not an endpoint that failed.
                return ModelResponse(output=[], finish_reason="content_filter", usage=Usage())
            raise self.endpoint.failure(status, headers, content)
        payload = self.endpoint.parsed(content)
        response = self._decoded(payload)
        response.native = payload if request.native is not None else None
        return response

    async def stream(self, request: ModelRequest, sink: EventSink) -> ModelResponse:
        assert self.dialect is not None
        began = time.monotonic()
        first: float | None = None
        cutter, assembler = EventStream(), ASSEMBLERS[self.dialect]()
        data, headers = self._data(request, stream=True), self.request_headers(request)
        last: list[bytes] = []
        async with self.endpoint.receive(self.path, data, headers) as chunks:
            if isinstance(chunks, dict):
                return await self._at_once(chunks, request, sink)
            async for chunk in chunks:
                for event, text in cutter.feed(chunk):
                    parsed = self._event(text, assembler)
                    if first is None and parsed:
                        first = time.monotonic() - began
                    if not self.passes_on(parsed, request):
                        continue
                    if assembler.ended or text == "[DONE]":
                        # What tells the caller that the answer is complete waits until it is known to be one.
                        last.append(event)
                    else:
                        await sink(event)
        response = self._decoded(self._understood(assembler.payload))
        for event in last:
            await sink(event)
        response.first_token_s = first
        return response

    async def _at_once(self, payload: dict[str, Any], request: ModelRequest, sink: EventSink) -> ModelResponse:
        """The answer of an endpoint that does not stream, as the stream that the caller asked for."""
        response = self._decoded(payload)
        body = request.native[1] if request.native is not None else {}
        served = next(one for one in SERVED.values() if one.name == self.dialect)
        for event in served.encode_stream(response, str(body.get("model") or self.spec.model), body):
            await sink(event)
        return response

    def passes_on(self, event: dict[str, Any], request: ModelRequest) -> bool:
        """Whether the caller gets an event, too: not what only the gateway asked for."""
        return True

    def _event(self, data: str, assembler: Assembler) -> dict[str, Any]:
        if not data or data == "[DONE]":
            return {}
        try:
            event = wire.loads(data)
        except ValueError as error:
            raise self._failed(Interrupted(f"an event of the stream is not JSON: {error}")) from error
        self._understood(lambda: assembler.add(event))
        return dict(event)

    def _data(self, request: ModelRequest, *, stream: bool) -> bytes:
        try:
            if request.native is None:
                return wire.dumps(self.encode(request))
            body = {**request.native[1], "model": self.spec.model, "stream": stream}
            self.adapt(body, request)
            return wire.dumps(body)
        except (DialectError, TypeError, ValueError) as error:
            raise ModelError(FailureKind.MODEL_ERROR, f"the request cannot be sent: {error}") from error

    def _decoded(self, payload: dict[str, Any]) -> ModelResponse:
        return self._understood(lambda: self.decode(payload))

    def _understood(self, read: Callable[[], Read]) -> Read:
        """What an endpoint said, read. Raises ModelError where it is not of the dialect, whatever is wrong with it."""
        try:
            return read()
        except DialectError as error:
            raise self._failed(error) from error
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise self._failed(DialectError(f"the answer is not of the dialect ({error!r})")) from error

    def _failed(self, error: DialectError) -> ModelError:
        """An answer that is none. One that is complete would come out the same, and cost as much, when asked for again."""
        words = self.endpoint.redactor.text(f"{self.endpoint.shown_url}: {error}")
        return ModelError(FailureKind.MODEL_ERROR, words, status=200, retryable=isinstance(error, Interrupted))

    def _make_endpoint(self) -> Endpoint:
        """Secrets are resolved here and nowhere earlier. An endpoint of the user's own gets no key unless one is named."""
        spec, field = self.spec, f"model {self.spec.model!r}"
        reference = spec.api_key or (None if spec.base_url else self.default_key)
        headers = dict(self.fixed_headers)
        secrets: list[str] = []
        for name, value in spec.parameters.get("headers", {}).items():
            headers[name.lower()] = resolve(value, f"{field}, header {name}")
            if is_secret_header(name, value) or headers[name.lower()] != value:
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
        )


def _served(content: bytes) -> list[str]:
    try:
        return [model["id"] for model in wire.loads(content)["data"] if isinstance(model["id"], str)]
    except (ValueError, LookupError, TypeError):
        return []
