"""A server of the run's own: started from a checkpoint, explained when it does not start, and gone afterwards."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gymflow.contracts.model import ModelSpec
from gymflow.errors import InputError
from gymflow.models import Gateway, ModelRequest
from gymflow.models.vllm_local import VllmLocal
from tests.support import endpoint as endpoint_module

SERVER = """
import json, os, sys
from pathlib import Path
arguments = sys.argv[1:]
Path(os.environ["SEEN"]).write_text(json.dumps([os.getpid(), *arguments]))
if "--broken" in arguments:
    print("ValueError: no such checkpoint")
    sys.exit(3)
port, model = arguments[arguments.index("--port") + 1], arguments[arguments.index("--served-model-name") + 1]
os.execv(sys.executable, [sys.executable, os.environ["ENDPOINT"], "--port", port, "--model", model])
"""


@pytest.fixture
def local(tmp_path: Path) -> Any:
    (tmp_path / "vllm.py").write_text(SERVER)
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint/config.json").write_text("{}")

    def make(**parameters: Any) -> ModelSpec:
        environment = {"SEEN": str(tmp_path / "seen"), "ENDPOINT": str(Path(endpoint_module.__file__))}
        own = {"checkpoint": str(tmp_path / "checkpoint"), "command": [sys.executable, str(tmp_path / "vllm.py")]}
        return ModelSpec(
            provider="vllm_local", model="mine", parameters={**own, "environment": environment, **parameters}
        )

    return make


async def test_a_checkpoint_is_served_for_as_long_as_the_run_lasts(local, tmp_path):
    spec = local(tensor_parallel_size=2, data_parallel_size=3, arguments=["--max-model-len", 64])
    async with Gateway({"policy": spec}) as gateway:
        response = await gateway.client("policy").create(ModelRequest([{"role": "user", "content": "[[answer:hi]]"}]))
        seen = (tmp_path / "seen").read_text()
    assert response.output[0]["content"][0]["text"] == "hi"
    pid, *arguments = json.loads(seen)
    assert arguments[0] == str(tmp_path / "checkpoint")
    tail = ["--tensor-parallel-size", "2", "--data-parallel-size", "3", "--max-model-len", "64"]
    assert arguments[-6:] == tail
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_server_that_does_not_start_shows_its_log(local):
    began = time.monotonic()
    with pytest.raises(InputError, match="exit code 3") as error:
        async with Gateway({"policy": local(arguments=["--broken"])}):
            pass
    assert "ValueError: no such checkpoint" in str(error.value)
    assert time.monotonic() - began < 10
    with pytest.raises(InputError, match="cannot be started"):
        async with Gateway({"policy": local(command=["/nowhere/vllm"])}):
            pass


async def test_preflight_looks_without_starting_anything(local, tmp_path):
    await Gateway({"policy": local()}).preflight()
    assert not (tmp_path / "seen").exists()
    with pytest.raises(InputError, match="no program '/nowhere/vllm'"):
        await Gateway({"policy": local(command=["/nowhere/vllm"])}).preflight()
    with pytest.raises(InputError, match="no checkpoint at /nowhere/step-1"):
        await Gateway({"policy": local(checkpoint="/nowhere/step-1")}).preflight()


def test_its_identity_is_the_digest_of_the_checkpoints_files(local, tmp_path):
    first = VllmLocal(local()).identity()
    assert first.pinned
    assert VllmLocal(local()).identity() == first
    (tmp_path / "checkpoint/config.json").write_text('{"changed": true}')
    assert VllmLocal(local()).identity() != first
    assert not VllmLocal(local(checkpoint="hub/name")).identity().pinned


def test_a_checkpoint_has_to_be_named(local):
    with pytest.raises(InputError, match=r"`parameters\.checkpoint`"):
        VllmLocal(ModelSpec(provider="vllm_local", model="m"))
