"""How often intervals of a difference hold the true one: means of many shapes, F, and real outputs drawn again.

Of simulated scores the true difference is known; of real ones the whole test set is taken for what they stand for, and
smaller ones are drawn from it, with replacement.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.compared import MEAN, compared, counts_of, interleaved, scores_of, seed_of
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.real import DATA, taken
from benchmarks.calibration.scenarios import OF, SCENARIOS, Rng, thousandths
from sigdask.counts import Counts
from sigdask.metrics.forms import Form, Ratios
from sigdask.results.columns.intervals import TANGO, Intervals
from sigdask.results.messages.intervals import iter_shortfalls
from sigdask.results.table import Table

N_RESAMPLES, N_TRIALS = 1999, 999
LEAST = 0.93
"""Coverage of intervals of 95 % from which nothing needs to be noted."""

Drawn = tuple[Counts, Form, float]
"""Data sets, what is made of their sums, and the true difference."""

F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))


def cases() -> list[Case]:
    """Return what is measured of intervals."""
    made: dict[str, tuple[Callable[[Rng, int], Drawn], int]] = {}
    for s in SCENARIOS:
        for n in s.covered:
            made[f"{s.row}, {n}"] = partial(scores, s.name, n), 10_000
    made["50 clusters of 10 items, ICC 0.1, by item"] = partial(clustered, "item"), 4_000
    made["50 clusters of 10 items, ICC 0.1, by cluster"] = partial(clustered, "cluster"), 4_000
    for n in (50, 200):
        made[f"F1 of {n} sentences"] = partial(f_scores, n), 10_000
    if DATA.is_dir():
        for name, n in (("WNUT 2017, F1", 300), ("HANS, accuracy", 300), ("WMT 2024 en-de, BLEU", 200)):
            made[f"{name}, {n} drawn again"] = partial(redrawn, name, n), 2_000
    return [Case("intervals", row, partial(coverage, draw), n, 100) for row, (draw, n) in made.items()]


def coverage(draw: Callable[[Rng, int], Drawn], rng: Rng, n_sets: int) -> Outcomes:
    """Say which intervals hold the true difference; of those by default also of data that get no note.

    Data sets in which no unit differs have no interval and are left out.
    """
    counts, form, true = draw(rng, n_sets)
    unit = next(iter(counts.groups), "item")
    how: dict[str, Any] = {
        "form": form,
        "unit": unit,
        "seed": seed_of(rng),
        "method": "randomization",
        "trials": N_TRIALS,
    }
    table = compared(counts, resamples=N_RESAMPLES, **how).table
    chosen = intervals_of(table)
    differ = table.n_discordant > 0
    is_held = partial(held, true=true, rows=differ)
    resampled = intervals_of(compared(counts, interval="bootstrap", resamples=N_RESAMPLES, **how).table)
    found = {
        "percentile": is_held(resampled.plain_low, resampled.plain_high),
        "BCa": is_held(resampled.low, resampled.high),
    }
    if (matched := np.array(chosen.method.to_list()) == TANGO).any():
        found["Tango"] = is_held(chosen.low, chosen.high, rows=differ & matched)
    if form is MEAN:
        inverted = intervals_of(compared(counts, interval="inversion", **how).table)
        found["inversion"] = is_held(inverted.low, inverted.high)
    noted = np.any([rows for _, rows in iter_shortfalls(table, chosen)], axis=0)
    found["by default, where nothing is noted"] = is_held(chosen.low, chosen.high, rows=differ & ~noted)
    return {name: Outcome(own, LEAST, "at least") for name, own in found.items()}


def intervals_of(table: Table) -> Intervals:
    """Return the intervals of the difference of each data set."""
    assert table.intervals is not None
    return table.intervals


def held(
    low: NDArray[np.float64], high: NDArray[np.float64], true: float, rows: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Say which intervals of some rows hold the true difference, up to rounding."""
    return ((low <= true + 1e-12) & (true - 1e-12 <= high))[rows]


def scores(name: str, n_units: int, rng: Rng, n_sets: int) -> Drawn:
    """Draw scores of two systems of one mean."""
    return scores_of(*OF[name].draw(rng, n_units, n_sets)), MEAN, 0.0


def clustered(unit: str, rng: Rng, n_sets: int) -> Drawn:
    """Draw scores that are correlated within clusters."""
    between = np.sqrt(0.1) * rng.standard_normal((50, 1, n_sets))
    d = thousandths(between + np.sqrt(0.9) * rng.standard_normal((50, 10, n_sets))).reshape(-1, n_sets)
    cluster = [f"c{k:02d}" for k in np.repeat(np.arange(50), 10)]
    return scores_of(d, np.zeros_like(d), {} if unit == "item" else {"cluster": cluster}), MEAN, 0.0


def f_scores(n_sentences: int, rng: Rng, n_sets: int) -> Drawn:
    """Draw sentences with some things to find, of which one system finds 60 and the other 50 %, and some that are not."""
    shape = (n_sentences, n_sets)
    gold = rng.poisson(1.0, shape)
    found: list[NDArray[Any]] = [rng.binomial(gold, chance) for chance in (0.6, 0.5)]
    given = [own + rng.poisson(spurious, shape) for own, spurious in zip(found, (0.3, 0.2), strict=True)]
    fields = {"right": interleaved(*found), "given": interleaved(*given), "gold": interleaved(gold, gold)}
    true = 2 * 0.6 / (0.9 + 1.0) - 2 * 0.5 / (0.7 + 1.0)
    return counts_of(fields), F1, true


def redrawn(name: str, n_items: int, rng: Rng, n_sets: int) -> Drawn:
    """Draw items of a real test set with replacement, for one pair of its systems."""
    real = taken(name)
    a, b = rng.permutation(real.n_systems)[:2]
    some = rng.integers(0, real.n_items, (n_items, n_sets))
    fields, whole = {}, []
    for field, values in real.fields.items():
        x, y = (values[:, 0], values[:, 0]) if values.shape[1] == 1 else (values[:, a], values[:, b])
        fields[field] = interleaved(x[some], y[some])
        whole.append([x.sum(), y.sum()])
    scored = real.form.score(np.array(whole).T)
    return counts_of(fields), real.form, float(scored[0] - scored[1])
