"""One HTTP endpoint: a shared session, JSON both ways, and errors in the endpoint's own words."""

import ipaddress
import math
import os
import re
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from gymflow.contracts.outcome import FailureKind
from gymflow.models import wire
from gymflow.models.base import ContextOverflow, ModelError
from gymflow.models.connections import CONNECT_TIMEOUT_S, BrokenOff, Connections
from gymflow.models.http_request import header_lines, request_head
from gymflow.secrets import Redactor

WORDS_LIMIT = 2000
"""Most characters of an endpoint's own words that an error carries."""

_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_OVERFLOW = re.compile(
    r"(?i)context[ _](?:length|window|size|limit)|maximum (?:model|input|sequence) length|prompt is too long"
    r"|input is too long|too many (?:input|prompt) tokens|max_model_len|reduce the length of the (?:messages|prompt|input)"
)
_RETRYABLE_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_OUT_OF_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


class Endpoint:
    """A base URL with the headers that every request to it carries.

    The session has no total time limit: the limit of a call is its caller's (`asyncio.timeout`), so that a long run cannot
    exhaust a limit meant for one request.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str],
        secrets: Iterable[str] = (),
        key_name: str | None = None,
    ) -> None:
        """`secrets`: values that no error may show. `key_name`: how a refused key is called in errors."""
        self.base_url = base_url.rstrip("/")
        self.headers = {"content-type": "application/json", **headers}
        self._key_name = key_name
        self.redactor = Redactor(secrets)
        self.shown_url = self.redactor.text(self.base_url)
        self._session: aiohttp.ClientSession | None = None
        self._connections: Connections | None = None
        self._proxy: str | None = None
        self._heads: dict[tuple[str, str], bytes] = {}

    async def open(self) -> None:
        """Ready for calls; connections are made when they are needed."""
        self._proxy = _proxy_for(self.base_url)
        if self._proxy is None:
            with suppress(ValueError):  # a URL that cannot be called is told when it is
                self._connections = Connections(self.base_url)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, keepalive_timeout=60),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            headers=self.headers,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close all connections; idempotent."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._connections is not None:
            await self._connections.close()
            self._connections = None

    async def send(
        self,
        method: str,
        path: str,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        beside_version: bool = False,
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of one exchange; `beside_version`: the path does not lie below `/v1`. Raises ModelError
        where there is no answer."""
        assert self._session is not None, "the endpoint is not open"
        url = (self.base_url.removesuffix("/v1") if beside_version else self.base_url) + path
        try:
            if self._connections is not None:
                return await self._connections.exchange(
                    self._head(method, url, data or b"", headers or {}), data or b""
                )
            async with self._session.request(
                method, url, data=data, headers=headers, allow_redirects=False, proxy=self._proxy
            ) as response:
                return response.status, response.headers, await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise self.unreachable(error) from error
        except ValueError as error:
            raise ModelError(FailureKind.MODEL_ERROR, f"the request cannot be sent: {error}") from error

    def _head(self, method: str, url: str, data: bytes, headers: Mapping[str, str]) -> bytes:
        """The request line and the headers; what calls share is written once."""
        shared = self._heads.get((method, url))
        if shared is None:
            shared = self._heads[method, url] = request_head(method, url, self.headers)
        own = header_lines(headers) if headers else b""
        return b"%b%bcontent-length: %d\r\n\r\n" % (shared, own, len(data))

    @asynccontextmanager
    async def receive(
        self, path: str, data: bytes, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes] | dict[str, Any]]:
        """The body of an answer as it arrives, or the whole answer of an endpoint that does not stream. Raises ModelError or
        ContextOverflow where it is neither."""
        assert self._session is not None, "the endpoint is not open"
        try:
            async with self._session.post(
                self.base_url + path, data=data, headers=headers, allow_redirects=False, proxy=self._proxy
            ) as response:
                if response.status != 200:
                    raise self.failure(response.status, response.headers, await response.read())
                if response.content_type != "text/event-stream":
                    yield self.parsed(await response.read())
                else:
                    yield response.content.iter_any()
        except (aiohttp.ClientError, OSError) as error:
            raise self.unreachable(error) from error

    def unreachable(self, error: Exception) -> ModelError:
        """No answer at all, or one that broke off."""
        if isinstance(error, aiohttp.InvalidURL):
            return ModelError(FailureKind.MODEL_ERROR, f"{self.shown_url} is not a URL that can be called")
        words = self.redactor.text(_reason(error)) or type(error).__name__
        if isinstance(error, aiohttp.ClientPayloadError | BrokenOff):
            return ModelError(
                FailureKind.MODEL_ERROR, f"{self.shown_url} broke off its answer: {words}", retryable=True
            )
        return ModelError(FailureKind.MODEL_UNREACHABLE, f"{self.shown_url} is unreachable: {words}", retryable=True)

    def parsed(self, content: bytes) -> Any:
        """A 200 answer's JSON object. Some gateways wrap an error in a 200; that is an error."""
        try:
            payload = wire.loads(content)
        except ValueError:
            payload = None
        if not isinstance(payload, dict):
            raise ModelError(
                FailureKind.MODEL_ERROR,
                f"{self.shown_url} answered 200 with something that is not a JSON object: {self._quoted(content)}",
                status=200,
                retryable=True,
            )
        error = payload.get("error")
        if error and payload.get("object") != "response":
            code = error.get("code") if isinstance(error, dict) else None
            raise self.failure(code if isinstance(code, int) and 400 <= code < 600 else 500, {}, content)
        return payload

    def failure(self, status: int, headers: Mapping[str, str], content: bytes) -> ModelError | ContextOverflow:
        """What an answer with an error status means."""
        code, words = error_words(content)
        words = self.redactor.text(words) or "(no words)"
        if status in (400, 413, 422, 500) and (code in _OVERFLOW_CODES or _OVERFLOW.search(words)):
            return ContextOverflow(words)
        if status in (401, 403):
            key = f" ({self._key_name})" if self._key_name else "; the model has no api_key"
            return ModelError(
                FailureKind.MODEL_ERROR, f"{self.shown_url} refused the key{key}: {status} {words}", status=status
            )
        if 300 <= status < 400:
            where = self.redactor.text(headers.get("location", "elsewhere"))
            message = f"{self.shown_url} redirects to {where}; set base_url to where the model really is"
            return ModelError(FailureKind.MODEL_ERROR, message, status=status)
        limited = status in (429, 503, 529) and code not in _OUT_OF_QUOTA
        return ModelError(
            FailureKind.MODEL_RATE_LIMITED if limited else FailureKind.MODEL_ERROR,
            f"{self.shown_url} answered {status}: {words}",
            status=status,
            retryable=status in _RETRYABLE_STATUS and code not in _OUT_OF_QUOTA,
            retry_after_s=retry_after_s(headers),
        )

    def _quoted(self, content: bytes) -> str:
        return self.redactor.text(content[:200].decode("utf-8", "replace")) or "(nothing)"


def error_words(content: bytes) -> tuple[str | None, str]:
    """The error code, if there is one, and the message of an error body in any of the shapes that are in use."""
    text = content.decode("utf-8", "replace").strip()
    try:
        payload = wire.loads(content)
    except ValueError:
        payload = None
    if not isinstance(payload, dict):
        return None, text[:WORDS_LIMIT]
    error = payload.get("error", payload)
    if isinstance(error, str):
        return None, error[:WORDS_LIMIT]
    if not isinstance(error, dict):
        return None, text[:WORDS_LIMIT]
    words = error.get("message") or error.get("detail") or payload.get("message") or payload.get("detail")
    code = error.get("code") or error.get("type")
    return code if isinstance(code, str) else None, (words if isinstance(words, str) else text)[:WORDS_LIMIT]


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that the endpoint asks to wait: `retry-after-ms`, or `Retry-After` as seconds or as a date (RFC 9110)."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            seconds = float(milliseconds) / 1000
            return max(0.0, seconds) if math.isfinite(seconds) else None
        value = headers.get("retry-after")
        if not value:
            return None
        if re.fullmatch(r"\d+(\.\d+)?", value.strip()):
            return float(value)
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _reason(error: Exception) -> str:
    """Why there is no connection, without what the HTTP library adds."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, TimeoutError):
        return f"no connection within {CONNECT_TIMEOUT_S:g} s"
    if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) and (cause.errno or 0) > 0:
        return os.strerror(cause.errno or 0)
    return str(cause)


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for this URL; looked up once, as asking per request costs more than the request."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if loopback or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)
