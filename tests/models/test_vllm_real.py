"""A real vLLM, on the CPU: `make vllm`. It serves the project's own checkpoint, and one with random weights, whose text does not
lead back to the tokens that it was made of."""

import json
import os
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from gymflow.contracts.model import ModelSpec, Sampling
from gymflow.items import function_calls, output_text
from gymflow.models import Gateway, Item, ModelClient, ModelRequest, ModelResponse
from gymflow.models.embedded.checkpoint import read_safetensors
from gymflow.paths import data_dir

PROGRAM = os.environ.get("GYMFLOW_VLLM")
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not PROGRAM, reason="`make vllm` runs these"),
    pytest.mark.asyncio(loop_scope="module"),
]

CHECKPOINT = data_dir() / "embedded"
TURNS = 10
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
}
TOOL: Item = {
    "type": "function",
    "name": "calculate",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "op": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a", "op", "b"],
    },
}


def spec(checkpoint: Path) -> ModelSpec:
    arguments = ["--dtype", "float32", "--max-model-len", "1024", "--enforce-eager", "--max-num-seqs", "16"]
    arguments += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    parameters: dict[str, Any] = {"checkpoint": str(checkpoint), "command": [PROGRAM, "serve"], "arguments": arguments}
    return ModelSpec(
        provider="vllm_local",
        model="tiny",
        parameters=parameters | {"environment": ENVIRONMENT, "start_timeout_s": 900},
    )


def random_weights(folder: Path) -> Path:
    """The checkpoint with weights that have learned nothing, as float32 safetensors."""
    folder.mkdir()
    for file in CHECKPOINT.iterdir():
        if file.suffix in (".json", ".jinja"):
            (folder / file.name).write_bytes(file.read_bytes())
    random = np.random.default_rng(7)
    header: dict[str, Any] = {}
    body = b""
    for name, tensor in read_safetensors(CHECKPOINT / "model.safetensors").items():
        made = tensor if tensor.ndim == 1 else random.normal(0, 0.02, tensor.shape)
        data = made.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    head = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + body)
    config = json.loads((folder / "config.json").read_text())
    for name in ("dtype", "torch_dtype"):
        if name in config:
            config[name] = "float32"
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def trained() -> AsyncIterator[Gateway]:
    async with Gateway({"policy": spec(CHECKPOINT), "own": ModelSpec(provider="embedded")}) as gateway:
        yield gateway


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def untrained(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    served = spec(random_weights(tmp_path_factory.mktemp("random") / "model"))
    async with Gateway({"policy": served}) as gateway:
        inner = gateway["policy"].provider._client  # type: ignore[attr-defined]
        plain = ModelSpec(provider="openai", model="tiny", base_url=inner.spec.base_url, parameters={"token_ids": True})
        async with Gateway({"policy": plain}) as other:
            gateway._upstreams["plain"] = other["policy"]
            yield gateway


def check_chain(client: ModelClient) -> None:
    """Every prompt begins with what was sent and sampled before it, id for id, and each id that was sampled has its
    log-probability."""
    before: list[int] = []
    for call in client.calls:
        tokens = call.tokens
        assert tokens is not None and tokens.completion_token_ids
        assert tokens.chained == (call.parent is not None) and tokens.break_at is None
        whole = client.token_ids(call.index)
        assert whole is not None and whole[: len(before)] == before
        assert len(tokens.logprobs) == len(tokens.completion_token_ids)
        assert all(value is not None and value <= 0 for value in tokens.logprobs)
        before = whole


async def test_the_same_checkpoint_says_the_same_here_and_there(trained: Gateway) -> None:
    """The embedded engine and vLLM run one model: equal prompt ids, equal greedy ids, log-probabilities within rounding."""
    for question in ("What is 12 + 34?", "What is 57 - 21?", "What is 8 + 90?"):
        sampling = Sampling(temperature=0, max_output_tokens=64)
        calls = []
        for model in ("policy", "own"):
            client = trained.client(model)
            await client.create(ModelRequest([{"role": "user", "content": question}], sampling=sampling))
            calls.append(client.calls[0].tokens)
        there, here = calls
        assert there is not None and here is not None
        assert there.prompt_token_ids == here.prompt_token_ids
        assert there.completion_token_ids == here.completion_token_ids
        assert there.logprobs_mode == "raw"


async def test_ten_turns_with_tools_chain_id_for_id(trained: Gateway) -> None:
    client = trained.client("policy", seed=3)
    history: list[Item] = []
    called = 0
    for turn in range(TURNS):
        if not history or history[-1].get("type") != "function_call_output":
            history.append({"role": "user", "content": f"What is {1200 + turn} + {345 + turn}?"})
        request = ModelRequest(list(history), tools=[TOOL], sampling=Sampling(temperature=1, max_output_tokens=64))
        response = await client.create(request)
        history += response.output
        for call in function_calls(response.output):
            called += 1
            history.append({"type": "function_call_output", "call_id": call["call_id"], "output": str(1545 + turn)})
    assert called >= 2
    check_chain(client)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_random_text_drifts_over_plain_history_and_not_over_exact_ids(untrained: Gateway, seed: int) -> None:
    chained = {}
    for model in ("policy", "plain"):
        client = untrained.client(model, seed=seed)
        await converse(client)
        chained[model] = [call.tokens is not None and call.tokens.chained for call in client.calls[1:]]
        if model == "policy":
            check_chain(client)
    assert all(chained["policy"])
    assert not all(chained["plain"])


async def converse(client: ModelClient) -> list[ModelResponse]:
    """Ten turns, in which the model is made to end its turns although it has not learned to."""
    history: list[Item] = []
    answers = []
    for turn in range(TURNS):
        history.append({"role": "user", "content": f"What is {turn} + 1?"})
        sampling = Sampling(temperature=1, max_output_tokens=60, extra={"logit_bias": {str(END_OF_TURN): 4.0}})
        answers.append(await client.create(ModelRequest(list(history), tools=[TOOL], sampling=sampling)))
        history += answers[-1].output
    assert any(output_text(answer.output) for answer in answers)
    return answers


END_OF_TURN = json.loads((CHECKPOINT / "config.json").read_text())["eos_token_id"]
