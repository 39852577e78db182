"""Tests of one pair: their size, early stopping, cross-checks, dependence, power; on simulated data."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.calibration.attainable import ENUMERATED, attainable
from benchmarks.calibration.compared import compared, p_of, scores_of, seed_of
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.scenarios import OF, SCENARIOS, THOUSAND, Rng, Scenario, thousandths
from sigdask.results.table import DISAGREES
from sigdask.statistics.classical.proportions import two_proportion_z
from sigdask.statistics.classical.sign import sign_test
from sigdask.statistics.classical.student import matched_t, two_sample_t
from sigdask.statistics.classical.wilcoxon import wilcoxon

ALPHA, N_TRIALS = 0.05, 999
N_CLUSTERS, WITHIN = 50, 10
NOTED = (20, 30, 50, 100)
"""Units of which the diagnosis is measured."""

SYMMETRIC = (
    "normal",
    "normal, sd 1 and 4",
    "uniform",
    "logistic",
    "grades 0 to 3",
    "0/1 at 8 %",
    "0/1 at 60 %, r = 0.8",
)
"""Scenarios in which the diagnosis may fire in 5 % of data sets."""

SAMPLED: dict[str, Any] = {"method": "randomization", "trials": N_TRIALS}


def cases() -> list[Case]:
    """Return what is measured of pairs."""
    return [
        *(Case("pairs", f"{s.row}, {n}", partial(size, s, n)) for s in SCENARIOS for n in s.sizes),
        *(Case("exact", f"{name}, {n}", partial(exact, OF[name], n), 4_000, 100)
          for name in ("normal", "lognormal", "grades 0 to 3", "0/1 at 8 %") for n in (20, 50)),
        *(Case("classical", f"{s.row}, {n}", partial(classical, s, n)) for s in SCENARIOS for n in s.sizes),
        *(Case("diagnosis", f"{s.row}, {n}", partial(diagnosed, s, n, 0.0)) for s in SCENARIOS for n in NOTED),
        *(Case("diagnosis", f"{s.row}, better, {n}", partial(diagnosed, s, n, 1.0))
          for s in SCENARIOS if s.exchangeable for n in NOTED),
        *(Case("stopping", f"{name}, 50", partial(stopping, OF[name])) for name in ("normal", "0/1 at 8 %")),
        *(Case("checks", f"{name}, 50", partial(checks, OF[name]), at_once=100) for name in ("normal", "0/1 at 60 %, r = 0.8")),
        *(Case("dependence", f"ICC {icc:g}", partial(clustered, icc), at_once=100) for icc in (0.0, 0.1, 0.3)),
        *(Case("power", f"normal, {n} units, better by {shift:g} sd", partial(power, n, shift))
          for n, shift in ((10, 1.0), (20, 0.7), (50, 0.4), (100, 0.3))),
        *(Case("power", f"{s.row}, 30 units", partial(power_in, s)) for s in SCENARIOS),
        Case("power", "34 signs, better with P = 0.7", power_of_signs),
    ]  # fmt: skip


def size(scenario: Scenario, n_units: int, rng: Rng, n_sets: int) -> Outcomes:
    """Say which differences of systems of one mean each test finds."""
    a, b = scenario.draw(rng, n_units, n_sets)
    counts, d = scores_of(a, b), a - b
    found = {}
    if n_units <= ENUMERATED:
        p = p_of(counts, method="exact")
        found["all arrangements"] = Outcome(p <= ALPHA, attainable(d, ALPHA, "two-sided", None))
    for name, side in (("two-sided", "two-sided"), ("greater", "greater"), ("less", "less")):
        p = p_of(counts, alternative=side, seed=seed_of(rng), **SAMPLED)
        found[f"sampled, {name}"] = Outcome(p <= ALPHA, attainable(d, ALPHA, side, N_TRIALS))
    return found


def exact(scenario: Scenario, n_units: int, rng: Rng, n_sets: int) -> Outcomes:
    """Say the same of exact p of more units than can be gone through."""
    a, b = scenario.draw(rng, n_units, n_sets)
    p = p_of(scores_of(a, b), method="exact")
    return {"exact p": Outcome(p <= ALPHA, attainable(a - b, ALPHA, "two-sided", None))}


def classical(scenario: Scenario, n_units: int, rng: Rng, n_sets: int) -> Outcomes:
    """Say the same of the classical tests; of 0/1 scores McNemar's is the sign test, and chi-square the binomial one."""
    a, b = scenario.draw(rng, n_units, n_sets)
    d = a - b
    with_zeros = stats.rankdata(np.abs(d), axis=0) * np.sign(d)
    without = stats.rankdata(np.where(d == 0, np.inf, np.abs(d)), axis=0) * np.sign(d)
    found = {
        "t": Outcome(matched_t(d.T)[1] <= ALPHA),
        "sign": _exact(sign_test((d > 0).sum(axis=0), (d < 0).sum(axis=0)), np.sign(d)),
        "wilcoxon": _exact(wilcoxon(d.T).p_value, without),
        "wilcoxon:pratt": _exact(wilcoxon(d.T, zeros="pratt").p_value, with_zeros),
        "two-sample-t": Outcome(two_sample_t(a.T, b.T)[1] <= ALPHA),
    }
    if set(np.unique([a, b])) <= {0, 1}:
        p = two_proportion_z(a.sum(axis=0), n_units, b.sum(axis=0), n_units)[1]
        found["binomial, chi2"] = Outcome(p <= ALPHA)
    return found


def _exact(p: NDArray[np.float64], d: NDArray[Any]) -> Outcome:
    """Hold an exact test against the size that its scores of these data can have."""
    return Outcome(p <= ALPHA, attainable(d, ALPHA, "two-sided", None))


def diagnosed(scenario: Scenario, n_units: int, by: float, rng: Rng, n_sets: int) -> Outcomes:
    """Say which comparisons are noted as skewed or decided by few units, and which have units of one sign alone.

    Of rare large losses the data sets count in which one was drawn: what was not drawn cannot be seen.
    """
    a, b = scenario.draw_better(rng, n_units, n_sets, by) if by else scenario.draw(rng, n_units, n_sets)
    table = compared(scores_of(a, b), seed=seed_of(rng), method="randomization", trials=199).table
    assert table.assumptions is not None
    found = table.assumptions
    seen = ((a - b).min(axis=0) < -THOUSAND) if scenario.name == "rare large losses" else np.ones(n_sets, np.bool_)
    rare = 0.8, "at least"
    limit: Any = (0.05, "at most") if scenario.name in SYMMETRIC else rare if not seen.all() else (0.05, "nothing")
    return {
        "noted as skewed": Outcome(found.is_skewed[seen], *limit),
        "few units decide": Outcome(found.n_deciding[seen] > 0, should="nothing"),
        "all units on one side": Outcome(~np.isnan(found.unseen_rate), should="nothing"),
    }


def stopping(scenario: Scenario, rng: Rng, n_sets: int) -> Outcomes:
    """Say which differences each rule to stop early finds, and how often a decision is not that of all trials."""
    counts = scores_of(*scenario.draw(rng, 50, n_sets))
    besag = p_of(counts, stop="besag-clifford", seed=seed_of(rng), method="randomization", trials=9999)
    early = compared(counts, stop="confidence:epsilon=0.01", seed=seed_of(rng), method="randomization", trials=2**16)
    decided = early.table.decision
    return {
        "Besag & Clifford, h = 10": Outcome(besag <= ALPHA),
        "confidence sequence, ε = 0.01": Outcome(decided == 1, ALPHA + 0.01),
    }


def checks(scenario: Scenario, rng: Rng, n_sets: int) -> Outcomes:
    """Say how often two right counts are held for different: at 0.05, and by an alarm."""
    counts = scores_of(*scenario.draw(rng, 50, n_sets))
    found = compared(counts, second_run=True, seed=seed_of(rng), **SAMPLED).table
    outcomes = {"second run, at 0.05": Outcome(found.agreement_p <= ALPHA)}
    signs = found.checks["sign test"]
    if not np.isnan(signs.fit).all():
        outcomes["sign test, at 0.05"] = Outcome(signs.fit[~np.isnan(signs.fit)] <= ALPHA)
    alarms = np.array([(found.has_disagreement | (signs.verdict == DISAGREES)).any()])
    return {**outcomes, "an alarm in 100 comparisons": Outcome(alarms, 1e-4 * len(outcomes))}


def clustered(icc: float, rng: Rng, n_sets: int) -> Outcomes:
    """Exchange items, and the clusters within which they are correlated: 50 of 10 items."""
    shape = (N_CLUSTERS, WITHIN, n_sets)
    between = math.sqrt(icc) * rng.standard_normal((N_CLUSTERS, 1, n_sets))
    d = thousandths(between + math.sqrt(1 - icc) * rng.standard_normal(shape)).reshape(-1, n_sets)
    cluster = np.repeat(np.arange(N_CLUSTERS), WITHIN)
    counts = scores_of(d, np.zeros_like(d), {"cluster": [f"c{k:02d}" for k in cluster]})
    items = compared(counts, seed=seed_of(rng), beside=True, **SAMPLED)
    units = p_of(counts, seed=seed_of(rng), unit="cluster", **SAMPLED)
    tested = np.ones(n_sets)
    for hanging in items.table.dependence:
        tested[hanging.rows] = hanging.p_value
    clear = any(note.kind == "dependence" for note in items.notes)
    return {
        "items exchanged": Outcome(items.table.p_value <= ALPHA),
        "clusters exchanged": Outcome(units <= ALPHA),
        "dependence found at 0.05": Outcome(tested <= ALPHA, should="at most" if icc == 0 else "nothing"),
        "noted, of 100 comparisons": Outcome(
            np.array([clear]), 0.01 if icc == 0 else 1.0, "at most" if icc == 0 else "nothing"
        ),
    }


def power(n_units: int, shift: float, rng: Rng, n_sets: int) -> Outcomes:
    """Say how often a shift of normal differences is found, beside the exact power of the paired t test."""
    a, b = (thousandths(x) for x in rng.standard_normal((2, n_units, n_sets)) / math.sqrt(2))
    a += round(1000 * shift)
    wanted = power_of_t(n_units, shift)
    p = p_of(scores_of(a, b), seed=seed_of(rng), **SAMPLED)
    return {
        "sampled, two-sided": Outcome(p <= ALPHA, wanted, "nothing"),
        "paired t": Outcome(stats.ttest_rel(a, b).pvalue <= ALPHA, wanted, "about"),
    }


def power_in(scenario: Scenario, rng: Rng, n_sets: int) -> Outcomes:
    """Say how often each test finds a better system, in each scenario with 30 units."""
    a, b = scenario.draw_better(rng, 30, n_sets)
    p = p_of(scores_of(a, b), seed=seed_of(rng), **SAMPLED)
    d = a - b
    found = {"sampled, two-sided": p, "paired t": matched_t(d.T)[1], "wilcoxon": wilcoxon(d.T).p_value}
    return {name: Outcome(own <= ALPHA, should="nothing") for name, own in found.items()}


def power_of_t(n_units: int, shift: float) -> float:
    """Return the power of the two-sided paired t test, by the noncentral t distribution."""
    limit, off = stats.t.isf(ALPHA / 2, n_units - 1), shift * math.sqrt(n_units)
    return float(stats.nct.sf(limit, n_units - 1, off) + stats.nct.cdf(-limit, n_units - 1, off))


def power_of_signs(rng: Rng, n_sets: int) -> Outcomes:
    """Say how often 34 signs are found; the power of the sign test is known exactly (0.5544607)."""
    d: NDArray[Any] = (rng.random((34, n_sets)) < 0.7).astype(np.int64)
    known = sum(stats.binom.pmf(k, 34, 0.7) for k in range(35) if stats.binomtest(k, 34).pvalue <= ALPHA)
    p = p_of(scores_of(d, 1 - d), seed=seed_of(rng), **SAMPLED)
    return {"sampled, two-sided": Outcome(p <= ALPHA, float(known), "nothing")}
