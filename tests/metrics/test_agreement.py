"""Agreement between a judge and people."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa

from gymflow.metrics.agreement import cohen_kappa, corrected_rate, detection

LABELS = st.sampled_from(["correct", "partly", "incorrect"])


@given(st.lists(st.tuples(LABELS, LABELS), min_size=2, max_size=60))
@settings(max_examples=60, deadline=None)
def test_kappa_and_its_error_are_those_of_statsmodels(pairs):
    ours = cohen_kappa(pairs)
    names = ["correct", "partly", "incorrect"]
    table = np.zeros((3, 3))
    for one, other in pairs:
        table[names.index(one), names.index(other)] += 1
    if ours.value is None:
        assert len(set(pairs)) == 1
        return
    with np.errstate(all="ignore"):
        theirs = cohens_kappa(table)
    assert ours.value == pytest.approx(theirs.kappa, abs=1e-12)
    assert ours.standard_error == pytest.approx(np.nan_to_num(theirs.std_kappa), abs=1e-6)


def test_kappa_of_nothing_and_of_one_label_is_undefined_with_a_reason():
    assert cohen_kappa([]).value is None and "no item" in cohen_kappa([]).reason
    one = cohen_kappa([("a", "a"), ("a", "a")])
    assert (one.value, one.observed) == (None, 1.0) and "same of every item" in one.reason


def test_raters_who_always_disagree():
    assert cohen_kappa([(0, 1), (1, 0)]).value == -1.0


def test_a_rate_is_corrected_for_a_judge_that_passes_too_much():
    pairs = [(True, True)] * 45 + [(False, True)] * 5 + [(True, False)] * 10 + [(False, False)] * 40
    found = detection(pairs)
    assert (found.sensitivity, found.specificity) == (0.9, 0.8)
    assert corrected_rate(0.55, found.sensitivity, found.specificity) == pytest.approx(0.5)


@pytest.mark.parametrize(("sensitivity", "specificity"), [(None, 0.9), (0.9, None), (0.5, 0.5), (0.2, 0.3)])
def test_a_judge_no_better_than_chance_corrects_nothing(sensitivity, specificity):
    assert corrected_rate(0.5, sensitivity, specificity) is None


def test_a_corrected_rate_stays_a_rate():
    assert corrected_rate(0.05, 0.9, 0.8) == 0.0 and corrected_rate(1.0, 0.9, 0.8) == 1.0
