"""Any endpoint that speaks OpenAI's Chat Completions or Responses.

Settings in a model's `parameters`, all optional: `price` (see prices.py), `headers` (sent with every request; values may be
secret references), `max_tokens_field`, `reasoning_field`, `token_ids: true` (ask vLLM for exact ids and log-probabilities).
"""

import re
from typing import Any
from urllib.parse import urlsplit

from gymflow.contracts.model import ModelIdentity, ModelSpec, Sampling
from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.trajectory import Usage
from gymflow.errors import InputError
from gymflow.models import wire
from gymflow.models.base import ModelError, ModelRequest, ModelResponse, Provider
from gymflow.models.dialects import DialectError, chat, responses
from gymflow.models.http import Endpoint, error_words
from gymflow.secrets import resolve, resolve_key
from gymflow.suggest import closest

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY = "${env:OPENAI_API_KEY}"
PARAMETERS = frozenset({"price", "headers", "max_tokens_field", "reasoning_field", "token_ids"})
_OFFICIAL = re.compile(r"(^|\.)(api\.openai\.com|openai\.azure\.com)$")
_TOKEN_ID_FIELDS = {"return_token_ids": True, "logprobs": True, "top_logprobs": 0}


class OpenAI(Provider):
    """Calls `POST {base_url}/chat/completions` or `/responses`, as `api` says."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        if not spec.model:
            raise InputError(
                f"a model of provider {spec.provider!r} needs `model`: the name that the endpoint serves it by"
            )
        if unknown := sorted(spec.parameters.keys() - self.known_parameters()):
            raise InputError(
                f"model {spec.model!r}: unknown parameter {unknown[0]!r}; known: {', '.join(sorted(PARAMETERS))}"
            )
        self.endpoint: Endpoint | None = None
        url = spec.base_url or DEFAULT_URL
        self._official = bool(_OFFICIAL.search(urlsplit(url).hostname or ""))
        self._reasoning_field: str = spec.parameters.get("reasoning_field", "reasoning_content")
        self._max_tokens_field: str = spec.parameters.get(
            "max_tokens_field", "max_completion_tokens" if self._official else "max_tokens"
        )
        self._token_ids = bool(spec.parameters.get("token_ids")) and spec.api == "chat"

    @classmethod
    def known_parameters(cls) -> frozenset[str]:
        """Names that `parameters` of a model of this provider may have."""
        return PARAMETERS

    async def open(self) -> None:
        self.endpoint = make_endpoint(self.spec, DEFAULT_URL, DEFAULT_KEY)
        await self.endpoint.open()

    async def close(self) -> None:
        if self.endpoint is not None:
            await self.endpoint.close()

    def identity(self) -> ModelIdentity:
        return ModelIdentity(provider=self.spec.provider, model=self.spec.model, revision=self.spec.revision)

    async def probe(self) -> None:
        """Ask which models are served; where that settles nothing, make the smallest possible call."""
        endpoint = self._open_endpoint()
        status, headers, content = await endpoint.send("GET", "/models")
        served: list[str] = []
        if status == 200:
            served = _served(content)
            if self.spec.model in served:
                return
        elif status in (401, 403):
            raise endpoint.failure(status, headers, content)
        request = ModelRequest(input=[{"role": "user", "content": "Say ok."}], sampling=Sampling(max_output_tokens=16))
        try:
            await self.complete(request)
        except ModelError as error:
            if not served:
                raise
            meant = closest(self.spec.model, served)
            hint = f"did you mean {meant!r}?" if meant else f"it serves {', '.join(served[:8])}"
            words = f"{error.message} (the endpoint does not list {self.spec.model!r}; {hint})"
            raise ModelError(error.kind, words, status=error.status) from error

    async def complete(self, request: ModelRequest) -> ModelResponse:
        endpoint = self._open_endpoint()
        responses_api = self.spec.api == "responses"
        try:
            body = self._responses_body(request) if responses_api else self._chat_body(request)
            data = wire.dumps(body)
        except (DialectError, TypeError, ValueError) as error:
            raise ModelError(FailureKind.MODEL_ERROR, f"the request cannot be sent: {error}") from error
        status, headers, content = await endpoint.send(
            "POST", "/responses" if responses_api else "/chat/completions", data
        )
        if status != 200:
            if _filtered(status, content):
                return ModelResponse(output=[], finish_reason="content_filter", usage=Usage())
            raise endpoint.failure(status, headers, content)
        payload = endpoint.parsed(content)
        try:
            return responses.decode_response(payload) if responses_api else self._decode_chat(payload)
        except DialectError as error:
            raise ModelError(
                FailureKind.MODEL_ERROR, f"{endpoint.shown_url}: {error}", status=status, retryable=True
            ) from error

    def _chat_body(self, request: ModelRequest) -> dict[str, Any]:
        body = chat.encode_request(
            request,
            self.spec.model,
            reasoning_field=self._reasoning_field,
            max_tokens_field=self._max_tokens_field,
        )
        return body | _TOKEN_ID_FIELDS if self._token_ids else body

    def _responses_body(self, request: ModelRequest) -> dict[str, Any]:
        body = responses.encode_request(request, self.spec.model)
        if self._official:
            # It has no seed, and refuses fields that it does not know. Without `store`, reasoning comes back encrypted.
            body.pop("seed", None)
            if "reasoning" in body:
                body["include"] = ["reasoning.encrypted_content"]
        return body

    def _decode_chat(self, payload: dict[str, Any]) -> ModelResponse:
        response = chat.decode_response(payload)
        if "reasoning_field" not in self.spec.parameters:
            answer = payload["choices"][0]["message"]
            self._reasoning_field = next(
                (name for name in chat.REASONING_FIELDS if answer.get(name)), self._reasoning_field
            )
        return response

    def _open_endpoint(self) -> Endpoint:
        if self.endpoint is None:
            raise RuntimeError("the provider is not open")
        return self.endpoint


def make_endpoint(spec: ModelSpec, default_url: str, default_key: str, key_header: str = "authorization") -> Endpoint:
    """The endpoint of a model: its secrets are resolved here and nowhere earlier. An endpoint of the user's own gets no key
    unless one is named."""
    field = f"model {spec.model!r}"
    reference = spec.api_key or (None if spec.base_url else default_key)
    headers = {
        name.lower(): resolve(value, f"{field}, header {name}")
        for name, value in spec.parameters.get("headers", {}).items()
    }
    if reference is not None:
        key = resolve_key(reference, f"{field}, api_key")
        headers[key_header] = f"Bearer {key}" if key_header == "authorization" else key
    return Endpoint(
        resolve(spec.base_url or default_url, f"{field}, base_url"),
        headers=headers,
        key_name=reference,
        connections=spec.concurrency,
    )


def _served(content: bytes) -> list[str]:
    try:
        models = wire.loads(content)["data"]
        return [model["id"] for model in models]
    except (ValueError, KeyError, TypeError):
        return []


def _filtered(status: int, content: bytes) -> bool:
    """Azure refuses a prompt with a 400; that is the model's policy at work, not an endpoint that failed."""
    return status == 400 and error_words(content)[0] == "content_filter"
