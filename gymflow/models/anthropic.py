"""Anthropic's Messages API, spoken natively.

Settings in a model's `parameters`, all optional: `price`, `headers` (such as `anthropic-beta`), and `max_tokens`, the output
limit where the run sets none (the API demands one).
"""

from typing import Any

from gymflow.contracts.model import ModelSpec
from gymflow.models.base import Dialect, ModelRequest, ModelResponse
from gymflow.models.dialects import messages
from gymflow.models.http_provider import HttpProvider

API_VERSION = "2023-06-01"


class Anthropic(HttpProvider):
    """Calls `POST {base_url}/messages`; `base_url` ends in `/v1`."""

    default_url = "https://api.anthropic.com/v1"
    default_key = "${env:ANTHROPIC_API_KEY}"
    key_header = "x-api-key"
    known_parameters = HttpProvider.known_parameters | {"max_tokens"}
    dialect: Dialect | None = "messages"

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self._max_tokens: int = spec.parameters.get("max_tokens", messages.DEFAULT_MAX_TOKENS)

    @property
    def path(self) -> str:
        return "/messages"

    @property
    def fixed_headers(self) -> dict[str, str]:
        return {"anthropic-version": API_VERSION}

    def encode(self, request: ModelRequest) -> dict[str, Any]:
        return messages.encode_request(request, self.spec.model, max_tokens=self._max_tokens)

    def decode(self, payload: dict[str, Any]) -> ModelResponse:
        return messages.decode_response(payload)
