"""Error rates and power of adjustment procedures for families of comparisons, on simulated scores.

Scores of 30 topics by 8 systems (28 pairs) in steps of 0.001, or 0 and 1. `docs/make_families.py` writes further
tables of them, the tests repeat some of it.
"""

from __future__ import annotations

import zlib
from functools import partial

import numpy as np
from sigdask.randomization.families.skewness import SHARE, find_skewed

from benchmarks.calibration.compared import MEAN
from benchmarks.calibration.measuring import Case, Outcome
from sigdask.analysis.comparison.families import compute_joint_p_values
from sigdask.counts import Counts
from sigdask.metrics.base import BoundMetric
from sigdask.randomization.families.bootstrap_t import StudentisedBootstrap, find_critical_value
from sigdask.randomization.families.max_t import MaxTFamily
from sigdask.randomization.families.tukey import Relabelling
from sigdask.randomization.panels.build import FamilyMember, PanelGroups
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.statistics.multiplicity import P_VALUE_ADJUSTMENTS

N_SYSTEMS, N_TOPICS, N_TRIALS = 8, 30, 999
PAIRS = [(i, j) for i in range(N_SYSTEMS) for j in range(i + 1, N_SYSTEMS)]
ROWS = np.array([[0, row] for row in range(len(PAIRS))])
PROCEDURES = ("max-t", "holm")
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


FLIPPED_GAMMAS = {
    skew: (lambda rng, shape, skew=skew: _flip_every_other(_draw_gamma(rng, shape, skew))) for skew in (0.5, 1, 2, 3)
}
"""Gammas of a skewness, every other one turned."""


def draw_families(noise, n_sets, means=0.0, seed="", n_topics=N_TOPICS):
    """Yield the studentised family of each simulated set; means are added to the noise."""
    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    for k in range(n_sets):
        yield draw_family(noise, rng, means, n_topics, seed=k)


def get_n_topics(name):
    """Return the number of topics of a scenario."""
    return TOPIC_COUNTS.get(name, N_TOPICS)


def draw_family(noise, rng, means=0.0, n_topics=N_TOPICS, *, seed):
    """Return the studentised family of one simulated set."""
    return draw_family_and_bootstrap(noise, rng, means, n_topics, seed=seed)[0]


def draw_family_and_bootstrap(noise, rng, means=0.0, n_topics=N_TOPICS, *, seed):
    """Return the studentised family of one simulated set and its studentised bootstrap."""
    sample = noise(rng, (n_topics, N_SYSTEMS))
    topics = 0 if np.isin(sample, [0, 1]).all() else rng.standard_normal((n_topics, 1))
    scores = np.rint(1000 * (sample + means + topics)).astype(np.int64)
    fields = {"score": scores, "items": np.ones_like(scores)}
    counts = Counts(tuple(f"s{k}" for k in range(N_SYSTEMS)), fields, n_topics)
    units, metrics = SwapUnits.from_counts(counts, seed), [BoundMetric("mean", tuple(fields), MEAN)]
    sharing = PanelGroups.from_metrics(counts, metrics, np.array(PAIRS))
    families = [
        MaxTFamily((FamilyMember(placed.panel, 0),), ROWS[:, None, :], studentised=True)
        for every_unit in (False, True)
        for placed in sharing.build(units, every_unit=every_unit)
    ]
    return families[0], StudentisedBootstrap(families[1], (n_topics,))


def adjust_by_max_t(family):
    """Return each pair's adjusted and unadjusted p-value, two arrays of shape (n_pairs,)."""
    tally = family.tally(run=0, first=0, n_trials=N_TRIALS)
    single = (tally.counts[:, 0, 2] + 1) / (N_TRIALS + 1)
    return np.maximum(compute_joint_p_values(family, tally)[0], single), single


def adjust_with_bootstrap(family, bootstrap):
    """Return p-values adjusted with and without the bootstrap, arrays of shape (n_pairs,) by name.

    "max-t" is what the program gives: the larger of max-T's and the studentised bootstrap's where differences are
    skewed. "max-t alone" is not.
    """
    tally = family.tally(run=0, first=0, n_trials=N_TRIALS)
    single = (tally.counts[:, 0, 2] + 1) / (N_TRIALS + 1)
    resampled = compute_joint_p_values(bootstrap, bootstrap.tally(run=0, first=0, n_trials=N_TRIALS))[0]
    max_t = compute_joint_p_values(family, tally)[0]
    larger = np.where(find_skewed(family), np.maximum(max_t, resampled), max_t)
    joint = {
        "max-t": larger,
        "max-t alone": max_t,
        "bootstrap-t": resampled,
        "holm": P_VALUE_ADJUSTMENTS["holm"](single),
    }
    return {name: np.maximum(p, single) for name, p in joint.items()}


def adjust_by_all(family, bootstrap):
    """Return p-values adjusted by each procedure, arrays of shape (n_pairs,) by name."""
    tally = family.tally(run=0, first=0, n_trials=N_TRIALS)
    single = (tally.counts[:, 0, 2] + 1) / (N_TRIALS + 1)
    relabelling = Relabelling(family.members, ROWS)
    relabelled = relabelling.tally(run=0, first=0, n_trials=N_TRIALS)
    joint = {
        "tukey": compute_joint_p_values(relabelling, relabelled)[0],
    }
    joint |= {name: adjust(single) for name, adjust in P_VALUE_ADJUSTMENTS.items()}
    return adjust_with_bootstrap(family, bootstrap) | {name: np.maximum(p, single) for name, p in joint.items()}


def measure_bootstrap_errors(name, n_sets):
    """Return each procedure's family-wise error rate and the coverage of simultaneous intervals."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    rejected, covered = [], []
    for _ in range(n_sets):
        family, bootstrap = draw_family_and_bootstrap(
            NULLS[name], rng, n_topics=get_n_topics(name), seed=int(rng.integers(2**31))
        )
        rejected.append([p.min() <= ALPHA for p in adjust_with_bootstrap(family, bootstrap).values()])
        reach = find_critical_value(bootstrap.tally(run=0, first=0, n_trials=N_TRIALS), ALPHA) * bootstrap.errors
        covered.append((np.abs(bootstrap.family.observed) <= reach)[bootstrap.errors > 0].all())
    return np.mean(rejected, axis=0), np.mean(covered)


def compute_p_values(noise, n_sets, means=0.0, seed="", n_topics=N_TOPICS):
    """Return the adjusted p-values of each simulated set, shape (n_sets, 2 procedures, 28 pairs)."""
    p = np.empty((n_sets, len(PROCEDURES), len(PAIRS)))
    for k, family in enumerate(draw_families(noise, n_sets, means, seed, n_topics)):
        p[k, 0], single = adjust_by_max_t(family)
        p[k, 1] = P_VALUE_ADJUSTMENTS["holm"](single)
    return p


def measure_errors_and_notes(noise, n_sets, seed="", n_topics=N_TOPICS):
    """Return the share of sets with a false difference and the share with a skewness note."""
    outcomes = [(adjust_by_max_t(family)[0].min() <= 0.05, find_skewed(family).mean() >= SHARE)
             for family in draw_families(noise, n_sets, seed=seed, n_topics=n_topics)]  # fmt: skip
    return np.mean(outcomes, axis=0)


def power(name, n_sets):
    """Return each procedure's share of true differences found and its share of sets with a false one."""
    noise, means = ALTERNATIVES[name]
    real = find_true_differences(name)
    p = compute_p_values(noise, n_sets, means, seed=name) <= 0.05
    return p[:, :, real].mean(axis=(0, 2)), p[:, :, ~real].any(axis=2).mean(axis=0)


def find_true_differences(name):
    """Return a mask of the pairs whose true means differ."""
    true = np.linspace(0.05, 0.4, N_SYSTEMS) if name.startswith("0/1") else np.asarray(ALTERNATIVES[name][1])
    return np.array([true[i] != true[j] for i, j in PAIRS])


FAMILY_WISE = ("max-t", "max-t alone", "bootstrap-t", "tukey", "holm")
"""What bounds the probability of any false discovery; others bound their share."""


def cases() -> list[Case]:
    """Return the cases of families."""
    mixed = [name for name in ALTERNATIVES if not find_true_differences(name).all()]
    return [
        *(Case("families", f"{name}{' *' * ('turned' in name or 'losses' in name)}", partial(measure_false_positives, name), 10_000, 100)
          for name in NULLS),
        *(Case("families", name, partial(measure_false_discoveries, name, FAMILY_WISE), 4_000, 100) for name in mixed),
        *(Case("discoveries", name, partial(measure_false_discoveries, name, ("bh",)), 4_000, 100) for name in mixed),
        *(Case("power of families", name, partial(measure_true_discoveries, name), 2_000, 100) for name in ALTERNATIVES),
    ]  # fmt: skip


def measure_false_positives(name, rng, n_sets):
    """Return in which sets of systems with equal means each procedure finds any difference."""
    results = [
        adjust_by_all(
            *draw_family_and_bootstrap(NULLS[name], rng, n_topics=get_n_topics(name), seed=int(rng.integers(2**31)))
        )
        for _ in range(n_sets)
    ]
    return {method: Outcome(np.array([p[method].min() <= ALPHA for p in results])) for method in results[0]}


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
    p = [
        adjust_by_all(*draw_family_and_bootstrap(noise, rng, means, seed=int(rng.integers(2**31))))
        for _ in range(n_sets)
    ]
    return {method: np.array([p_by_method[method] <= ALPHA for p_by_method in p]) for method in p[0]}
