"""The shipped model, and one with random weights whose text does not come back as the same tokens."""

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from gymflow.models.embedded.chat import ChatTokenizer
from gymflow.models.embedded.checkpoint import load_checkpoint
from gymflow.models.embedded.transformer import Transformer
from gymflow.paths import data_dir

SHIPPED = data_dir() / "embedded"


def write_safetensors(path: Path, tensors: dict[str, tuple[str, list[int], bytes]]) -> None:
    """Write tensors given as (type, shape, bytes)."""
    header, body = {}, b""
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    encoded = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + body)


@pytest.fixture(scope="session")
def tokenizer() -> ChatTokenizer:
    return ChatTokenizer(SHIPPED)


@pytest.fixture(scope="session")
def transformer() -> Transformer:
    return Transformer(load_checkpoint(SHIPPED))


@pytest.fixture(scope="session")
def random_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped architecture and tokenizer with random weights."""
    folder = tmp_path_factory.mktemp("random-weights")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(SHIPPED / name, folder / name)
    rng = np.random.default_rng(0)
    tensors = {}
    for name, weight in load_checkpoint(SHIPPED).weights.items():
        values = rng.normal(0, 0.1, weight.shape) + (weight.ndim == 1)
        tensors[name] = ("F32", list(weight.shape), values.astype("<f4").tobytes())
    write_safetensors(folder / "model.safetensors", tensors)
    return folder
