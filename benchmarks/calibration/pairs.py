"""Error rates and power of tests of one pair on simulated data, with cross-checks."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.calibration.attainable import MAX_ENUMERATED_UNITS, compute_attainable_size
from benchmarks.calibration.compared import build_score_counts, compare_pairs, compute_p_values, draw_seed
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.scenarios import SCENARIOS, SCENARIOS_BY_NAME, Rng, Scenario, to_thousandths
from sigdask.statistics.classical import compute_t, sign_test, two_proportion_z, wilcoxon

ALPHA, N_TRIALS = 0.05, 999
N_CLUSTERS, CLUSTER_SIZE = 50, 10
SAMPLED: dict[str, Any] = {"method": "randomization", "trials": N_TRIALS}


def compute_paired_t_p(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p of the paired t-test for each column of differences; NaN where all units differ by the same."""
    n, total = len(differences), differences.sum(axis=0)
    squares = ((differences - total / n) ** 2).sum(axis=0)
    return compute_t(total, squares, n, n - 1, "two-sided")[1]


def compute_signed_rank_p(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the p-values of Wilcoxon's signed-rank tests of columns of differences."""
    return wilcoxon(differences.T).p_value


def cases() -> list[Case]:
    """Return the cases of pairs."""
    return [
        *(Case("pairs", f"{s.row}, {n}", partial(measure_size, s, n)) for s in SCENARIOS for n in s.sizes),
        *(Case("exact", f"{name}, {n}", partial(measure_exact, SCENARIOS_BY_NAME[name], n), 4_000, 100)
          for name in ("normal", "lognormal", "grades 0 to 3", "0/1 at 8 %") for n in (20, 50)),
        *(Case("classical", f"{s.row}, {n}", partial(measure_classical, s, n)) for s in SCENARIOS for n in s.sizes),
        *(Case("checks", f"{name}, 50", partial(measure_checks, SCENARIOS_BY_NAME[name]), at_once=100) for name in ("normal", "0/1 at 60 %, r = 0.8")),
        *(Case("dependence", f"ICC {icc:g}", partial(measure_clustered, icc), at_once=100) for icc in (0.0, 0.1, 0.3)),
        *(Case("power", f"normal, {n} units, better by {shift:g} sd", partial(power, n, shift))
          for n, shift in ((10, 1.0), (20, 0.7), (50, 0.4), (100, 0.3))),
        *(Case("power", f"{s.row}, 30 units", partial(measure_scenario_power, s)) for s in SCENARIOS),
        Case("power", "34 signs, better with P = 0.7", measure_sign_power),
    ]  # fmt: skip


def measure_size(scenario: Scenario, n_units: int, rng: Rng, n_sets: int) -> Outcomes:
    """Return which differences of systems with equal means each test finds."""
    a, b = scenario.draw(rng, n_units, n_sets)
    counts, d = build_score_counts(a, b), a - b
    outcomes = {}
    if n_units <= MAX_ENUMERATED_UNITS:
        p = compute_p_values(counts, method="exact")
        outcomes["all arrangements"] = Outcome(p <= ALPHA, compute_attainable_size(d, ALPHA, "two-sided", None))
    for name, side in (("two-sided", "two-sided"), ("greater", "greater"), ("less", "less")):
        p = compute_p_values(counts, alternative=side, seed=draw_seed(rng), **SAMPLED)
        outcomes[f"sampled, {name}"] = Outcome(p <= ALPHA, compute_attainable_size(d, ALPHA, side, N_TRIALS))
    return outcomes


def measure_exact(scenario: Scenario, n_units: int, rng: Rng, n_sets: int) -> Outcomes:
    """Return which differences exact p-values find, for too many units to enumerate."""
    a, b = scenario.draw(rng, n_units, n_sets)
    p = compute_p_values(build_score_counts(a, b), method="exact")
    return {"exact p": Outcome(p <= ALPHA, compute_attainable_size(a - b, ALPHA, "two-sided", None))}


def measure_classical(scenario: Scenario, n_units: int, rng: Rng, n_sets: int) -> Outcomes:
    """Return which differences the classical tests find; on 0/1 scores McNemar's is the sign test."""
    a, b = scenario.draw(rng, n_units, n_sets)
    d = a - b
    ranks_without_zeros = stats.rankdata(np.where(d == 0, np.inf, np.abs(d)), axis=0) * np.sign(d)
    squares = n_units * (a.var(axis=0) + b.var(axis=0))
    outcomes = {
        "t": Outcome(compute_paired_t_p(d) <= ALPHA),
        "sign": _build_exact_outcome(sign_test((d > 0).sum(axis=0), (d < 0).sum(axis=0)), np.sign(d)),
        "wilcoxon": _build_exact_outcome(compute_signed_rank_p(d), ranks_without_zeros),
        "two-sample-t": Outcome(compute_t(d.sum(axis=0), squares, n_units, n_units - 1, samples=2)[1] <= ALPHA),
    }
    if set(np.unique([a, b])) <= {0, 1}:
        p = two_proportion_z(a.sum(axis=0), n_units, b.sum(axis=0), n_units)[1]
        outcomes["binomial"] = Outcome(p <= ALPHA)
    return outcomes


def _build_exact_outcome(p: NDArray[np.float64], d: NDArray[Any]) -> Outcome:
    """Return the outcome of an exact test, with the size that is attainable for these scores."""
    return Outcome(p <= ALPHA, compute_attainable_size(d, ALPHA, "two-sided", None))


def measure_checks(scenario: Scenario, rng: Rng, n_sets: int) -> Outcomes:
    """Return how often a cross-check rejects two correct counts: at 0.05, and by an alarm."""
    counts = build_score_counts(*scenario.draw(rng, 50, n_sets))
    table = compare_pairs(counts, second_run=True, seed=draw_seed(rng), **SAMPLED).table
    outcomes = {"second run, at 0.05": Outcome(table["second_run.agreement_p"] <= ALPHA)}
    fit = table["checks.sign test.fit"]
    if not np.isnan(fit).all():
        outcomes["sign test, at 0.05"] = Outcome(fit[~np.isnan(fit)] <= ALPHA)
    alarms = np.array([table.has_disagreement.any()])
    return {**outcomes, "an alarm in 100 comparisons": Outcome(alarms, 1e-4 * len(outcomes))}


def measure_clustered(icc: float, rng: Rng, n_sets: int) -> Outcomes:
    """Swap items, or the clusters within which they are correlated: 50 of 10 items."""
    shape = (N_CLUSTERS, CLUSTER_SIZE, n_sets)
    between = math.sqrt(icc) * rng.standard_normal((N_CLUSTERS, 1, n_sets))
    d = to_thousandths(between + math.sqrt(1 - icc) * rng.standard_normal(shape)).reshape(-1, n_sets)
    cluster = np.repeat(np.arange(N_CLUSTERS), CLUSTER_SIZE)
    counts = build_score_counts(d, np.zeros_like(d), {"cluster": [f"c{k:02d}" for k in cluster]})
    items = compare_pairs(counts, seed=draw_seed(rng), **SAMPLED)
    units = compute_p_values(counts, seed=draw_seed(rng), unit="cluster", **SAMPLED)
    p_values = np.ones(n_sets)
    for column in items.table.list_keys("dependence"):
        is_known = items.table[f"dependence.{column}.n_groups"] > 0
        p_values = np.where(is_known, items.table[f"dependence.{column}.p_value"], p_values)
    is_noted = any(note.kind == "dependence" for note in items.notes)
    return {
        "items swapped": Outcome(items.table.p_value <= ALPHA),
        "clusters swapped": Outcome(units <= ALPHA),
        "dependence found at 0.05": Outcome(p_values <= ALPHA, should="at most" if icc == 0 else "nothing"),
        "noted, of 100 comparisons": Outcome(
            np.array([is_noted]), 0.01 if icc == 0 else 1.0, "at most" if icc == 0 else "nothing"
        ),
    }


def power(n_units: int, shift: float, rng: Rng, n_sets: int) -> Outcomes:
    """Return how often a shift of normal differences is found, with the exact power of the paired t test."""
    a, b = (to_thousandths(x) for x in rng.standard_normal((2, n_units, n_sets)) / math.sqrt(2))
    a += round(1000 * shift)
    exact_power = compute_t_power(n_units, shift)
    p = compute_p_values(build_score_counts(a, b), seed=draw_seed(rng), **SAMPLED)
    return {
        "sampled, two-sided": Outcome(p <= ALPHA, exact_power, "nothing"),
        "paired t": Outcome(stats.ttest_rel(a, b).pvalue <= ALPHA, exact_power, "about"),
    }


def measure_scenario_power(scenario: Scenario, rng: Rng, n_sets: int) -> Outcomes:
    """Return how often each test finds a better system, in a scenario with 30 units."""
    a, b = scenario.draw_better(rng, 30, n_sets)
    p = compute_p_values(build_score_counts(a, b), seed=draw_seed(rng), **SAMPLED)
    d = a - b
    p_values = {"sampled, two-sided": p, "paired t": compute_paired_t_p(d), "wilcoxon": compute_signed_rank_p(d)}
    return {name: Outcome(values <= ALPHA, should="nothing") for name, values in p_values.items()}


def compute_t_power(n_units: int, shift: float) -> float:
    """Return the power of the two-sided paired t test, by the noncentral t distribution."""
    limit, noncentrality = stats.t.isf(ALPHA / 2, n_units - 1), shift * math.sqrt(n_units)
    return float(stats.nct.sf(limit, n_units - 1, noncentrality) + stats.nct.cdf(-limit, n_units - 1, noncentrality))


def measure_sign_power(rng: Rng, n_sets: int) -> Outcomes:
    """Return how often 34 signs are found; the exact power of the sign test is 0.5544607."""
    d: NDArray[Any] = (rng.random((34, n_sets)) < 0.7).astype(np.int64)
    exact_power = sum(stats.binom.pmf(k, 34, 0.7) for k in range(35) if stats.binomtest(k, 34).pvalue <= ALPHA)
    p = compute_p_values(build_score_counts(d, 1 - d), seed=draw_seed(rng), **SAMPLED)
    return {"sampled, two-sided": Outcome(p <= ALPHA, float(exact_power), "nothing")}
