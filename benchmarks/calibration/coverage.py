"""Coverage of intervals of a difference: means of many shapes, F1, and resampled real outputs.

Of simulated scores the true difference is known; of real ones the whole test set is taken for what they stand for, and
smaller ones are drawn from it, with replacement.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.compared import MEAN, build_counts, build_score_counts, compare_pairs, draw_seed, interleave
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.real import DATA, load_test_set
from benchmarks.calibration.scenarios import SCENARIOS, SCENARIOS_BY_NAME, Rng, to_thousandths
from sigdask.counts import Counts
from sigdask.metrics.forms import Form, Ratios
from sigdask.results.columns import TANGO
from sigdask.results.fields import iter_shortfalls

N_RESAMPLES, N_TRIALS = 1999, 999
MIN_COVERAGE = 0.93
"""Coverage of intervals of 95 % from which nothing needs to be noted."""

DrawnSets = tuple[Counts, Form, float]
"""Data sets, what is made of their sums, and the true difference."""

F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))


def cases() -> list[Case]:
    """Return the cases of intervals."""
    draws: dict[str, tuple[Callable[[Rng, int], DrawnSets], int]] = {}
    for s in SCENARIOS:
        for n in s.covered:
            draws[f"{s.row}, {n}"] = partial(draw_scores, s.name, n), 10_000
    draws["50 clusters of 10 items, ICC 0.1, by item"] = partial(draw_clustered, "item"), 4_000
    draws["50 clusters of 10 items, ICC 0.1, by cluster"] = partial(draw_clustered, "cluster"), 4_000
    for n in (50, 200):
        draws[f"F1 of {n} sentences"] = partial(draw_f_scores, n), 10_000
    if DATA.is_dir():
        for name, n in (("WNUT 2017, F1", 300), ("HANS, accuracy", 300), ("WMT 2024 en-de, BLEU", 200)):
            draws[f"{name}, {n} drawn again"] = partial(resample_real, name, n), 2_000
    return [Case("intervals", row, partial(measure_coverage, draw), n, 100) for row, (draw, n) in draws.items()]


def measure_coverage(draw: Callable[[Rng, int], DrawnSets], rng: Rng, n_sets: int) -> Outcomes:
    """Return which intervals cover the true difference; for the default also without noted data sets.

    Data sets in which no unit differs have no interval and are left out.
    """
    counts, form, true = draw(rng, n_sets)
    unit = next(iter(counts.groups), "item")
    options: dict[str, Any] = {
        "form": form,
        "unit": unit,
        "seed": draw_seed(rng),
        "method": "randomization",
        "trials": N_TRIALS,
    }
    table = compare_pairs(counts, resamples=N_RESAMPLES, **options).table
    differ = table.n_discordant > 0
    is_held = partial(covers_truth, true=true, rows=differ)
    resampled = compare_pairs(counts, interval="bootstrap", resamples=N_RESAMPLES, **options).table
    covered = {
        "percentile": is_held(resampled["interval.percentile.0"], resampled["interval.percentile.1"]),
        "BCa": is_held(resampled["interval.low"], resampled["interval.high"]),
    }
    low, high = table["interval.low"], table["interval.high"]
    if (is_tango := table["interval.method"].equals(TANGO)).any():
        covered["Tango"] = is_held(low, high, rows=differ & is_tango)
    if form is MEAN:
        inverted = compare_pairs(counts, interval="inversion", **options).table
        covered["inversion"] = is_held(inverted["interval.low"], inverted["interval.high"])
    is_noted = np.any([rows for *_, rows in iter_shortfalls(table)], axis=0)
    covered["by default, where nothing is noted"] = is_held(low, high, rows=differ & ~is_noted)
    return {name: Outcome(is_covered, MIN_COVERAGE, "at least") for name, is_covered in covered.items()}


def covers_truth(
    low: NDArray[np.float64], high: NDArray[np.float64], true: float, rows: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which of the selected intervals cover the true difference, up to rounding."""
    return ((low <= true + 1e-12) & (true - 1e-12 <= high))[rows]


def draw_scores(name: str, n_units: int, rng: Rng, n_sets: int) -> DrawnSets:
    """Draw scores of two systems with equal means."""
    return build_score_counts(*SCENARIOS_BY_NAME[name].draw(rng, n_units, n_sets)), MEAN, 0.0


def draw_clustered(unit: str, rng: Rng, n_sets: int) -> DrawnSets:
    """Draw scores that are correlated within clusters."""
    between = np.sqrt(0.1) * rng.standard_normal((50, 1, n_sets))
    d = to_thousandths(between + np.sqrt(0.9) * rng.standard_normal((50, 10, n_sets))).reshape(-1, n_sets)
    cluster = [f"c{k:02d}" for k in np.repeat(np.arange(50), 10)]
    return build_score_counts(d, np.zeros_like(d), {} if unit == "item" else {"cluster": cluster}), MEAN, 0.0


def draw_f_scores(n_sentences: int, rng: Rng, n_sets: int) -> DrawnSets:
    """Draw sentences with gold items: one system finds 60 % of them, the other 50 %, both with errors."""
    shape = (n_sentences, n_sets)
    gold = rng.poisson(1.0, shape)
    n_found: list[NDArray[Any]] = [rng.binomial(gold, chance) for chance in (0.6, 0.5)]
    n_given = [hits + rng.poisson(spurious, shape) for hits, spurious in zip(n_found, (0.3, 0.2), strict=True)]
    fields = {"right": interleave(*n_found), "given": interleave(*n_given), "gold": interleave(gold, gold)}
    true = 2 * 0.6 / (0.9 + 1.0) - 2 * 0.5 / (0.7 + 1.0)
    return build_counts(fields), F1, true


def resample_real(name: str, n_items: int, rng: Rng, n_sets: int) -> DrawnSets:
    """Draw items of a real test set with replacement, for one pair of its systems."""
    real = load_test_set(name)
    a, b = rng.permutation(real.n_systems)[:2]
    indices = rng.integers(0, real.n_items, (n_items, n_sets))
    fields, totals = {}, []
    for field, values in real.fields.items():
        x, y = (values[:, 0], values[:, 0]) if values.shape[1] == 1 else (values[:, a], values[:, b])
        fields[field] = interleave(x[indices], y[indices])
        totals.append([x.sum(), y.sum()])
    scored = real.form.score(np.array(totals).T)
    return build_counts(fields), real.form, float(scored[0] - scored[1])
