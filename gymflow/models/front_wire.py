"""What the gateway and its front process tell each other: length-prefixed JSON, and model calls as JSON."""

import asyncio
import struct
from typing import Any, Protocol

from gymflow.contracts.model import Sampling
from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.trajectory import Usage
from gymflow.models import wire
from gymflow.models.base import ContextOverflow, ModelError, ModelRequest, ModelResponse, TokenIds

_LENGTH = struct.Struct(">I")


class Writer(Protocol):
    """The part of a stream writer that a message needs."""

    def write(self, data: bytes, /) -> Any:
        """Queue bytes."""
        ...


def send(writer: Writer, message: dict[str, Any]) -> None:
    """Queue one message."""
    data = wire.dumps(message)
    writer.write(_LENGTH.pack(len(data)) + data)


async def receive(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next message, or None when the other side is gone."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        message: dict[str, Any] = wire.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return message


def request_json(request: ModelRequest) -> dict[str, Any]:
    """A request as JSON."""
    fields = {name: getattr(request, name) for name in ModelRequest.__slots__}
    return fields | {"sampling": request.sampling.given}


def request_of(fields: dict[str, Any]) -> ModelRequest:
    """The request that was sent."""
    native = fields["native"]
    return ModelRequest(
        **fields | {"sampling": Sampling(**fields["sampling"]), "native": (native[0], native[1]) if native else None}
    )


def response_json(response: ModelResponse) -> dict[str, Any]:
    """A response as JSON. What the endpoint said literally went to the caller, and only there."""
    fields = {name: getattr(response, name) for name in ModelResponse.__slots__}
    tokens = response.tokens
    return fields | {
        "native": None,
        "usage": response.usage.model_dump(exclude_none=True),
        "tokens": {name: getattr(tokens, name) for name in TokenIds.__slots__} if tokens else None,
    }


def response_of(fields: dict[str, Any]) -> ModelResponse:
    """The response that was sent."""
    tokens = fields["tokens"]
    return ModelResponse(
        **fields | {"usage": Usage(**fields["usage"]), "tokens": TokenIds(**tokens) if tokens else None}
    )


def error_json(error: ModelError | ContextOverflow) -> dict[str, Any]:
    """A failed attempt as JSON."""
    if isinstance(error, ContextOverflow):
        return {"overflow": str(error)}
    names = ("kind", "message", "status", "retryable", "retry_after_s")
    return {name: getattr(error, name) for name in names}


def error_of(fields: dict[str, Any]) -> ModelError | ContextOverflow:
    """The failure that was sent."""
    if "overflow" in fields:
        return ContextOverflow(fields["overflow"])
    return ModelError(FailureKind(fields.pop("kind")), fields.pop("message"), **fields)
