"""Rankings of candidates by equally good measures, and how many intervals of their precision hold it."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.scenarios import Rng
from sigdask.analysis.candidate_rankings import Candidates
from sigdask.analysis.candidate_rankings.evaluation import MeasureRankings
from sigdask.analysis.candidate_rankings.spec import RankingSpec
from sigdask.examples.repeated_samples import draw_probabilities
from sigdask.statistics.candidates.repeated import compute_widened_interval, estimate_dispersion
from sigdask.statistics.candidates.tables import compute_list_limits

ALPHA, N_TRIALS = 0.05, 399
N_CANDIDATES, CUTOFFS = 200, (20, 50, 100)
COVERED = 0.95
N_PARTS, N_ACCEPTED, OVERDISPERSION = 80, 100, 1.7


def cases() -> list[Case]:
    """Return what is measured of rankings."""
    shapes = {"independent": (0.0, 3), "r = 0.8": (0.8, 3), "whole numbers, many ties": (0.5, 0)}
    return [
        *(Case("rankings", row, partial(equal, *shape), 4_000, 100) for row, shape in shapes.items()),
        Case("intervals of rankings", f"{N_PARTS} parts, binomial", partial(parts, 1.0), 4_000, 50),
        Case("intervals of rankings", f"{N_PARTS} parts, overdispersion {OVERDISPERSION:g}",
             partial(parts, OVERDISPERSION), 4_000, 50),
        Case("intervals of rankings", "a tenth of 1,000 judged, the 200 best", judged, 18_500, 500),
    ]  # fmt: skip


def equal(correlation: float, digits: int, rng: Rng, n_sets: int) -> Outcomes:
    """Compare two measures whose scores of each candidate are exchangeable."""
    found = np.empty((n_sets, 5), np.bool_)
    for k in range(n_sets):
        gold = rng.random(N_CANDIDATES) < 0.3
        gold[:2] = True, False
        shared = np.sqrt(correlation) * rng.standard_normal(N_CANDIDATES) + 0.8 * gold
        own = (shared + np.sqrt(1 - correlation) * rng.standard_normal(N_CANDIDATES) for _ in "ab")
        scores = dict(zip("ab", (each.round(digits) for each in own), strict=True))
        asked = RankingSpec.from_options(n=CUTOFFS, trials=N_TRIALS, seed=int(rng.integers(2**31)))
        lists = MeasureRankings(Candidates.of(gold.tolist(), scores), asked)
        tallies = [job.panel.tally(run=0, first=0, n_trials=N_TRIALS) for job in lists.jobs]
        rows = lists.build_evaluation(tallies)
        last = rows.differences[-1]
        pointwise = [row.p_fisher for row in rows.differences]
        p = last.p_fisher, min(pointwise), last.p_exchange, min(row.p_adjusted for row in rows.differences)
        found[k] = [each <= ALPHA for each in (*p, rows.average_precision[0].p_value)]
    names = (
        "Fisher at n = 100",
        "Fisher at any n",
        "exchange at n = 100",
        "exchange, max-T at any n",
        "average precision",
    )
    shoulds = ("at most", "nothing", "at most", "at most", "at most")
    return {
        name: Outcome(found[:, k], ALPHA, should) for k, (name, should) in enumerate(zip(names, shoulds, strict=True))
    }


def parts(overdispersion: float, rng: Rng, n_sets: int) -> Outcomes:
    """Take the acceptance sets of parts of a corpus, whose own intervals are to hold the precision of all."""
    plain, widened = np.empty((2, n_sets))
    for k in range(n_sets):
        accepted = rng.poisson(N_ACCEPTED, N_PARTS).clip(1)
        true = rng.binomial(accepted, draw_probabilities(rng, N_PARTS, overdispersion))
        of_all = estimate_dispersion(true, accepted)
        plain[k] = _held(true, accepted, of_all.precision, 1.0).mean()
        widened[k] = _held(true, accepted, of_all.precision, of_all.factor).mean()
    should = "at least" if overdispersion == 1 else "nothing"
    return {"binomial": Outcome(plain, COVERED, should), "widened": Outcome(widened, COVERED, "at least")}


def _held(true: NDArray[np.int64], accepted: NDArray[np.int64], precision: float, factor: float) -> NDArray[np.bool_]:
    low, high = compute_widened_interval(true, accepted, COVERED, factor)
    return (low <= precision) & (precision <= high)


def judged(rng: Rng, n_sets: int) -> Outcomes:
    """Judge a random tenth of the candidates: the interval is to hold the precision of the 200 best."""
    n, whole, size = 200, 1000, 100
    true = rng.binomial(n, 0.3, n_sets)
    here = rng.hypergeometric(n, whole - n, size, n_sets)
    right = rng.hypergeometric(true, n - true, here.clip(1))
    low, high = compute_list_limits(right, here.clip(1), np.full(n_sets, n), COVERED)
    binomial = _held(right, here.clip(1), 0.3, 1.0)
    exact = Outcome((low <= true) & (true <= high), COVERED, "at least")
    return {"of the list": exact, "binomial": Outcome(binomial, COVERED, "at least")}
