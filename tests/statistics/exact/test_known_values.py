"""Tests against published values and those of other programs (sources in tests/data/oracles.json)."""

from fractions import Fraction

import numpy as np
import pytest

from sigdask.statistics.exact import QuotientProblem, SumProblem, iter_methods, solve

PRECISION = [[1, 0, 0]], [[1, 1, 0]]
RECALL = [[1, 0, 0]], [[0, 0, 1]]
F1 = [[2, 0, 0]], [[1, 1, 1]]


def build_yeh(form):
    """Build Yeh's problem from responses: correct, spurious, gold."""
    responses_of_a = [[1, 0, 0]] * 28 + [[0, 1, 0]] * 43 + [[0, 0, 0]] * 15
    responses_of_b = [[0, 0, 0]] * 71 + [[1, 0, 0]] * 6 + [[0, 1, 0]] * 9
    return QuotientProblem.from_counts(responses_of_a, responses_of_b, [[47, 48, 103], [25, 14, 103]], *form)


@pytest.mark.parametrize(
    ("form", "name", "alternative"),
    [
        (RECALL, "yeh2000_recall_one_sided", "greater"),
        (RECALL, "yeh2000_recall_two_sided", "two-sided"),
        (F1, "yeh2000_f1_one_sided", "greater"),
        (F1, "yeh2000_f1_two_sided", "two-sided"),
        (PRECISION, "yeh2000_precision_one_sided", "less"),
        (PRECISION, "yeh2000_precision_two_sided", "two-sided"),
        (PRECISION, "yeh2000_precision_upper_tail", "greater"),
    ],
)
def test_yeh(oracles, form, name, alternative):
    for method in iter_methods(build_yeh(form)):
        result = solve(build_yeh(form), method)
        assert getattr(result, alternative.replace("-", "_")) == pytest.approx(
            [oracles[name]["expected"]] * 2, rel=1e-12
        )
        if result.rationals is not None and oracles[name].get("expected_rational"):
            assert result.rationals[alternative] == Fraction(oracles[name]["expected_rational"])


def test_word_errors(oracles):
    i = np.arange(1000)
    d = (i * 7919 + 13) % 21 - 10
    d = np.where(i % 11 == 0, np.abs(d), d)
    assert d.sum() == 446
    for method in iter_methods(SumProblem(d)):
        limits = solve(SumProblem(d), method).greater
        assert limits == pytest.approx([oracles["wer1000_signflip_greater"]["expected"]] * 2, rel=1e-12)
