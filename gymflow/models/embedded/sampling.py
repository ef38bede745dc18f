"""From logits to tokens: temperature, nucleus (top-p) and greedy choice, with the log-probability of what was chosen.

A log-probability is that of the distribution which the token was drawn from, after temperature and top-p: what an importance
ratio in training needs. Greedy choice (temperature 0) reports the model's own distribution, at temperature 1.
"""

import numpy as np


def choose(
    logits: np.ndarray, temperature: np.ndarray, top_p: np.ndarray, uniform: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Choose one token a row.

    `logits` is (rows, vocabulary); the others have one value a row, `uniform` in [0, 1). Returns token ids and natural
    log-probabilities. Rows do not influence each other.
    """
    greedy = temperature == 0
    scaled = logits.astype(np.float64) / np.where(greedy, 1.0, temperature)[:, None]
    scaled -= scaled.max(axis=1, keepdims=True)
    probabilities = np.exp(scaled)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    for row in np.flatnonzero((top_p < 1) & ~greedy):
        probabilities[row] = _nucleus(probabilities[row], top_p[row])
    cumulative = probabilities.cumsum(axis=1)
    # Scaled by the row's total, so that rounding can never point past the last token, nor at one without probability.
    drawn = (cumulative <= (uniform * cumulative[:, -1])[:, None]).sum(axis=1)
    ids = np.where(greedy, logits.argmax(axis=1), drawn)
    return ids, np.log(probabilities[np.arange(len(ids)), ids])


def _nucleus(probabilities: np.ndarray, top_p: float) -> np.ndarray:
    """The smallest set of likeliest tokens that holds `top_p` of the probability, at least one, renormalised."""
    order = np.argsort(-probabilities, kind="stable")
    kept = order[: np.searchsorted(probabilities[order].cumsum(), top_p) + 1]
    nucleus = np.zeros_like(probabilities)
    nucleus[kept] = probabilities[kept] / probabilities[kept].sum()
    return nucleus
