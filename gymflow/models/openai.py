"""Any endpoint that speaks OpenAI's Chat Completions or Responses.

Settings in a model's `parameters`, all optional: `price` (see prices.py), `headers` (sent with every request; values may hold
secret references), `max_tokens_field`, `reasoning_field`, and `token_ids: true`, which asks vLLM for exact ids and
log-probabilities.
"""

import asyncio
import re
from typing import Any
from urllib.parse import urlsplit

from gymflow.contracts.model import ModelSpec
from gymflow.models import wire
from gymflow.models.base import ContextOverflow, ModelError, ModelRequest, ModelResponse
from gymflow.models.dialects import chat, responses
from gymflow.models.http_provider import HttpProvider

_OFFICIAL = re.compile(r"(^|\.)(api\.openai\.com|openai\.azure\.com)$")
DETOKENIZE_S = 5.0
TOKEN_ID_FIELDS = {"return_token_ids": True, "logprobs": True, "top_logprobs": 0}
"""What makes vLLM return prompt ids, completion ids and the log-probability of each."""


class OpenAI(HttpProvider):
    """Calls `POST {base_url}/chat/completions` or `/responses`, as `api` says."""

    default_url = "https://api.openai.com/v1"
    default_key = "${env:OPENAI_API_KEY}"
    known_parameters = HttpProvider.known_parameters | {"max_tokens_field", "reasoning_field", "token_ids"}

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self.dialect = spec.api
        self._official = bool(_OFFICIAL.search(urlsplit(spec.base_url or self.default_url).hostname or ""))
        self._reasoning_field: str = spec.parameters.get("reasoning_field", "reasoning_content")
        self._max_tokens_field: str = spec.parameters.get(
            "max_tokens_field", "max_completion_tokens" if self._official else "max_tokens"
        )
        self._token_ids = bool(spec.parameters.get("token_ids"))

    @property
    def path(self) -> str:
        return "/responses" if self.dialect == "responses" else "/chat/completions"

    def encode(self, request: ModelRequest) -> dict[str, Any]:
        if self.dialect == "responses":
            return self._responses_body(request)
        body = chat.encode_request(
            request,
            self.spec.model,
            reasoning_field=self._reasoning_field,
            max_tokens_field=self._max_tokens_field,
        )
        return body | TOKEN_ID_FIELDS if self._token_ids else body

    def adapt(self, body: dict[str, Any], request: ModelRequest) -> None:
        if request.seed is not None and not (self._official and self.dialect == "responses"):
            body["seed"] = request.seed
        if self.dialect == "chat":
            if body["stream"]:
                body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
            if self._token_ids:
                body |= TOKEN_ID_FIELDS

    def passes_on(self, event: dict[str, Any], request: ModelRequest) -> bool:
        # The chunk that holds nothing but usage surprises clients that did not ask for it.
        if self.dialect != "chat" or event.get("choices") != [] or request.native is None:
            return True
        return bool((request.native[1].get("stream_options") or {}).get("include_usage"))

    def decode(self, payload: dict[str, Any]) -> ModelResponse:
        if self.dialect == "responses":
            return responses.decode_response(payload)
        response = chat.decode_response(payload)
        if "reasoning_field" not in self.spec.parameters:
            answer = payload["choices"][0]["message"]
            used = (name for name in chat.REASONING_FIELDS if answer.get(name))
            self._reasoning_field = next(used, self._reasoning_field)
        return response

    async def text_of(self, token_ids: list[int]) -> str | None:
        """vLLM tells, beside `/v1`."""
        if not self._token_ids:
            return None
        body = wire.dumps({"model": self.spec.model, "tokens": token_ids})
        try:
            async with asyncio.timeout(DETOKENIZE_S):
                status, _, content = await self.endpoint.send("POST", "/detokenize", body, beside_version=True)
                text = self.endpoint.parsed(content).get("prompt") if status == 200 else None
        except (ModelError, ContextOverflow, TimeoutError):
            return None
        return text if isinstance(text, str) else None

    def _responses_body(self, request: ModelRequest) -> dict[str, Any]:
        body = responses.encode_request(request, self.spec.model)
        if self._official:
            # It has no seed, and refuses fields that it does not know. Without `store`, reasoning comes back encrypted.
            # What of it is not, it neither has nor takes.
            body.pop("seed", None)
            body["input"] = [
                item for item in request.input if item.get("type") != "reasoning" or item.get("encrypted_content")
            ]
            if "reasoning" in body:
                body["include"] = ["reasoning.encrypted_content"]
        return body
