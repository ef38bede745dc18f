"""The Llama forward pass in numpy, with a key-value cache for sequences of any lengths.

**What a sequence gets does not depend on its company.** BLAS may round a row of a product differently when the matrix around it
has another shape, or when the row stands elsewhere in it. So each decoded token is multiplied as a vector by itself (numpy makes
one BLAS call of it for each), a prompt is processed by itself, and the capacity of a sequence's cache follows from its length.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gymflow.models.embedded.checkpoint import Checkpoint

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

PREFILL_TOKENS = 256
"""Prompt tokens in one pass: bounds the memory of a long prompt's attention scores."""
_SMALLEST_CAPACITY = 64
_MASKED = np.float32(-1e30)


class CachePool:
    """Keys and values of the sequences whose caches have one capacity, in adjacent slots so that no step copies them."""

    def __init__(self, layers: int, heads: int, capacity: int, head_dim: int) -> None:
        self.capacity = capacity
        self.count = 0
        self.keys = np.zeros((layers, 4, heads, capacity, head_dim), np.float32)
        self.values = np.zeros_like(self.keys)

    def add(self) -> int:
        """Take the next slot; its content is stale."""
        if self.count == self.keys.shape[1]:
            self.keys = np.concatenate([self.keys, np.zeros_like(self.keys)], axis=1)
            self.values = np.concatenate([self.values, np.zeros_like(self.values)], axis=1)
        self.count += 1
        return self.count - 1

    def remove(self, slot: int) -> None:
        """Free a slot; the last slot's sequence moves into it."""
        self.count -= 1
        if slot != self.count:
            self.keys[:, slot] = self.keys[:, self.count]
            self.values[:, slot] = self.values[:, self.count]


class Transformer:
    """Weights arranged for the forward pass: norms, and the scale of attention, are folded into the projections."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        config, weights = checkpoint.config, checkpoint.weights
        self.config = config
        self._embedding = weights["model.embed_tokens.weight"]
        self._head = _folded(self._embedding, weights["model.norm.weight"])
        self._layers = [_Layer(checkpoint, index) for index in range(config.num_hidden_layers)]
        frequencies = config.rope_theta ** (-np.arange(0, config.head_dim, 2) / config.head_dim)
        angles = np.outer(np.arange(config.max_position_embeddings), frequencies)
        self._cos, self._sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    @staticmethod
    def capacity(length: int) -> int:
        """The cache capacity of a sequence of this many tokens: the next power of two, at least 64."""
        return max(_SMALLEST_CAPACITY, 1 << (length - 1).bit_length())

    def new_pool(self, capacity: int) -> CachePool:
        config = self.config
        return CachePool(config.num_hidden_layers, config.num_attention_heads, capacity, config.head_dim)

    def prefill(self, token_ids: Sequence[int], pool: CachePool, slot: int) -> Floats:
        """Process a whole prompt into a slot; returns the logits (vocab_size) after its last token."""
        hidden: Floats = np.empty(0, np.float32)
        for start in range(0, len(token_ids), PREFILL_TOKENS):
            chunk = np.asarray(token_ids[start : start + PREFILL_TOKENS])[None]
            positions = np.arange(start, start + chunk.shape[1])[None]
            hidden = self._forward(chunk, positions, [_Span(pool, slot, slot + 1, start + chunk.shape[1])])
        logits: Floats = self._logits(hidden[:, -1:])[0, 0]
        return logits

    def decode(self, token_ids: Ints, positions: Ints, pools: Sequence[CachePool]) -> Floats:
        """One token for every sequence in `pools`, in the order of pools and slots; returns logits (sequences, vocab_size)."""
        spans = [_Span(pool, 0, pool.count, pool.capacity) for pool in pools]
        return self._logits(self._forward(token_ids[:, None], positions[:, None], spans))[:, 0]

    def _forward(self, token_ids: Ints, positions: Ints, spans: Sequence["_Span"]) -> Floats:
        """Hidden states (sequences, tokens, hidden_size) of new tokens (sequences, tokens) of the sequences in `spans`."""
        hidden = self._embedding[token_ids]
        cos, sin = self._cos[positions][:, :, None], self._sin[positions][:, :, None]
        views = []
        start = 0
        for span in spans:
            rows = slice(start, start + span.end - span.first)
            at = positions[rows]
            bias = np.where(np.arange(span.width) <= at[:, None, :, None], np.float32(0), _MASKED)
            keys, values = (
                cache[:, span.first : span.end, :, : span.width] for cache in (span.pool.keys, span.pool.values)
            )
            views.append((rows, keys, values, np.arange(span.end - span.first)[:, None], at, bias))
            start = rows.stop
        for index, layer in enumerate(self._layers):
            q, k, v = self._project(layer, hidden, cos, sin)
            mixed = np.empty_like(hidden)
            for rows, keys, values, slots, at, bias in views:
                keys[index, slots, :, at] = k[rows]
                values[index, slots, :, at] = v[rows]
                attended = _attend(q[rows].swapaxes(1, 2), keys[index], values[index], bias)
                mixed[rows] = attended.swapaxes(1, 2).reshape(mixed[rows].shape)
            hidden = layer.finish(hidden, mixed)
        return hidden

    def _project(self, layer: "_Layer", hidden: Floats, cos: Floats, sin: Floats) -> tuple[Floats, Floats, Floats]:
        """Queries, keys and values (sequences, tokens, heads, head_dim), queries and keys turned by their positions."""
        heads, size = self.config.num_attention_heads, self.config.head_dim
        joint = _normed(hidden, self.config.rms_norm_eps) @ layer.qkv
        joint = joint.reshape(*hidden.shape[:2], 3 * heads, size)
        first, second = joint[:, :, : 2 * heads, : size // 2], joint[:, :, : 2 * heads, size // 2 :]
        turned = np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
        return turned[:, :, :heads], turned[:, :, heads:], joint[:, :, 2 * heads :]

    def _logits(self, hidden: Floats) -> Floats:
        logits: Floats = _normed(hidden, self.config.rms_norm_eps) @ self._head
        return logits


class _Span(NamedTuple):
    """Sequences in adjacent slots of a pool, and how many cache positions their attention looks at."""

    pool: CachePool
    first: int
    end: int
    width: int


class _Layer:
    """One transformer block's matrices, each (inputs, outputs)."""

    def __init__(self, checkpoint: Checkpoint, index: int) -> None:
        def matrix(name: str) -> Floats:
            return checkpoint.weights[f"model.layers.{index}.{name}.weight"]

        self._eps = checkpoint.config.rms_norm_eps
        queries = matrix("self_attn.q_proj") / np.float32(np.sqrt(checkpoint.config.head_dim))
        qkv = np.concatenate([queries, matrix("self_attn.k_proj"), matrix("self_attn.v_proj")])
        self.qkv = _folded(qkv, matrix("input_layernorm"))
        self.out = np.ascontiguousarray(matrix("self_attn.o_proj").T)
        gate_up = np.concatenate([matrix("mlp.gate_proj"), matrix("mlp.up_proj")])
        self.gate_up = _folded(gate_up, matrix("post_attention_layernorm"))
        self.down = np.ascontiguousarray(matrix("mlp.down_proj").T)

    def finish(self, hidden: Floats, mixed: Floats) -> Floats:
        """What follows attention: its output projection and the gated feed-forward part, both with their residuals."""
        hidden = hidden + mixed @ self.out
        joint = _normed(hidden, self._eps) @ self.gate_up
        gate, up = np.split(joint, 2, axis=-1)
        finished: Floats = hidden + (gate / (1 + np.exp(-gate)) * up) @ self.down
        return finished


def _folded(matrix: Floats, norm: Floats) -> Floats:
    """A projection (inputs, outputs) that carries the scale of the norm before it."""
    folded: Floats = (matrix * norm).T
    return np.ascontiguousarray(folded)


def _normed(rows: Floats, eps: float) -> Floats:
    mean_square = (rows * rows).mean(axis=-1, keepdims=True)
    normed: Floats = rows / np.sqrt(mean_square + np.float32(eps))
    return normed


def _attend(q: Floats, keys: Floats, values: Floats, bias: Floats) -> Floats:
    """Softmax attention over the last two axes; `bias` hides what lies ahead or is stale."""
    scores = q @ keys.swapaxes(-1, -2) + bias
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    attended: Floats = (scores @ values) / scores.sum(axis=-1, keepdims=True)
    return attended
