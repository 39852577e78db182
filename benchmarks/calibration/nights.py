"""Gates, night after night: how often a run without a loss fails, and what share of all alarms is false."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.calibration.compared import QUIET, seed_of
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.scenarios import Rng, thousandths
from sigdask import compare_all
from sigdask.counts import Counts
from sigdask.nightly.gate import Evidence, NotWorse, judge_rules
from sigdask.statistics.online_fdr import compute_levels, compute_old_levels

ALPHA, N_NIGHTS, N_UNITS = 0.05, 60, 30
LOSS = 3.0
"""Of a night with a loss, in standard errors."""


def cases() -> list[Case]:
    """Return what is measured of gates."""
    return [
        Case("gates", "5 systems as good as the baseline, 30 units", no_loss, 4_000, 50),
        *(Case("nights", f"{N_NIGHTS} nights, {100 * losses:g} % with a loss, {what}", partial(alarms, losses, shared), 4_000, 100)
          for what, shared in (("independent", 0.0), ("on one test set, r = 0.5", 0.5)) for losses in (0.0, 0.1, 0.2)),
        *(Case("power of nights", f"{N_NIGHTS} nights, {100 * losses:g} % with a loss, independent", partial(caught, losses), 4_000, 100)
          for losses in (0.1, 0.2)),
    ]  # fmt: skip


def no_loss(rng: Rng, n_sets: int) -> Outcomes:
    """Judge runs in which no system is worse than the baseline."""
    failed = np.array([not passes(rng) for _ in range(n_sets)])
    return {"not worse, by Holm": Outcome(failed)}


def passes(rng: Rng) -> bool:
    """Say whether the gate passes one run of systems of one mean."""
    scores = thousandths(rng.standard_normal((N_UNITS, 6)) + rng.standard_normal((N_UNITS, 1)))
    counts = Counts.from_scores({f"s{k}": scores[:, k] for k in range(6)})
    found = compare_all(
        counts, metrics="mean", baseline="s0", method="randomization", trials=999, seed=seed_of(rng), **QUIET
    )
    return judge_rules([NotWorse(ALPHA, baseline="s0")], found.table, Evidence()).passed


def alarms(losses: float, shared: float, rng: Rng, n_sets: int) -> Outcomes:
    """Return the share of false alarms among alarms of each run of nights, by each online rule."""
    common, own = rng.standard_normal((n_sets, 1)), rng.standard_normal((n_sets, N_NIGHTS))
    worse = rng.random((n_sets, N_NIGHTS)) < losses
    p = special.ndtr(-(np.sqrt(shared) * common + np.sqrt(1 - shared) * own + LOSS * worse))
    lord = "at most" if shared == 0 else "nothing"
    return {
        "LORD++": Outcome(false_share(p, worse, "lord++"), should=lord),
        "LOND": Outcome(false_share(p, worse, "lond")),
        "each night at 0.05": Outcome(_share(p <= ALPHA, worse), should="nothing"),
    }


def caught(losses: float, rng: Rng, n_sets: int) -> Outcomes:
    """Return the share of the nights with a loss that each online rule alarms in."""
    worse = rng.random((n_sets, N_NIGHTS)) < losses
    p = special.ndtr(-(rng.standard_normal((n_sets, N_NIGHTS)) + LOSS * worse))
    p, worse = (own[worse.any(axis=1)] for own in (p, worse))
    found = {
        "LORD++": alarms_of(p, "lord++"),
        "LORD++ with the weights before": alarms_of(p, "lord++", compute_old_levels),
        "LOND": alarms_of(p, "lond"),
        "LOND with the weights before": alarms_of(p, "lond", compute_old_levels),
        "each night at 0.05": p <= ALPHA,
    }
    return {
        name: Outcome((alarm & worse).sum(axis=1) / worse.sum(axis=1), should="nothing")
        for name, alarm in found.items()
    }


def alarms_of(
    p: NDArray[np.float64], rule: str, levels_of: Callable[..., list[float]] = compute_levels
) -> NDArray[np.bool_]:
    """Return in which nights an online rule alarms, shape (n_sets, n_nights)."""
    return np.array([own <= np.array(levels_of(own.tolist(), ALPHA, rule)[:-1]) for own in p])


def false_share(p: NDArray[np.float64], worse: NDArray[np.bool_], rule: str) -> NDArray[np.float64]:
    """Return the share of false alarms of each run, shape (n_sets,)."""
    return _share(alarms_of(p, rule), worse)


def _share(alarm: NDArray[np.bool_], worse: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.asarray((alarm & ~worse).sum(axis=1) / np.maximum(alarm.sum(axis=1), 1))
