"""Tests of family-wise error, power and size under dependence, by simulation (STATISTICS, 7 and 8)."""

import numpy as np
import pytest
from builders import build_panel, build_rng
from scipy import stats

from benchmarks.calibration import families as simulated
from benchmarks.calibration.compared import MEAN
from sigdask.analysis.comparison.families import compute_joint_p_values
from sigdask.execution.run import count_jobs
from sigdask.randomization.families.max_t import MaxTFamily
from sigdask.randomization.families.tukey import Relabelling
from sigdask.randomization.panels.build import FamilyMember
from sigdask.randomization.slabs import Job
from sigdask.statistics.multiplicity import P_VALUE_ADJUSTMENTS

pytestmark = pytest.mark.slow

N_SYSTEMS, N_TOPICS, N_TRIALS, N_SETS = 5, 25, 399, 2000
PAIRS = [(i, j) for i in range(N_SYSTEMS) for j in range(i + 1, N_SYSTEMS)]
PAIR_ROWS = np.array([[0, row] for row in range(len(PAIRS))])


def draw_scores(name, rng):
    """Draw scores of topics in steps of 0.001, all systems with one mean, correlated by topic."""
    shape = (N_TOPICS, N_SYSTEMS)
    topic = rng.standard_normal((N_TOPICS, 1))
    noise = rng.standard_normal(shape)
    if name == "outlier":
        noise[:, 0] = rng.standard_t(2, N_TOPICS)
    if name == "unequal variances":
        noise *= np.array([4.0, 1.0, 1.0, 1.0, 1.0])
    if name == "skewed":
        noise = rng.exponential(1.0, shape) - 1.0
    return np.rint(1000 * (topic + noise)).astype(np.int64)


def build_families(values, seed):
    panel = build_panel(np.stack([values, np.ones_like(values)], axis=-1), [MEAN], seed=seed)
    return MaxTFamily((FamilyMember(panel, 0),), PAIR_ROWS[:, None, :], studentised=True), Relabelling(
        (FamilyMember(panel, 0),), PAIR_ROWS
    )


def simulate_p_values(name, n_sets, effect=0.0):
    """Return adjusted p by max-T, Tukey and Holm, shape (n_sets, 3, n_pairs), counted on the engine."""
    rng, family_pairs = build_rng(sum(map(ord, name))), []
    for k in range(n_sets):
        values = draw_scores(name, rng)
        values[:, -1] += round(1000 * effect)
        family_pairs.append(build_families(values, k))
    jobs = [Job(family, N_TRIALS) for pair in family_pairs for family in pair]
    tallies = count_jobs(jobs, cluster="none")
    p_of_sets = []
    for k, (family, relabelling) in enumerate(family_pairs):
        swapped, relabelled = tallies[2 * k], tallies[2 * k + 1]
        marginal = (swapped.counts[:, 0, 2] + 1) / (N_TRIALS + 1)
        p_of_sets.append(
            [
                compute_joint_p_values(family, swapped)[0],
                compute_joint_p_values(relabelling, relabelled)[0],
                P_VALUE_ADJUSTMENTS["holm"](marginal),
            ]
        )
    return np.array(p_of_sets)


@pytest.mark.parametrize("name", ["equal", "outlier", "unequal variances", "skewed"])
def test_family_wise_error(name):
    p = simulate_p_values(name, N_SETS)
    wrong = (p.min(axis=2) <= 0.05).sum(axis=0)
    for method, count in zip(("max-t", "tukey", "holm"), wrong, strict=True):
        if (method, name) == ("tukey", "unequal variances"):
            assert count / N_SETS > 0.07  # 0.09 to 0.16 in the specification: the caveat is true
        else:
            assert stats.binomtest(int(count), N_SETS, 0.05, alternative="greater").pvalue > 1e-4, (method, count)
    if name == "equal":  # full exchangeability: Tukey's is exact
        assert stats.binomtest(int(wrong[1]), N_SETS, 0.05).pvalue > 1e-4


def test_systems_skewed_in_opposite_directions_are_found_too_often_and_noted():
    wrong, noted = simulated.measure_errors_and_notes(simulated.NULLS["exponentials, every other one turned"], 500)
    assert 0.06 < wrong < 0.16  # 0.085 to 0.113 in the specification
    assert noted > 0.7
