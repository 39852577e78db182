"""Families: scenarios of systems and topics, and what each procedure finds in them.

Scores of 30 topics by 8 systems (28 pairs) in steps of 0.001, or 0 and 1. `docs/make_families.py` writes further
tables of them, the tests repeat some of it.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.calibration.compared import MEAN
from benchmarks.calibration.measuring import Case, Outcome
from sigdask.analysis.comparison.adjust import compute_joint_p_values
from sigdask.counts import Counts
from sigdask.metrics.base import BoundMetric
from sigdask.randomization.families.bootstrap_t import StudentisedBootstrap, find_critical_value
from sigdask.randomization.families.max_t import MaxTFamily, tally_family
from sigdask.randomization.families.skewed import count_skewed, find_skewed
from sigdask.randomization.families.tukey import Relabelling
from sigdask.randomization.panels.build import PanelGroups
from sigdask.randomization.panels.families import FamilyMember
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.statistics.multiplicity import P_VALUE_ADJUSTMENTS

N_SYSTEMS, N_TOPICS, N_TRIALS = 8, 30, 999
PAIRS = [(i, j) for i in range(N_SYSTEMS) for j in range(i + 1, N_SYSTEMS)]
ROWS = np.array([[0, row] for row in range(len(PAIRS))])
PROCEDURES = ("max-t", "max-t:raw", "holm")
ALPHA = 0.05


def _lognormal(rng, shape, size=1.0):
    """Lognormal noise of mean 0 and standard deviation 1."""
    noise = np.exp(size * rng.standard_normal(shape)) - np.exp(size**2 / 2)
    return noise / np.sqrt((np.exp(size**2) - 1) * np.exp(size**2))


def _gamma(rng, shape, skew):
    """Gamma noise of mean 0, standard deviation 1 and a skewness."""
    k = 4 / skew**2
    return (rng.gamma(k, 1, shape) - k) / np.sqrt(k)


def _opposite(noise):
    """Turn the noise of every other system round, so that differences of pairs are skewed."""
    noise[:, 1::2] *= -1
    return noise


def _with_losses(rng, shape):
    """Normal noise; one unit in twenty of the first system loses 3.8, all others win 0.2."""
    noise = 0.1 * rng.standard_normal(shape)
    noise[:, 0] += np.where(rng.random(shape[0]) < 0.05, -3.8, 0.2)
    return noise


NULLS = {
    "equal normals": lambda rng, shape: rng.standard_normal(shape),
    "equal lognormals": _lognormal,
    "standard deviations 1 to 8": lambda rng, shape: rng.standard_normal(shape) * np.arange(1, N_SYSTEMS + 1),
    "0/1 at 8 %": lambda rng, shape: (rng.random(shape) < 0.08).astype(float),
    "t, 2.5 degrees": lambda rng, shape: rng.standard_t(2.5, shape),
    "exponentials, every other one turned": lambda rng, shape: _opposite(rng.exponential(1, shape) - 1),
    "lognormals, every other one turned": lambda rng, shape: _opposite(_lognormal(rng, shape)),
    "lognormals, every other one turned, 100 units": lambda rng, shape: _opposite(_lognormal(rng, shape)),
    "gammas of skewness 3, every other one turned, 100 units": lambda rng, shape: _opposite(_gamma(rng, shape, 3)),
    "one with rare large losses": _with_losses,
    "normals, correlated": lambda rng, shape: rng.standard_normal(shape) + 2 * rng.standard_normal((shape[0], 1)),
}
"""Systems of one mean: whatever is found is wrong."""

UNITS = {
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
    "one better by 1, lognormals": (_lognormal, [0] * 7 + [1.0]),
    "evenly apart, 1.2 in all, lognormals": (_lognormal, np.linspace(0, 1.2, N_SYSTEMS)),
    "0/1 at 5 % to 40 %": (
        lambda rng, shape: (rng.random(shape) < np.linspace(0.05, 0.4, N_SYSTEMS)).astype(float),
        np.zeros(N_SYSTEMS),
    ),
}
"""Noise and means; of the 0/1 scores the noise has the means."""


TURNED = {skew: (lambda rng, shape, skew=skew: _opposite(_gamma(rng, shape, skew))) for skew in (0.5, 1, 2, 3)}
"""Gammas of a skewness, every other one turned."""


def drawn_families(noise, n_sets, means=0.0, seed="", n_topics=N_TOPICS):
    """Yield the studentised family of each simulated set; means are added to the noise."""
    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    for k in range(n_sets):
        yield drawn_family(noise, rng, means, n_topics, seed=k)


def topics_of(name):
    """Return the number of topics of a scenario."""
    return UNITS.get(name, N_TOPICS)


def drawn_family(noise, rng, means=0.0, n_topics=N_TOPICS, *, seed):
    """Return the studentised family of one simulated set, whose shuffles have a seed."""
    return drawn_both(noise, rng, means, n_topics, seed=seed)[0]


def drawn_both(noise, rng, means=0.0, n_topics=N_TOPICS, *, seed):
    """Return the studentised family of one simulated set, and its studentised bootstrap."""
    drawn = noise(rng, (n_topics, N_SYSTEMS))
    topics = 0 if np.isin(drawn, [0, 1]).all() else rng.standard_normal((n_topics, 1))
    scores = np.rint(1000 * (drawn + means + topics)).astype(np.int64)
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


def adjusted(family):
    """Return p of each pair, adjusted and alone, shape (n_pairs,) each."""
    tally = tally_family(family, run=0, first=0, n_trials=N_TRIALS)
    single = (tally.counts[:, 0, 2] + 1) / (N_TRIALS + 1)
    return np.maximum(compute_joint_p_values(family, "max-t", tally)[0], single), single


def by_resamples(family, bootstrap):
    """Return p of each pair, adjusted with and without the studentised bootstrap, mapping of shape (n_pairs,).

    "max-t" is what the program gives: the larger of max-T's and the studentised bootstrap's where differences are
    skewed. "max-t alone" is not.
    """
    tally = tally_family(family, run=0, first=0, n_trials=N_TRIALS)
    single = (tally.counts[:, 0, 2] + 1) / (N_TRIALS + 1)
    resampled = compute_joint_p_values(bootstrap, "bootstrap-t", bootstrap.tally(run=0, first=0, n_trials=N_TRIALS))[0]
    alone = compute_joint_p_values(family, "max-t", tally)[0]
    larger = np.where(find_skewed(family), np.maximum(alone, resampled), alone)
    joint = {
        "max-t": larger,
        "max-t alone": alone,
        "bootstrap-t": resampled,
        "holm": P_VALUE_ADJUSTMENTS["holm"](single),
    }
    return {name: np.maximum(p, single) for name, p in joint.items()}


def by_each(family, bootstrap):
    """Return p of each pair adjusted by each procedure, mapping of shape (n_pairs,)."""
    tally = tally_family(family, run=0, first=0, n_trials=N_TRIALS)
    single = (tally.counts[:, 0, 2] + 1) / (N_TRIALS + 1)
    relabelling = Relabelling(family.members, ROWS)
    relabelled = relabelling.tally(run=0, first=0, n_trials=N_TRIALS)
    joint = {
        "single-step-max-t": compute_joint_p_values(family, "single-step-max-t", tally)[0],
        "max-t:raw": adjusted(replace(family, studentised=False))[0],
        "tukey": compute_joint_p_values(relabelling, "tukey", relabelled)[0],
    }
    joint |= {name: of_p(single) for name, of_p in P_VALUE_ADJUSTMENTS.items()}
    return by_resamples(family, bootstrap) | {name: np.maximum(p, single) for name, p in joint.items()}


def resampled_errors(name, n_sets):
    """Return in what share of sets of systems of one mean each finds a difference, and simultaneous intervals hold."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    found, held = [], []
    for _ in range(n_sets):
        family, made = drawn_both(NULLS[name], rng, n_topics=topics_of(name), seed=int(rng.integers(2**31)))
        found.append([p.min() <= ALPHA for p in by_resamples(family, made).values()])
        reach = find_critical_value(made.tally(run=0, first=0, n_trials=N_TRIALS), ALPHA) * made.errors
        held.append((np.abs(made.family.observed) <= reach)[made.errors > 0].all())
    return np.mean(found, axis=0), np.mean(held)


def resampled_power(name, n_sets):
    """Return the share of true differences that each finds."""
    (noise, means), real = ALTERNATIVES[name], really_different(name)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    drawn = (drawn_both(noise, rng, means, seed=int(rng.integers(2**31))) for _ in range(n_sets))
    return np.mean([[(p <= ALPHA)[real].mean() for p in by_resamples(*both).values()] for both in drawn], axis=0)


def p_values(noise, n_sets, means=0.0, seed="", n_topics=N_TOPICS):
    """Adjusted p of each simulated set, shape (n_sets, 3 procedures, 28 pairs)."""
    found = np.empty((n_sets, len(PROCEDURES), len(PAIRS)))
    for k, family in enumerate(drawn_families(noise, n_sets, means, seed, n_topics)):
        found[k, 0], single = adjusted(family)
        found[k, 1], _ = adjusted(replace(family, studentised=False))
        found[k, 2] = P_VALUE_ADJUSTMENTS["holm"](single)
    return found


def errors_and_notes(noise, n_sets, seed="", n_topics=N_TOPICS):
    """Return in what share of sets of systems of one mean a difference is found, and skewness is noted."""
    found = [(adjusted(family)[0].min() <= 0.05, count_skewed(family) > 0)
             for family in drawn_families(noise, n_sets, seed=seed, n_topics=n_topics)]  # fmt: skip
    return np.mean(found, axis=0)


def errors(name, n_sets):
    """Return in how many sets each procedure finds a difference of systems of one mean."""
    return (p_values(NULLS[name], n_sets, seed=name, n_topics=topics_of(name)).min(axis=2) <= 0.05).sum(axis=0)


def power(name, n_sets):
    """Return the share of true differences that each procedure finds, and of sets with a false one."""
    noise, means = ALTERNATIVES[name]
    real = really_different(name)
    p = p_values(noise, n_sets, means, seed=name) <= 0.05
    return p[:, :, real].mean(axis=(0, 2)), p[:, :, ~real].any(axis=2).mean(axis=0)


def really_different(name):
    """Say of which pairs the means differ in an alternative."""
    true = np.linspace(0.05, 0.4, N_SYSTEMS) if name.startswith("0/1") else np.asarray(ALTERNATIVES[name][1])
    return np.array([true[i] != true[j] for i, j in PAIRS])


FAMILY_WISE = ("max-t", "max-t alone", "bootstrap-t", "single-step-max-t", "max-t:raw", "tukey", "holm", "hochberg")
"""What bounds the probability of any false discovery; others bound their share."""


def cases() -> list[Case]:
    """Return what is measured of families."""
    mixed = [name for name in ALTERNATIVES if not really_different(name).all()]
    return [
        *(Case("families", f"{name}{' *' * ('turned' in name or 'losses' in name)}", partial(found_wrongly, name), 10_000, 100)
          for name in NULLS),
        *(Case("families", name, partial(found_among_others, name, FAMILY_WISE), 4_000, 100) for name in mixed),
        *(Case("discoveries", name, partial(found_among_others, name, ("bh", "by")), 4_000, 100) for name in mixed),
        *(Case("power of families", name, partial(found_rightly, name), 2_000, 100) for name in ALTERNATIVES),
    ]  # fmt: skip


def found_wrongly(name, rng, n_sets):
    """Say in which sets of systems of one mean each procedure finds any difference."""
    found = [
        by_each(*drawn_both(NULLS[name], rng, n_topics=topics_of(name), seed=int(rng.integers(2**31))))
        for _ in range(n_sets)
    ]
    return {method: Outcome(np.array([p[method].min() <= ALPHA for p in found])) for method in found[0]}


def found_among_others(name, methods, rng, n_sets):
    """Return how often each procedure finds a false difference where others are real; or what share is false."""
    real, outcomes = really_different(name), {}
    for method, found in _found_in(name, rng, n_sets).items():
        false = (found & ~real).sum(axis=1)
        if method in methods:
            bad = false > 0 if method in FAMILY_WISE else false / np.maximum(found.sum(axis=1), 1)
            outcomes[method] = Outcome(bad)
    return outcomes


def found_rightly(name, rng, n_sets):
    """Return the share of real differences that each procedure finds."""
    real = really_different(name)
    return {
        method: Outcome(found[:, real].mean(axis=1), should="nothing")
        for method, found in _found_in(name, rng, n_sets).items()
    }


def _found_in(name, rng, n_sets):
    """Return which pairs each procedure finds, mapping of shape (n_sets, n_pairs)."""
    noise, means = ALTERNATIVES[name]
    p = [by_each(*drawn_both(noise, rng, means, seed=int(rng.integers(2**31)))) for _ in range(n_sets)]
    return {method: np.array([own[method] <= ALPHA for own in p]) for method in p[0]}
