"""Reading a Llama checkpoint folder (`config.json`, `model.safetensors`, tokenizer and chat template) without torch."""

import hashlib
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# What the model's behaviour depends on; the model card and the training script may change without a new revision.
_BEHAVIOUR_FILES = (
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
)


class CheckpointError(ValueError):
    """The folder is not a checkpoint that this engine can run."""


@dataclass(frozen=True)
class ModelConfig:
    """The sizes of a Llama, under the names of its `config.json`."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads


@dataclass(frozen=True)
class Checkpoint:
    """Configuration and float32 weights by their safetensors names; `revision` is the digest of the files."""

    config: ModelConfig
    weights: dict[str, np.ndarray]
    revision: str


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint folder; raises `CheckpointError` if it is not a plain Llama with tied embeddings."""
    try:
        raw = json.loads((path / "config.json").read_bytes())
        weights = read_safetensors(path / "model.safetensors")
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} is not a checkpoint folder: {error.filename} is missing") from error
    return Checkpoint(_model_config(raw, path), weights, checkpoint_digest(path))


def checkpoint_digest(path: Path) -> str:
    """SHA-256 over the names and bytes of the files that decide what the model says."""
    digest = hashlib.sha256()
    for name in _BEHAVIOUR_FILES:
        file = path / name
        if file.is_file():
            digest.update(f"{name}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    return f"sha256:{digest.hexdigest()}"


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """All tensors of a safetensors file as float32; F32, F16 and BF16 are understood."""
    data = path.read_bytes()
    (header_size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + header_size])
    body = memoryview(data)[8 + header_size :]
    return {name: _tensor(name, entry, body) for name, entry in header.items() if name != "__metadata__"}


def _tensor(name: str, entry: dict[str, Any], body: memoryview) -> np.ndarray:
    start, end = entry["data_offsets"]
    kind = entry["dtype"]
    if kind == "BF16":  # the upper half of a float32
        values = (np.frombuffer(body[start:end], "<u2").astype(np.uint32) << 16).view(np.float32)
    elif kind in ("F16", "F32"):
        values = np.frombuffer(body[start:end], {"F16": "<f2", "F32": "<f4"}[kind]).astype(np.float32)
    else:
        raise CheckpointError(f"tensor {name} has type {kind}; F32, F16 and BF16 are understood")
    return values.reshape(entry["shape"])


def _model_config(raw: dict[str, Any], path: Path) -> ModelConfig:
    heads = raw.get("num_attention_heads", 0)
    rope = raw.get("rope_parameters") or {"rope_theta": raw.get("rope_theta", 10000.0)}
    plain = (
        raw.get("model_type") == "llama"
        and raw.get("num_key_value_heads", heads) == heads
        and raw.get("tie_word_embeddings")
        and raw.get("hidden_act", "silu") == "silu"
        and rope.get("rope_type", "default") == "default"
    )
    if not plain:
        raise CheckpointError(
            f"{path}/config.json: the embedded engine runs Llama checkpoints with tied embeddings, as many key-value heads as "
            "heads and plain rotary positions; serve other models with vLLM"
        )
    names = (
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "max_position_embeddings",
        "rms_norm_eps",
    )
    return ModelConfig(**{name: raw[name] for name in names}, num_attention_heads=heads, rope_theta=rope["rope_theta"])
