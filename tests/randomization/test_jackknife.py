"""Tests of the equal-score test of scores that are not sums: DeLong's variance, scores without each unit by NumPy."""

import numpy as np
import pytest
from builders import build_rng
from scipy import stats

import sigdask
from sigdask import Counts, compare_all
from sigdask.analysis.comparison.equal_scores import build_bootstrap
from sigdask.analysis.comparison.jobs import JoinedComparisons, plan_jobs
from sigdask.analysis.comparison.pairs import CompareSpec


def build_family(counts, metric):
    return build_bootstrap(JoinedComparisons.from_sets(plan_jobs(counts, CompareSpec([metric]))), "two-sided")


def draw_numbers(n, seed=2):
    rng = build_rng(seed)
    gold = rng.standard_normal(n)
    return gold, np.round(gold + rng.standard_normal((2, n)), 1)


def compute_placements(labels, x):
    """Return DeLong's placements: of each positive among the negatives, and the other way round."""
    above = np.greater.outer(x[labels], x[~labels]) + 0.5 * np.equal.outer(x[labels], x[~labels])
    return above.mean(axis=1), above.mean(axis=0)


def test_the_standard_error_of_a_difference_of_auc_is_delongs():
    gold, x = draw_numbers(400)
    labels = gold > 0.5
    family = build_family(Counts.from_numbers(labels.astype(float), dict(zip("ab", x, strict=True))), "AUC")
    (pos_a, neg_a), (pos_b, neg_b) = (compute_placements(labels, column) for column in x)
    variance = np.var(pos_a - pos_b) / labels.sum() + np.var(neg_a - neg_b) / (~labels).sum()
    assert family.errors[0] == pytest.approx(np.sqrt(variance), rel=0.01)


def test_the_standard_error_of_a_rank_correlation_is_that_of_scores_without_each_unit():
    gold, x = draw_numbers(60)
    family = build_family(Counts.from_numbers(gold, dict(zip("ab", x, strict=True))), "spearman")
    rho = [[stats.spearmanr(np.delete(gold, u), np.delete(column, u))[0] for u in range(60)] for column in x]
    without = np.subtract(*rho)
    assert family.errors[0] == pytest.approx(59 / 60 * without.std() * np.sqrt(60), rel=1e-6)


def test_a_mean_by_a_function_has_the_p_of_the_mean_and_groups_of_units_have_nearly_its_error():
    mean = sigdask.metric(lambda outputs, _: float(np.mean(outputs)), name="own", of="outputs")
    data = dict(zip("ab", np.round(build_rng(1).standard_normal((2, 150)), 2), strict=True))
    [of_sums], [of_outputs] = (compare_all(data, metrics=[m], trials=99) for m in ("mean", mean))
    assert of_outputs.equal_scores == of_sums.equal_scores
    long = Counts.from_scores(dict(zip("ab", np.round(build_rng(1).standard_normal((2, 4000)), 2), strict=True)))
    assert build_family(long, mean).errors[0] == pytest.approx(build_family(long, "mean").errors[0], rel=0.15)


@pytest.mark.slow
def test_agreements_leave_out_units_and_reasons_say_where_no_test_is_made():
    rng = build_rng(4)
    human = rng.standard_normal(60)
    groups = {"system": [f"s{k % 6}" for k in range(60)], "segment": [f"{k // 6}" for k in range(60)]}
    scores = np.round(human[:, None] + rng.standard_normal((60, 2)), 2)
    counts = Counts(("x", "y"), {"human": human[:, None], "score": scores}, 60, groups=groups)
    family = build_family(counts, "meta-pearson")
    without = [[np.corrcoef(np.delete(human, u), np.delete(column, u))[0, 1] for u in range(60)] for column in scores.T]
    assert family.errors[0] == pytest.approx(59 / 60 * np.subtract(*without).std() * np.sqrt(60), rel=1e-6)
    soft = compare_all(counts, metrics=["meta-spa"], trials=99)[0].equal_scores
    assert (soft.p_value, "random signs" in soft.why) == (None, True)

    def fails_without_all(outputs, _):
        if len(outputs) < 60:
            raise ValueError(len(outputs))
        return float(np.sum(outputs))

    metric = sigdask.metric(fails_without_all, name="whole", of="outputs")
    [r] = compare_all(dict(zip("ab", scores.T, strict=True)), metrics=[metric], trials=99)
    assert (r.equal_scores.p_value, "not defined" in r.equal_scores.why, r.verdict) == (
        None,
        True,
        "not significant",
    )
