"""Error rates of rankings by equally good measures, and coverage of intervals of their precision."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.scenarios import Rng
from sigdask.analysis.candidate_rankings import Candidates, MeasureRankings
from sigdask.examples.repeated_samples import draw_probabilities
from sigdask.options import RankingOptions, fill_options
from sigdask.statistics.candidates import compute_list_limits, compute_widened_interval, estimate_dispersion

ALPHA, N_TRIALS = 0.05, 399
N_CANDIDATES, CUTOFFS = 200, (20, 50, 100)
CONFIDENCE = 0.95
N_PARTS, N_ACCEPTED, OVERDISPERSION = 80, 100, 1.7


def cases() -> list[Case]:
    """Return the cases of rankings."""
    shapes = {"independent": (0.0, 3), "r = 0.8": (0.8, 3), "whole numbers, many ties": (0.5, 0)}
    return [
        *(Case("rankings", row, partial(measure_equal, *shape), 4_000, 100) for row, shape in shapes.items()),
        Case("intervals of rankings", f"{N_PARTS} parts, binomial", partial(measure_parts, 1.0), 4_000, 50),
        Case("intervals of rankings", f"{N_PARTS} parts, overdispersion {OVERDISPERSION:g}",
             partial(measure_parts, OVERDISPERSION), 4_000, 50),
        Case("intervals of rankings", "a tenth of 1,000 judged, the 200 best", measure_judged, 18_500, 500),
    ]  # fmt: skip


def measure_equal(correlation: float, digits: int, rng: Rng, n_sets: int) -> Outcomes:
    """Compare two measures whose scores of each candidate are exchangeable."""
    rejected = np.empty((n_sets, 4), np.bool_)
    for k in range(n_sets):
        gold = rng.random(N_CANDIDATES) < 0.3
        gold[:2] = True, False
        shared = np.sqrt(correlation) * rng.standard_normal(N_CANDIDATES) + 0.8 * gold
        noisy_scores = (shared + np.sqrt(1 - correlation) * rng.standard_normal(N_CANDIDATES) for _ in "ab")
        scores = dict(zip("ab", (value.round(digits) for value in noisy_scores), strict=True))
        options = fill_options(RankingOptions, {"n": CUTOFFS, "trials": N_TRIALS, "seed": int(rng.integers(2**31))})
        lists = MeasureRankings(Candidates(gold.tolist(), scores), options)
        tallies = [job.panel.tally(run=0, first=0, n_trials=N_TRIALS) for job in lists.jobs]
        rows = lists.build_evaluation(tallies)
        last_difference = rows.differences[-1]
        pointwise = [row.p_fisher for row in rows.differences]
        p = (
            last_difference.p_fisher,
            min(pointwise),
            last_difference.p_exchange,
            min(row.p_adjusted for row in rows.differences),
        )
        rejected[k] = [value <= ALPHA for value in p]
    names = (
        "Fisher at n = 100",
        "Fisher at any n",
        "swap at n = 100",
        "swap, max-T at any n",
    )
    shoulds = ("at most", "nothing", "at most", "at most")
    return {
        name: Outcome(rejected[:, k], ALPHA, should)
        for k, (name, should) in enumerate(zip(names, shoulds, strict=True))
    }


def measure_parts(overdispersion: float, rng: Rng, n_sets: int) -> Outcomes:
    """Return the coverage of the overall precision by the intervals of parts of a corpus."""
    plain, widened = np.empty((2, n_sets))
    for k in range(n_sets):
        accepted = rng.poisson(N_ACCEPTED, N_PARTS).clip(1)
        true = rng.binomial(accepted, draw_probabilities(rng, N_PARTS, overdispersion))
        dispersion = estimate_dispersion(true, accepted)
        plain[k] = _is_covered(true, accepted, dispersion.precision, 1.0).mean()
        widened[k] = _is_covered(true, accepted, dispersion.precision, dispersion.factor).mean()
    should = "at least" if overdispersion == 1 else "nothing"
    return {"binomial": Outcome(plain, CONFIDENCE, should), "widened": Outcome(widened, CONFIDENCE, "at least")}


def _is_covered(
    true: NDArray[np.int64], accepted: NDArray[np.int64], precision: float, factor: float
) -> NDArray[np.bool_]:
    low, high = compute_widened_interval(true, accepted, CONFIDENCE, factor)
    return (low <= precision) & (precision <= high)


def measure_judged(rng: Rng, n_sets: int) -> Outcomes:
    """Judge a random tenth of the candidates; the interval should cover the precision of the best 200."""
    n, n_candidates, size = 200, 1000, 100
    true = rng.binomial(n, 0.3, n_sets)
    n_judged = rng.hypergeometric(n, n_candidates - n, size, n_sets)
    n_correct = rng.hypergeometric(true, n - true, n_judged.clip(1))
    low, high = compute_list_limits(n_correct, n_judged.clip(1), np.full(n_sets, n), CONFIDENCE)
    binomial = _is_covered(n_correct, n_judged.clip(1), 0.3, 1.0)
    exact = Outcome((low <= true) & (true <= high), CONFIDENCE, "at least")
    return {"of the list": exact, "binomial": Outcome(binomial, CONFIDENCE, "at least")}
