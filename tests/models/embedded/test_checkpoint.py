"""A checkpoint folder is read exactly, known by its digest, and refused with the reason."""

import json
import shutil

import numpy as np
import pytest

from gymflow.models.embedded.checkpoint import CheckpointError, checkpoint_digest, load_checkpoint, read_safetensors

from .conftest import SHIPPED, write_safetensors


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(SHIPPED, tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__"))


def test_tensors_of_every_float_type_are_read_as_float32(tmp_path):
    values = np.array([[1.0, -2.5], [0.0, 3e-2]], np.float32)
    upper_halves = (values.view(np.uint32) >> 16).astype("<u2")
    path = tmp_path / "t.safetensors"
    write_safetensors(
        path,
        {
            "a": ("F32", [2, 2], values.tobytes()),
            "b": ("F16", [2, 2], values.astype("<f2").tobytes()),
            "c": ("BF16", [2, 2], upper_halves.tobytes()),
        },
    )
    tensors = read_safetensors(path)
    assert all(t.dtype == np.float32 and t.shape == (2, 2) for t in tensors.values())
    assert np.array_equal(tensors["a"], values)
    assert np.allclose(tensors["b"], values, rtol=1e-3)
    assert np.allclose(tensors["c"], values, rtol=1e-2)


def test_a_tensor_of_another_type_is_refused_by_name(tmp_path):
    write_safetensors(tmp_path / "t.safetensors", {"ids": ("I64", [1], bytes(8))})
    with pytest.raises(CheckpointError, match="ids has type I64"):
        read_safetensors(tmp_path / "t.safetensors")


def test_the_revision_follows_what_decides_the_output(copy):
    shipped = checkpoint_digest(SHIPPED)
    (copy / "README.md").write_text("another model card")
    assert checkpoint_digest(copy) == shipped
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    assert checkpoint_digest(copy) != shipped


def test_a_missing_file_is_named(copy):
    (copy / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model\.safetensors is missing"):
        load_checkpoint(copy)


@pytest.mark.parametrize(
    "change", [{"model_type": "qwen3"}, {"num_key_value_heads": 1}, {"tie_word_embeddings": False}], ids=str
)
def test_an_architecture_that_the_engine_does_not_run_is_refused(copy, change):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(CheckpointError, match="serve other models with vLLM"):
        load_checkpoint(copy)


def test_the_shipped_checkpoint_is_small():
    assert (SHIPPED / "model.safetensors").stat().st_size < 2_500_000
