"""Scores of labels agree with scikit-learn's."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from sigdask.api import compare
from sigdask.counts import Counts
from sigdask.metrics import find_metric

SCORES = {
    "accuracy": sk.accuracy_score,
    "mcc": sk.matthews_corrcoef,
    "precision[A]": lambda g, p: sk.precision_score(g, p, labels=["A"], average="micro", zero_division=0),
    "recall[A]": lambda g, p: sk.recall_score(g, p, labels=["A"], average="micro", zero_division=0),
    "f1[A]": lambda g, p: sk.f1_score(g, p, labels=["A"], average="micro", zero_division=0),
    "f[A]:beta=2": lambda g, p: sk.fbeta_score(g, p, beta=2, labels=["A"], average="micro", zero_division=0),
    "f[A]:beta=0.5": lambda g, p: sk.fbeta_score(g, p, beta=0.5, labels=["A"], average="micro", zero_division=0),
    "macro-f1": lambda g, p: sk.f1_score(g, p, labels=sorted(set(g)), average="macro", zero_division=0),
    "macro-recall": lambda g, p: sk.recall_score(g, p, labels=sorted(set(g)), average="macro", zero_division=0),
    "macro-precision": lambda g, p: sk.precision_score(g, p, labels=sorted(set(g)), average="macro", zero_division=0),
    "micro-f1": lambda g, p: sk.f1_score(g, p, labels=sorted(set(g)), average="micro", zero_division=0),
    "macro-f1:labels=A+B": lambda g, p: sk.f1_score(g, p, labels=["A", "B"], average="macro", zero_division=0),
    "macro-f:beta=2": lambda g, p: sk.fbeta_score(
        g, p, beta=2, labels=sorted(set(g)), average="macro", zero_division=0
    ),
    "micro-precision": lambda g, p: sk.precision_score(g, p, labels=sorted(set(g)), average="micro", zero_division=0),
    "micro-recall:labels=B+C": lambda g, p: sk.recall_score(g, p, labels=["B", "C"], average="micro", zero_division=0),
    "macro-precision:zero_division=1": lambda g, p: sk.precision_score(
        g, p, labels=sorted(set(g)), average="macro", zero_division=1
    ),
    "precision[A]:zero_division=1": lambda g, p: sk.precision_score(
        g, p, labels=["A"], average="micro", zero_division=1
    ),
}


def compute_score(metric, gold, predicted):
    counts = Counts.from_labels(gold, {"s": predicted, "other": predicted[::-1]})
    bound = find_metric(metric).bind(counts)
    sums = np.array([[int(counts.field(f)[:, 0].sum()) for f in bound.fields]])
    return float(bound.form.score(sums)[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("metric", SCORES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_score_equals_scikit_learns(metric, data):
    n = data.draw(st.integers(3, 40))
    gold = ["A", "B", "C", *data.draw(st.lists(st.sampled_from("ABC"), min_size=n, max_size=n))]
    predicted = data.draw(st.lists(st.sampled_from("ABCD"), min_size=n + 3, max_size=n + 3))
    assert compute_score(metric, gold, predicted) == pytest.approx(SCORES[metric](gold, predicted), abs=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_kappa_equals_scikit_learns():
    rng = np.random.default_rng(0)
    for _ in range(20):
        gold, predicted = rng.choice(list("ABCD"), (2, 50)).tolist()
        assert compute_score("kappa", gold, predicted) == pytest.approx(
            sk.cohen_kappa_score(gold, predicted), abs=1e-12
        )


@pytest.mark.parametrize(
    ("gold", "predicted"), [("AABB", "AAAA"), ("AAAA", "AABB"), ("AAAA", "AAAA"), ("AAAA", "BBBB")]
)
def test_degenerate_margins_score_0_as_in_scikit_learn(gold, predicted):
    with warnings.catch_warnings(action="ignore"):
        expected = sk.matthews_corrcoef(list(gold), list(predicted))
    assert compute_score("mcc", list(gold), list(predicted)) == expected
    assert np.isfinite(compute_score("kappa", list(gold), list(predicted)))


def test_a_macro_average_does_not_depend_on_the_labels_of_the_opponent():
    gold, ours = list("ABAB"), list("AABB")
    scores = [
        compare(ours, other, gold=gold, metric="macro-f1").score_a for other in (list("ABAB"), list("XYZB"), ours)
    ]
    assert scores == [0.5, 0.5, 0.5]
