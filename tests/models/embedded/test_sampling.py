"""Temperature, top-p and greedy choice give the distribution that they promise."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gymflow.models.embedded.sampling import choose

logit_rows = arrays(np.float32, (3, 8), elements=st.floats(-30, 30, width=32))
uniforms = st.floats(0, 1, exclude_max=True)


def choose_one(logits, temperature=1.0, top_p=1.0, uniform=0.5):
    ids, logprobs = choose(
        np.array([logits], np.float32), np.array([temperature]), np.array([top_p]), np.array([uniform])
    )
    return int(ids[0]), float(logprobs[0])


@settings(deadline=None)
@given(logit_rows, st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.sampled_from([0.1, 0.9, 1.0]), uniforms)
def test_rows_do_not_influence_each_other(rows, temperature, top_p, uniform):
    ids, logprobs = choose(rows, np.full(3, temperature), np.full(3, top_p), np.full(3, uniform))
    assert [choose_one(row, temperature, top_p, uniform) for row in rows] == list(zip(ids, logprobs, strict=True))


@settings(deadline=None)
@given(logit_rows, st.sampled_from([0.3, 1.0]), st.sampled_from([0.01, 0.5, 1.0]), uniforms)
def test_a_drawn_token_always_has_probability(rows, temperature, top_p, uniform):
    _, logprobs = choose(rows, np.full(3, temperature), np.full(3, top_p), np.full(3, uniform))
    assert np.isfinite(logprobs).all()
    assert (logprobs <= 1e-12).all()


def test_tokens_are_drawn_as_often_as_the_softmax_says():
    logits = np.log([0.5, 0.3, 0.2])
    drawn = [choose_one(logits, uniform=(i + 0.5) / 1000) for i in range(1000)]
    assert [sum(token == t for token, _ in drawn) for t in range(3)] == [500, 300, 200]
    assert all(np.isclose(logprob, logits[token], atol=1e-6) for token, logprob in drawn)


def test_temperature_sharpens_and_the_log_probability_says_so():
    token, logprob = choose_one(np.log([0.8, 0.2]), temperature=0.5, uniform=0.0)
    assert token == 0
    assert np.isclose(np.exp(logprob), 0.64 / 0.68)


def test_top_p_keeps_the_likeliest_tokens_and_renormalises():
    drawn = {choose_one(np.log([0.2, 0.5, 0.3]), top_p=0.7, uniform=u) for u in np.linspace(0, 0.999, 50)}
    assert {token for token, _ in drawn} == {1, 2}
    assert np.isclose(sum(np.exp(logprob) for logprob in {logprob for _, logprob in drawn}), 1)


def test_top_p_keeps_at_least_one_token():
    assert choose_one([0.0, 1.0, 0.0], top_p=1e-9, uniform=0.999) == (1, 0.0)


def test_greedy_takes_the_likeliest_and_reports_the_models_own_probability():
    token, logprob = choose_one(np.log([0.2, 0.5, 0.3]), temperature=0.0, top_p=0.1, uniform=0.999)
    assert token == 1
    assert np.isclose(np.exp(logprob), 0.5)
