"""Scores of label sets agree with scikit-learn's, and p-values with all swaps in fractions."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.preprocessing import MultiLabelBinarizer

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.metrics import find_metric, metric

LABELS = list("abcd")
LABEL_SET = st.sets(st.sampled_from(LABELS))

SCORES = {
    "subset-accuracy": sk.accuracy_score,
    "accuracy": sk.accuracy_score,
    "hamming-loss": sk.hamming_loss,
    "precision[a]": lambda g, p: sk.precision_score(g[:, 0], p[:, 0], zero_division=0),
    "jaccard[b]": lambda g, p: sk.jaccard_score(g[:, 1], p[:, 1], zero_division=0),
    "jaccard": lambda g, p: sk.jaccard_score(g, p, average="samples", zero_division=0),
    "jaccard:zero_division=1": lambda g, p: sk.jaccard_score(g, p, average="samples", zero_division=1),
    **{
        f"{average}-{kind}": lambda g, p, average=average, kind=kind: getattr(sk, f"{kind}_score")(
            g, p, average=average, zero_division=0
        )
        for average in ("micro", "macro")
        for kind in ("precision", "recall", "f1", "jaccard")
    },
    **{
        f"samples-{kind}{option}": lambda g, p, kind=kind, option=option: getattr(sk, f"{kind}_score")(
            g, p, average="samples", zero_division=int(bool(option))
        )
        for kind in ("precision", "recall", "f1")
        for option in ("", ":zero_division=1")
    },
    "macro-f1:labels=a+c": lambda g, p: sk.f1_score(g[:, [0, 2]], p[:, [0, 2]], average="macro", zero_division=0),
    "micro-f1:labels=a+c": lambda g, p: sk.f1_score(g[:, [0, 2]], p[:, [0, 2]], average="micro", zero_division=0),
    "macro-f:beta=2": lambda g, p: sk.fbeta_score(g, p, beta=2, average="macro", zero_division=0),
}


def compute_score(metric, counts, system=0):
    bound = find_metric(metric).bind(counts)
    sums = np.array([[counts.field(f)[:, min(system, counts.field(f).shape[1] - 1)].sum() for f in bound.fields]])
    return float(bound.form.score(sums)[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("metric", SCORES)
@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(LABEL_SET, LABEL_SET), min_size=1, max_size=20))
def test_a_score_equals_scikit_learns(metric, items):
    gold, predicted = ([*column, set(LABELS)] for column in zip(*items, strict=True))
    counts = Counts.from_label_sets(gold, {"s": predicted, "other": predicted[::-1]})
    as_bits = MultiLabelBinarizer(classes=LABELS).fit(gold).transform
    assert compute_score(metric, counts) == pytest.approx(SCORES[metric](as_bits(gold), as_bits(predicted)), abs=1e-12)


def test_labels_that_gold_lacks_are_counted_by_items_and_not_by_averages_over_labels():
    gold, predicted = [["a"], ["a", "b"], []], [["a", "x"], ["b"], []]
    counts = Counts.from_label_sets(gold, {"s": predicted, "other": [["y"], [], []]})
    assert (counts.labels, counts.predicted_labels) == (("a", "b"), ("x", "y"))
    # of a and b alone: tp 2, predicted 2, gold 3
    assert compute_score("micro-f1", counts) == pytest.approx(4 / 5)
    assert compute_score("f1", counts) == pytest.approx(4 / 6)  # x is a third prediction
    assert compute_score("macro-f1", counts) == pytest.approx((2 / 3 + 1) / 2)
    assert compute_score("hamming-loss", counts) == pytest.approx(1 / 6)
    assert compute_score("jaccard", counts) == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
    assert compute_score("subset-accuracy", counts) == pytest.approx(1 / 3)
    alone = Counts.from_label_sets(gold, {"s": predicted, "other": gold})
    assert all(compute_score(m, counts) == compute_score(m, alone) for m in SCORES if "labels=" not in m)


def compute_exact_p(values, side="two-sided"):
    """Return p over all swaps of pairs of exact item scores."""
    d = [a - b for a, b in values]
    t = sum(d)
    sums = [
        sum(x if sign else -x for x, sign in zip(d, signs, strict=True)) for signs in product((0, 1), repeat=len(d))
    ]
    extreme = [abs(s) >= abs(t) if side == "two-sided" else s >= t for s in sums]
    return Fraction(sum(extreme), len(sums))


def test_ties_of_jaccard_indices_are_ties():
    # thirds, halves and sixths whose sums are alike in fractions and not in floating point
    gold = [list("abc"), list("ab"), list("abc"), list("abcd"), list("ab"), list("abcd")]
    a = [["a"], ["a"], ["b", "a"], ["d"], ["a", "c"], list("abc")]
    b = [["a", "b"], [], ["c"], ["a", "b"], ["b"], ["a"]]

    def jaccard(x, y):
        return Fraction(len({*x} & {*y}), len({*x} | {*y}))

    counts = Counts.from_label_sets(gold, {"a": a, "b": b})
    values = [(jaccard(g, x), jaccard(g, y)) for g, x, y in zip(gold, a, b, strict=True)]
    for side in ("two-sided", "greater"):
        [result] = compare_all(counts, metrics="jaccard", alternative=side)
        assert result.p_value == float(compute_exact_p(values, side))


def test_black_boxes_see_the_sets_as_tuples():
    counts = Counts.from_label_sets([["a"], []], {"x": [["b", "a"], []], "y": [["a"], ["c"]]})
    calls = []

    def exact(outputs, gold):
        calls.append((outputs, gold))
        return sum(x == y for x, y in zip(outputs, gold, strict=True)) / len(gold)

    [result] = compare_all(counts, metrics=[metric(exact, of="outputs")], interval="none", cluster="none")
    assert calls[0] == ([("a", "b"), ()], [("a",), ()])
    assert (result.score_a, result.score_b) == (0.5, 0.5)


@pytest.mark.parametrize("metric", ["jaccard", "samples-f1", "samples-recall"])
def test_scores_of_sets_say_what_they_need(metric):
    with pytest.raises(InputError, match="needs sets of labels: lists in JSON, or cells such as a|b"):
        find_metric(metric).bind(Counts.from_labels(list("ab"), {"x": list("ab"), "y": list("ba")}))


@pytest.mark.parametrize("metric", ["kappa", "mcc"])
def test_agreement_of_single_labels_is_not_taken_of_sets(metric):
    with pytest.raises(InputError, match="one label per item"):
        find_metric(metric).bind(Counts.from_label_sets([["a"]], {"x": [["a"]], "y": [[]]}))


def test_single_labels_have_a_hamming_loss_and_subset_accuracy_as_in_scikit_learn():
    gold, predicted = list("abca"), list("abbb")
    counts = Counts.from_labels(gold, {"x": predicted, "y": gold})
    assert compute_score("hamming-loss", counts) == sk.hamming_loss(gold, predicted)
    assert compute_score("subset-accuracy", counts) == sk.accuracy_score(gold, predicted)
    assert compute_score("macro-jaccard", counts) == pytest.approx(sk.jaccard_score(gold, predicted, average="macro"))
