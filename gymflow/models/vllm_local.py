"""A vLLM server that the run starts itself, from a checkpoint folder, and stops when it ends.

    models:
      policy:
        provider: vllm_local
        model: my-model                       # the name to serve it by
        parameters:
          checkpoint: /checkpoints/step-400   # or a name that the server can resolve
          tensor_parallel_size: 2
          arguments: [--max-model-len, "8192"]

Further settings: `pipeline_parallel_size`, `data_parallel_size`, `command` (default `[vllm, serve]`; the server lives in an
environment of its own, so give its full path), `environment` (variables), `start_timeout_s`, and those of provider `vllm`.
"""

import asyncio
import ctypes
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from gymflow.contracts.model import ModelIdentity, ModelSpec
from gymflow.errors import InputError
from gymflow.models.base import Dialect, EventSink, ModelError, ModelRequest, ModelResponse, Provider
from gymflow.models.vllm import Vllm

START_TIMEOUT_S = 1800.0
STOP_TIMEOUT_S = 20.0
LOG_LINES = 30
_PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
_OWN = frozenset({"checkpoint", "command", "arguments", "environment", "start_timeout_s", *_PARALLEL[:2]})


class VllmLocal(Provider):
    """One server process, with as many engines behind it as asked for."""

    dialect: Dialect | None = "chat"

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        if not spec.parameters.get("checkpoint") or not spec.model:
            raise InputError("a vllm_local model needs `model` (the name to serve it by) and `parameters.checkpoint`")
        inner = {name: value for name, value in spec.parameters.items() if name not in _OWN}
        self._port = _free_port()
        url = f"http://127.0.0.1:{self._port}/v1"
        self._client = Vllm(spec.model_copy(update={"base_url": url, "parameters": inner}))
        self._process: subprocess.Popen[bytes] | None = None
        self._log = Path(os.devnull)

    async def open(self) -> None:
        """Start the server and wait until it can be called. Raises InputError with the end of its log when it cannot."""
        self._start()
        await self._client.open()
        try:
            await self._until_served()
        except BaseException:
            await self.close()
            raise
        self._log.unlink(missing_ok=True)

    async def close(self) -> None:
        await self._client.close()
        process, self._process = self._process, None
        if process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                break
            try:
                await asyncio.to_thread(process.wait, STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                continue
        process.wait()

    def identity(self) -> ModelIdentity:
        return ModelIdentity(provider="vllm", model=self.spec.model, revision=self.spec.revision or self._digest)

    def remote_spec(self) -> ModelSpec:
        return self._client.spec.model_copy(update={"provider": "vllm"})

    async def probe(self) -> None:
        await self._client.probe()

    async def preflight(self) -> None:
        """The server takes minutes to start, so only that it can be: its program and, where it is a path, the checkpoint."""
        program = self.command()[0]
        if shutil.which(program) is None:
            raise InputError(f"there is no program {program!r} to start vLLM with")
        checkpoint = Path(self.spec.parameters["checkpoint"]).expanduser()
        if checkpoint.is_absolute() and not checkpoint.exists():
            raise InputError(f"there is no checkpoint at {checkpoint}")

    async def complete(self, request: ModelRequest) -> ModelResponse:
        return await self._client.complete(request)

    async def stream(self, request: ModelRequest, sink: EventSink) -> ModelResponse:
        return await self._client.stream(request, sink)

    async def text_of(self, token_ids: list[int]) -> str | None:
        return await self._client.text_of(token_ids)

    def command(self) -> list[str]:
        """The server's command line."""
        parameters: dict[str, Any] = self.spec.parameters
        command = [*parameters.get("command", ["vllm", "serve"]), str(parameters["checkpoint"])]
        command += ["--host", "127.0.0.1", "--port", str(self._port), "--served-model-name", self.spec.model]
        for name in _PARALLEL:
            if name in parameters:
                command += [f"--{name.replace('_', '-')}", str(parameters[name])]
        return command + [str(argument) for argument in parameters.get("arguments", ())]

    def _start(self) -> None:
        descriptor, name = tempfile.mkstemp(prefix="gymflow-vllm-", suffix=".log")
        self._log = Path(name)
        environment = {**os.environ, **self.spec.parameters.get("environment", {})}
        try:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        except OSError as error:
            raise InputError(f"the vLLM server cannot be started: {error}") from error
        finally:
            os.close(descriptor)

    async def _until_served(self) -> None:
        loop = asyncio.get_running_loop()
        limit = float(self.spec.parameters.get("start_timeout_s", START_TIMEOUT_S))
        deadline = loop.time() + limit
        process = cast("subprocess.Popen[bytes]", self._process)
        while True:
            if process.poll() is not None:
                raise InputError(f"the vLLM server ended with exit code {process.returncode}:\n{self._end_of_log()}")
            try:
                return await self._client.probe()
            except ModelError as error:
                if loop.time() > deadline:
                    words = f"the vLLM server could not be called within {limit:g} s ({error.message})"
                    raise InputError(f"{words}:\n{self._end_of_log()}") from error
            await asyncio.sleep(0.5)

    def _end_of_log(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([f"(the whole log: {self._log})", *lines[-LOG_LINES:]])

    @cached_property
    def _digest(self) -> str | None:
        """Digest of the checkpoint's files; None for a name that only the server can resolve."""
        folder = Path(self.spec.parameters["checkpoint"]).expanduser()
        if not folder.is_dir():
            return None
        total = hashlib.sha256()
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
            total.update(str(path.relative_to(folder)).encode() + b"\0" + content)
        return total.hexdigest()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> None:
    """Linux: a killed run leaves no server behind that holds the GPU."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)
