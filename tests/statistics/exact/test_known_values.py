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


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("sleep_signflip_two_sided", 1),
        ("sleep_signflip_greater", 1),
        ("tague1981_signflip_two_sided", 1),
        ("float_ties_decimal10", 10),
        ("identical_systems", 1),
    ],
)
def test_sums_of_differences(oracles, name, factor):
    o = oracles[name]
    d = np.rint(np.array(o["inputs"]["d"]) * factor).astype(np.int64)
    values = o["expected"] if isinstance(o["expected"], list) else [o["expected"]]
    for method in iter_methods(SumProblem(d)):
        result = solve(SumProblem(d), method)
        for alternative, value in zip(o["alternative"].strip("[]").split(","), values, strict=True):
            assert getattr(result, alternative.replace("-", "_")) == pytest.approx([value, value], rel=1e-12)


@pytest.mark.parametrize(("name", "form"), [("sentence12_precision", PRECISION), ("sentence12_f1", F1)])
def test_sentences(oracles, name, form):
    counts, (_, greater, two_sided) = oracles[name]["inputs"], oracles[name]["expected_rational"]
    a, b = (np.column_stack([counts[f"tp_{s}"], counts[f"fp_{s}"], counts["gold"]]) for s in "ab")
    problem = QuotientProblem.from_counts(a, b, [a.sum(axis=0), b.sum(axis=0)], *form)
    for method in iter_methods(problem):
        result = solve(problem, method)
        for alternative, value in (("greater", greater), ("two-sided", two_sided)):
            assert getattr(result, alternative.replace("-", "_")) == pytest.approx(
                [float(Fraction(value))] * 2, rel=1e-12
            )


def test_word_errors(oracles):
    i = np.arange(1000)
    d = (i * 7919 + 13) % 21 - 10
    d = np.where(i % 11 == 0, np.abs(d), d)
    assert d.sum() == 446
    for method in iter_methods(SumProblem(d)):
        limits = solve(SumProblem(d), method).greater
        assert limits == pytest.approx([oracles["wer1000_signflip_greater"]["expected"]] * 2, rel=1e-12)


def compute_midranks(values):
    """Return twice the midranks of the sizes, with the signs of the values."""
    sizes = np.abs(values)
    return np.array([2 * (sizes < v).sum() + (sizes == v).sum() + 1 for v in sizes]) * np.sign(values)


def test_wilcoxon_with_ties_and_zeros(oracles):
    o = oracles["tague1981_wilcoxon"]
    assert solve(SumProblem(compute_midranks(o["inputs"]["d"]))).two_sided.p_hi == pytest.approx(
        o["expected"], rel=1e-12
    )
    o = oracles["wilcoxon_zero_pratt"]  # zeros are ranked and then left out
    assert solve(SumProblem(compute_midranks(o["inputs"]["d"]))).two_sided.p_hi == pytest.approx(
        o["expected"], rel=1e-12
    )


@pytest.mark.parametrize("name", ["yeh2000_recall_sign_test", "ir_slides_sign_12_3", "ir_slides_sign_18_9"])
def test_sign_tests(oracles, name):
    o = oracles[name]
    problem = SumProblem(np.repeat([1, -1], [o["inputs"]["wins"], o["inputs"]["losses"]]))
    assert solve(problem).two_sided.p_hi == pytest.approx(o["expected"], rel=1e-12)
