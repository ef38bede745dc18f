"""The SDK's client off the event loop, and what its failures become."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import grpc
import openshell

from gymflow.errors import RolloutFailure
from gymflow.sandboxes.errors import SandboxError, SandboxUnavailable

ENDPOINT, TOKEN, WORKSPACE = "GYMFLOW_OPENSHELL_ENDPOINT", "GYMFLOW_OPENSHELL_TOKEN", "GYMFLOW_OPENSHELL_WORKSPACE"
"""Environment variables: `https://host:port` (or `http://` on loopback), a bearer token, a workspace. Without an endpoint, the
gateway that the `openshell` command line has registered."""
THREADS = 256
"""Each running command holds one: the SDK is synchronous."""
GONE = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION)

T = TypeVar("T")


class Gateway:
    """One gateway, and the workspace in it."""

    def __init__(self) -> None:
        self.workspace = os.environ.get(WORKSPACE) or "default"
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="openshell")
        try:
            self.client: Any = _client()
        except (openshell.SandboxError, OSError, ValueError) as error:
            raise SandboxUnavailable(f"no OpenShell gateway: set {ENDPOINT}, or register one with its command line ({error})", cause=error) from error  # fmt: skip

    async def call(self, doing: str, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """One call of the client in this workspace. Raises grpc.RpcError of `GONE`, else SandboxUnavailable."""
        try:
            return await self.raw(function, *arguments, workspace=self.workspace, **named)
        except (grpc.RpcError, openshell.SandboxError) as error:
            if code_of(error) in GONE:
                raise
            raise unavailable(error, doing) from error

    async def raw(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """A call in a thread, its errors as they are."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: function(*arguments, **named))

    def close(self) -> None:
        self.client.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _client() -> Any:
    address = os.environ.get(ENDPOINT)
    if not address:
        return openshell.SandboxClient.from_active_cluster()
    scheme, _, endpoint = address.rpartition("://")
    if scheme not in ("http", "https"):
        raise ValueError(f"{ENDPOINT}={address}: expected http:// or https://")
    tls = openshell.TlsConfig() if scheme == "https" else None
    token = os.environ.get(TOKEN) or None
    if token and tls is None and endpoint.rpartition(":")[0] not in ("127.0.0.1", "localhost", "[::1]"):
        raise ValueError(f"{ENDPOINT}={address}: a token is only sent over https")
    return openshell.SandboxClient(endpoint, tls=tls, bearer_token=token)


def code_of(error: BaseException) -> grpc.StatusCode | None:
    """gRPC's word for what went wrong."""
    code = getattr(error, "code", lambda: None)()
    return code if isinstance(code, grpc.StatusCode) else None


def details_of(error: BaseException) -> str:
    """What the gateway says of it."""
    details = getattr(error, "details", lambda: None)()
    return str(details or error)


def unavailable(error: BaseException, doing: str) -> SandboxUnavailable:
    """Of a call that had nothing to do with a started sandbox."""
    match code_of(error):
        case grpc.StatusCode.UNAUTHENTICATED:
            message = "the OpenShell gateway does not accept the credentials"
        case grpc.StatusCode.PERMISSION_DENIED:
            message = f"these OpenShell credentials may not {doing}"
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            message = f"the OpenShell gateway's quota is used up, cannot {doing}"
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.DEADLINE_EXCEEDED:
            message = f"the OpenShell gateway does not answer, cannot {doing}"
        case _:
            message = f"the OpenShell gateway cannot {doing}"
    return SandboxUnavailable(f"{message}: {details_of(error)}", cause=error)


def failed(error: BaseException, doing: str) -> RolloutFailure:
    """Of a call to a sandbox that still exists."""
    refused = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INVALID_ARGUMENT)  # fmt: skip
    return SandboxError(
        f"the OpenShell gateway could not {doing}: {details_of(error)}",
        maybe_ran=code_of(error) not in refused,
        cause=error,
    )
