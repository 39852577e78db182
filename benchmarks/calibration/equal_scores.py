"""Swaps and the equal-score test on systems of equal scores, and on systems that differ.

Equal scores do not make systems exchangeable: not if one gives more answers than the other, or if their scores are
skewed in opposite directions. Swaps then reject too often. The equal-score test should not, so that the comparison is
contested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.compared import (
    QUIET,
    build_counts,
    build_score_counts,
    compare_pairs,
    draw_seed,
    interleave,
)
from benchmarks.calibration.coverage import F1
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.scenarios import SCENARIOS, SCENARIOS_BY_NAME, Rng
from sigdask import compare_all
from sigdask.counts import Counts
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.results.table import Table

ALPHA, N_TRIALS = 0.05, 999
OPTIONS: dict[str, Any] = {"method": "randomization", "trials": N_TRIALS, "interval": "none"}
PRECISION = Ratios(((1, 0),), ((0, 1),))

Draw = Callable[[Rng, int], tuple[Counts, dict[str, Any]]]
"""Draws data sets, and returns them with the options of their comparison."""


def cases() -> list[Case]:
    """Return the cases of the equal-score test."""
    opposite = [
        (f"{s.row}, {n}", partial(draw_scores, s.name, n, 0.0))
        for s in SCENARIOS
        if not s.exchangeable
        for n in s.sizes
        if n >= 10
    ]
    same = [
        (f"{name}, {n}", partial(draw_scores, name, n, 0.0))
        for name in ("normal", "lognormal", "grades 0 to 3")
        for n in (20, 50)
    ]
    better = [
        (f"{name}, {n}", partial(draw_scores, name, n, 2.9 / np.sqrt(n)))
        for name in ("normal", "uniform", "logistic", "t, 2.5 degrees", "grades 0 to 3")
        for n in (10, 20, 50, 200)
    ]
    return [
        *(Case("equal scores", row, partial(measure_pairs, draw, ALPHA), 1_000, 100)
          for row, draw in [*iter_unequal_answers(), *opposite, *same]),
        Case("equal scores", "family of 600, 600, 60 and 60 answers", measure_family, 400, 100),
        *(Case("true differences", row, partial(measure_pairs, draw, None), 2_000, 200)
          for row, draw in [*better, ("precision 0.6 and 0.5, 300 answers each", partial(draw_answers, 300, 300, 0.5, 0.6)),
                            ("0/1, 50 documents of 10 items", draw_documents)]),
    ]  # fmt: skip


def iter_unequal_answers() -> Iterator[tuple[str, Draw]]:
    """Yield systems of equal precision or F1 with very different numbers of answers, and how to draw them."""
    for n_a, n_b in ((1000, 100), (1000, 50), (300, 30), (100, 10), (30, 30)):
        yield f"precision 0.5, {n_a:,} against {n_b} answers", partial(draw_answers, n_a, n_b, 0.5, 0.5)
    yield "precision 0.9, 300 against 10 answers", partial(draw_answers, 300, 10, 0.9, 0.9)
    for n in (20, 50, 200):
        yield f"precision 0.6, {n} sentences, 2 against 0.2 answers in each", partial(draw_sentences, n)
        yield f"F1 0.4 at recalls 0.95 and 0.35, {n} sentences", partial(draw_f_scores, n)
    yield "accuracy 0.05, 30 items, 20 against 1 samples of each", draw_samples


def measure_pairs(draw: Draw, level: float | None, rng: Rng, n_sets: int) -> Outcomes:
    """Return which pairs the swaps reject, and which of these are contested; no level where all rejections are right."""
    counts, options = draw(rng, n_sets)
    table = compare_pairs(counts, seed=draw_seed(rng), **OPTIONS, **options).table
    return judge(table.p_value, table["equal_scores.p_value"], np.arange(n_sets), level)


def judge(
    p: NDArray[np.float64], p_equal: NDArray[np.float64], data_set: NDArray[np.int64], level: float | None
) -> Outcomes:
    """Return in which data sets any comparison is rejected by swaps, by both tests, and by the other test alone.

    Where the equal-score test is not made because it would be the same as the swaps, both agree.
    """
    by_swaps = p <= ALPHA
    by_equal = np.where(np.isnan(p_equal), by_swaps, p_equal <= ALPHA)
    any_of = {
        name: np.bincount(data_set, rejected) > 0
        for name, rejected in (("swaps", by_swaps), ("both", by_swaps & by_equal), ("equal", by_equal & ~by_swaps))
    }
    return {
        "rejected by swaps": Outcome(any_of["swaps"], should="nothing"),
        "rejected by both": Outcome(any_of["both"], should="nothing" if level is None else "at most"),
        "contested, of those": Outcome(~any_of["both"][any_of["swaps"]], should="nothing"),
        "rejected by the other alone": Outcome(any_of["equal"], should="nothing"),
    }


def draw_answers(
    n_a: int, n_b: int, precision_b: float, precision_a: float, rng: Rng, n_sets: int
) -> tuple[Counts, dict[str, Any]]:
    """Draw answers to different items, each right with the probability of its system."""
    return build_answers([(n_a, precision_a), (n_b, precision_b)], rng, n_sets), {"form": PRECISION}


def build_answers(systems: list[tuple[int, float]], rng: Rng, n_sets: int) -> Counts:
    """Return data sets of systems that each answer other items: right answers, and answers, of each item."""
    n_items, first = sum(n for n, _ in systems), 0
    right = np.zeros((n_items, n_sets, len(systems)), np.int64)
    given = np.zeros_like(right)
    for k, (n, precision) in enumerate(systems):
        right[first : first + n, :, k] = rng.random((n, n_sets)) < precision
        given[first : first + n, :, k] = 1
        first += n
    return build_counts({"right": right.reshape(n_items, -1), "given": given.reshape(n_items, -1)})


def draw_sentences(n: int, rng: Rng, n_sets: int) -> tuple[Counts, dict[str, Any]]:
    """Draw sentences with Poisson numbers of answers, 60 % of them right."""
    given = [rng.poisson(mean, (n, n_sets)) for mean in (2, 0.2)]
    right = [rng.binomial(answers, 0.6) for answers in given]
    return build_counts({"right": interleave(*right), "given": interleave(*given)}), {"form": PRECISION}


def draw_f_scores(n: int, rng: Rng, n_sets: int) -> tuple[Counts, dict[str, Any]]:
    """Draw sentences with one gold item in the mean, for recalls of 0.95 and 0.35 and an F1 of 0.4."""
    gold = rng.poisson(1.0, (n, n_sets))
    right = [rng.binomial(gold, recall) for recall in (0.95, 0.35)]
    wrong = [rng.poisson(2 * recall / 0.4 - 1 - recall, (n, n_sets)) for recall in (0.95, 0.35)]
    given = [hits + misses for hits, misses in zip(right, wrong, strict=True)]
    return build_counts({"right": interleave(*right), "given": interleave(*given), "gold": interleave(gold, gold)}), {
        "form": F1
    }


def draw_samples(rng: Rng, n_sets: int) -> tuple[Counts, dict[str, Any]]:
    """Draw 30 items of different difficulty: one system has the mean of 20 samples, the other one sample."""
    chance = rng.beta(0.1, 1.9, (30, n_sets))
    return build_score_counts(rng.binomial(20, chance), 20 * rng.binomial(1, chance)), {}


def draw_scores(name: str, n_units: int, shift: float, rng: Rng, n_sets: int) -> tuple[Counts, dict[str, Any]]:
    """Draw scores of a scenario, with a better first system if it has a shift."""
    scenario = SCENARIOS_BY_NAME[name]
    drawn = scenario.draw_better(rng, n_units, n_sets, shift) if shift else scenario.draw(rng, n_units, n_sets)
    return build_score_counts(*drawn), {}


def draw_documents(rng: Rng, n_sets: int) -> tuple[Counts, dict[str, Any]]:
    """Draw right and wrong items of documents, with 60 and 52 % right."""
    difficulty = np.repeat(rng.normal(0, 0.1, (50, n_sets)), 10, axis=0)
    a, b = ((rng.random((500, n_sets)) < mean + difficulty).astype(np.int64) for mean in (0.6, 0.52))
    documents = [f"d{k:02d}" for k in np.repeat(np.arange(50), 10)]
    return build_score_counts(a, b, {"document": documents}), {"unit": "document"}


def measure_family(rng: Rng, n_sets: int) -> Outcomes:
    """Return in which families of four systems with other numbers of answers any difference is found, by max-T."""
    metric = BoundMetric("precision", ("right", "given"), PRECISION)
    tables: list[Table] = []
    for _ in range(n_sets):
        counts = build_answers([(n, 0.5) for n in (600, 600, 60, 60)], rng, 1)
        results = compare_all(counts, metrics=[metric], adjust="max-t", seed=draw_seed(rng), **QUIET, **OPTIONS)
        tables.append(results.table)
    p = np.concatenate([table.p_adjusted for table in tables])
    p_equal = np.concatenate([table["equal_scores.p_adjusted"] for table in tables])
    return judge(p, p_equal, np.repeat(np.arange(n_sets), len(p) // n_sets), ALPHA)
