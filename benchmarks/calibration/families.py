"""Error rates and power of adjustment procedures for families of comparisons, on simulated scores.

Scores of 30 topics by 8 systems (28 pairs) in steps of 0.001, or 0 and 1. `docs/make_families.py` writes a table of
real scores.
"""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

import numpy as np

from benchmarks.calibration.compared import QUIET, draw_seed
from benchmarks.calibration.measuring import Case, Outcome
from sigdask import compare_all
from sigdask.analysis.comparison import equal_scores
from sigdask.counts import Counts
from sigdask.statistics.bounds import P_VALUE_ADJUSTMENTS

N_SYSTEMS, N_TOPICS, N_TRIALS = 8, 30, 999
PAIRS = [(i, j) for i in range(N_SYSTEMS) for j in range(i + 1, N_SYSTEMS)]
ALPHA = 0.05


def _draw_lognormal(rng, shape, size=1.0):
    """Draw lognormal noise of mean 0 and standard deviation 1."""
    noise = np.exp(size * rng.standard_normal(shape)) - np.exp(size**2 / 2)
    return noise / np.sqrt((np.exp(size**2) - 1) * np.exp(size**2))


def _draw_gamma(rng, shape, skew):
    """Draw gamma noise of mean 0, standard deviation 1 and a given skewness."""
    k = 4 / skew**2
    return (rng.gamma(k, 1, shape) - k) / np.sqrt(k)


def _flip_every_other(noise):
    """Flip the sign of every other system's noise, so that differences of pairs are skewed."""
    noise[:, 1::2] *= -1
    return noise


def _draw_rare_losses(rng, shape):
    """Draw normal noise; the first system loses 3.8 on one unit in twenty and wins 0.2 on the others."""
    noise = 0.1 * rng.standard_normal(shape)
    noise[:, 0] += np.where(rng.random(shape[0]) < 0.05, -3.8, 0.2)
    return noise


NULLS = {
    "equal normals": lambda rng, shape: rng.standard_normal(shape),
    "equal lognormals": _draw_lognormal,
    "standard deviations 1 to 8": lambda rng, shape: rng.standard_normal(shape) * np.arange(1, N_SYSTEMS + 1),
    "0/1 at 8 %": lambda rng, shape: (rng.random(shape) < 0.08).astype(float),
    "t, 2.5 degrees": lambda rng, shape: rng.standard_t(2.5, shape),
    "exponentials, every other one turned": lambda rng, shape: _flip_every_other(rng.exponential(1, shape) - 1),
    "lognormals, every other one turned": lambda rng, shape: _flip_every_other(_draw_lognormal(rng, shape)),
    "lognormals, every other one turned, 100 units": lambda rng, shape: _flip_every_other(_draw_lognormal(rng, shape)),
    "gammas of skewness 3, every other one turned, 100 units": lambda rng, shape: _flip_every_other(
        _draw_gamma(rng, shape, 3)
    ),
    "one with rare large losses": _draw_rare_losses,
    "normals, correlated": lambda rng, shape: rng.standard_normal(shape) + 2 * rng.standard_normal((shape[0], 1)),
}
"""Systems of one mean: whatever is found is wrong."""

TOPIC_COUNTS = {
    "lognormals, every other one turned, 100 units": 100,
    "gammas of skewness 3, every other one turned, 100 units": 100,
}
"""Topics of those that have more than 30."""

ALTERNATIVES = {
    "one better by 1, all of sd 1": (lambda rng, shape: rng.standard_normal(shape), [0] * 7 + [1.0]),
    "three better by 0.8, sd 1 to 6": (
        lambda rng, shape: rng.standard_normal(shape) * np.array([1, 1, 1, 1, 1, 2, 4, 6]),
        [0, 0, 0, 0.8, 0.8, 0, 0, 0.8],
    ),
    "one better by 1, t of 2.5 degrees": (lambda rng, shape: rng.standard_t(2.5, shape), [0] * 7 + [1.0]),
    "one better by 1, lognormals": (_draw_lognormal, [0] * 7 + [1.0]),
    "evenly apart, 1.2 in all, lognormals": (_draw_lognormal, np.linspace(0, 1.2, N_SYSTEMS)),
    "0/1 at 5 % to 40 %": (
        lambda rng, shape: (rng.random(shape) < np.linspace(0.05, 0.4, N_SYSTEMS)).astype(float),
        np.zeros(N_SYSTEMS),
    ),
}
"""Noise and means; of the 0/1 scores the noise has the means."""


def draw_counts(noise, rng, means=0.0, n_topics=N_TOPICS):
    """Return one simulated set; means are added to the noise, and to real scores the difficulty of topics."""
    sample = noise(rng, (n_topics, N_SYSTEMS))
    topics = 0 if np.isin(sample, [0, 1]).all() else rng.standard_normal((n_topics, 1))
    scores = np.round(sample + means + topics, 3)
    return Counts.from_scores({f"s{k}": scores[:, k] for k in range(N_SYSTEMS)})


def compare_all_pairs(counts, rng, adjust, interval="none"):
    """Return the table of the comparisons of all pairs, from as many resamples as trials."""
    with patch.object(equal_scores, "RESAMPLES", N_TRIALS):
        return compare_all(
            counts, metrics="mean", method="randomization", trials=N_TRIALS, adjust=adjust, interval=interval,
            seed=draw_seed(rng), **QUIET,
        ).table  # fmt: skip


def adjust_by_all(counts, rng):
    """Return p-values adjusted by each procedure, arrays of shape (n_pairs,) by name."""
    table = compare_all_pairs(counts, rng, "max-t")
    equal = table["equal_scores.p_adjusted"]
    equal = np.where(np.isnan(equal), table.p_adjusted, equal)  # not made where it would be the same
    adjusted = {
        "max-t": table.p_adjusted,
        "tukey": compare_all_pairs(counts, rng, "tukey").p_adjusted,
        "equal scores": equal,
        "max-t and not contested": np.maximum(table.p_adjusted, equal),
    }
    return adjusted | {name: adjust(table.p_value) for name, adjust in P_VALUE_ADJUSTMENTS.items()}


def find_true_differences(name):
    """Return a mask of the pairs whose true means differ."""
    true = np.linspace(0.05, 0.4, N_SYSTEMS) if name.startswith("0/1") else np.asarray(ALTERNATIVES[name][1])
    return np.array([true[i] != true[j] for i, j in PAIRS])


FAMILY_WISE = ("max-t", "tukey", "holm", "equal scores", "max-t and not contested")
"""What bounds the probability of any false discovery; others bound their share."""


def cases() -> list[Case]:
    """Return the cases of families."""
    mixed = [name for name in ALTERNATIVES if not find_true_differences(name).all()]
    return [
        *(Case("families", f"{name}{' *' * ('turned' in name or 'losses' in name)}", partial(measure_false_positives, name), 10_000, 100)
          for name in NULLS),
        *(Case("simultaneous intervals", f"{name}{' *' * ('turned' in name or 'losses' in name)}", partial(measure_simultaneous, name), 1_000, 100)
          for name in NULLS),
        *(Case("families", name, partial(measure_false_discoveries, name, FAMILY_WISE), 4_000, 100) for name in mixed),
        *(Case("discoveries", name, partial(measure_false_discoveries, name, ("bh",)), 4_000, 100) for name in mixed),
        *(Case("power of families", name, partial(measure_true_discoveries, name), 2_000, 100) for name in ALTERNATIVES),
    ]  # fmt: skip


def measure_false_positives(name, rng, n_sets):
    """Return in which sets of systems with equal means each procedure finds any difference."""
    sets = (draw_counts(NULLS[name], rng, n_topics=TOPIC_COUNTS.get(name, N_TOPICS)) for _ in range(n_sets))
    results = [adjust_by_all(counts, rng) for counts in sets]
    return {method: Outcome(np.array([p[method].min() <= ALPHA for p in results])) for method in results[0]}


def measure_simultaneous(name, rng, n_sets):
    """Return in which sets all simultaneous intervals contain the true differences, which are 0."""
    covered = []
    for _ in range(n_sets):
        counts = draw_counts(NULLS[name], rng, n_topics=TOPIC_COUNTS.get(name, N_TOPICS))
        table = compare_all_pairs(counts, rng, "max-t", "bootstrap")
        low, high = table["interval_simultaneous.0"], table["interval_simultaneous.1"]
        covered.append(((low <= 0) & (high >= 0))[~np.isnan(low)].all())
    # 30 units of which many samples lack the rare losses show nothing of them, with any interval
    should = "nothing" if "losses" in name else "at least"
    return {"all intervals": Outcome(np.array(covered), 0.93, should)}


def measure_false_discoveries(name, methods, rng, n_sets):
    """Return each procedure's false positives, or share of false discoveries, among true differences."""
    real, outcomes = find_true_differences(name), {}
    for method, rejected in _find_differences(name, rng, n_sets).items():
        false = (rejected & ~real).sum(axis=1)
        if method in methods:
            bad = false > 0 if method in FAMILY_WISE else false / np.maximum(rejected.sum(axis=1), 1)
            outcomes[method] = Outcome(bad)
    return outcomes


def measure_true_discoveries(name, rng, n_sets):
    """Return the share of true differences that each procedure finds."""
    real = find_true_differences(name)
    return {
        method: Outcome(rejected[:, real].mean(axis=1), should="nothing")
        for method, rejected in _find_differences(name, rng, n_sets).items()
    }


def _find_differences(name, rng, n_sets):
    """Return which pairs each procedure finds, masks of shape (n_sets, n_pairs) by name."""
    noise, means = ALTERNATIVES[name]
    p = [adjust_by_all(draw_counts(noise, rng, means), rng) for _ in range(n_sets)]
    return {method: np.array([p_by_method[method] <= ALPHA for p_by_method in p]) for method in p[0]}
