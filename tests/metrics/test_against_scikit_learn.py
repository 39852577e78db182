"""Scores of labels against scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from sigdask.counts import Counts
from sigdask.metrics import find

GOLD = sorted("ABC")
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
    "precision[A]:zero_division=1": lambda g, p: sk.precision_score(
        g, p, labels=["A"], average="micro", zero_division=1
    ),
}


def score(metric, gold, predicted):
    counts = Counts.from_labels(gold, {"s": predicted, "other": predicted[::-1]})
    bound = find(metric).bind(counts)
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
    assert score(metric, gold, predicted) == pytest.approx(SCORES[metric](gold, predicted), abs=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_kappa_equals_scikit_learns():
    rng = np.random.default_rng(0)
    for _ in range(20):
        gold, predicted = rng.choice(list("ABCD"), (2, 50)).tolist()
        assert score("kappa", gold, predicted) == pytest.approx(sk.cohen_kappa_score(gold, predicted), abs=1e-12)
