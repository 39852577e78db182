"""Error rates of nightly gates: failures of runs without a loss, and false alarms of online rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.calibration.compared import QUIET, draw_seed
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.scenarios import Rng, to_thousandths
from sigdask import compare_all
from sigdask.counts import Counts
from sigdask.nightly.gate.judge import judge_rules
from sigdask.nightly.gate.rules import Evidence, NotWorse
from sigdask.statistics.multiplicity import compute_levels, compute_old_levels

ALPHA, N_NIGHTS, N_UNITS = 0.05, 60, 30
LOSS_SIZE = 3.0
"""Of a night with a loss, in standard errors."""


def cases() -> list[Case]:
    """Return the cases of gates and nights."""
    return [
        Case("gates", "5 systems as good as the baseline, 30 units", measure_no_loss, 4_000, 50),
        *(Case("nights", f"{N_NIGHTS} nights, {100 * losses:g} % with a loss, {dependence}", partial(measure_false_alarms, losses, shared), 4_000, 100)
          for dependence, shared in (("independent", 0.0), ("on one test set, r = 0.5", 0.5)) for losses in (0.0, 0.1, 0.2)),
        *(Case("power of nights", f"{N_NIGHTS} nights, {100 * losses:g} % with a loss, independent", partial(measure_detections, losses), 4_000, 100)
          for losses in (0.1, 0.2)),
    ]  # fmt: skip


def measure_no_loss(rng: Rng, n_sets: int) -> Outcomes:
    """Return which runs fail although no system is worse than the baseline."""
    failed = np.array([not run_gate(rng) for _ in range(n_sets)])
    return {"not worse, by Holm": Outcome(failed)}


def run_gate(rng: Rng) -> bool:
    """Return whether the gate passes one run of systems with equal means."""
    scores = to_thousandths(rng.standard_normal((N_UNITS, 6)) + rng.standard_normal((N_UNITS, 1)))
    counts = Counts.from_scores({f"s{k}": scores[:, k] for k in range(6)})
    results = compare_all(
        counts, metrics="mean", baseline="s0", method="randomization", trials=999, seed=draw_seed(rng), **QUIET
    )
    return judge_rules([NotWorse(ALPHA, baseline="s0")], results.table, Evidence()).passed


def measure_false_alarms(losses: float, shared: float, rng: Rng, n_sets: int) -> Outcomes:
    """Return each online rule's share of false alarms among the alarms of a sequence of nights."""
    common, noise = rng.standard_normal((n_sets, 1)), rng.standard_normal((n_sets, N_NIGHTS))
    worse = rng.random((n_sets, N_NIGHTS)) < losses
    p = special.ndtr(-(np.sqrt(shared) * common + np.sqrt(1 - shared) * noise + LOSS_SIZE * worse))
    lord = "at most" if shared == 0 else "nothing"
    return {
        "LORD++": Outcome(compute_false_share(p, worse, "lord++"), should=lord),
        "LOND": Outcome(compute_false_share(p, worse, "lond")),
        "each night at 0.05": Outcome(_compute_share(p <= ALPHA, worse), should="nothing"),
    }


def measure_detections(losses: float, rng: Rng, n_sets: int) -> Outcomes:
    """Return the share of nights with a loss on which each online rule raises an alarm."""
    worse = rng.random((n_sets, N_NIGHTS)) < losses
    p = special.ndtr(-(rng.standard_normal((n_sets, N_NIGHTS)) + LOSS_SIZE * worse))
    p, worse = (array[worse.any(axis=1)] for array in (p, worse))
    alarms_by_rule = {
        "LORD++": find_alarms(p, "lord++"),
        "LORD++ with the weights before": find_alarms(p, "lord++", compute_old_levels),
        "LOND": find_alarms(p, "lond"),
        "LOND with the weights before": find_alarms(p, "lond", compute_old_levels),
        "each night at 0.05": p <= ALPHA,
    }
    return {
        name: Outcome((alarm & worse).sum(axis=1) / worse.sum(axis=1), should="nothing")
        for name, alarm in alarms_by_rule.items()
    }


def find_alarms(
    p: NDArray[np.float64], rule: str, level_function: Callable[..., list[float]] = compute_levels
) -> NDArray[np.bool_]:
    """Return on which nights an online rule raises an alarm, shape (n_sets, n_nights)."""
    return np.array([p_row <= np.array(level_function(p_row.tolist(), ALPHA, rule)[:-1]) for p_row in p])


def compute_false_share(p: NDArray[np.float64], worse: NDArray[np.bool_], rule: str) -> NDArray[np.float64]:
    """Return the share of false alarms in each sequence of nights, shape (n_sets,)."""
    return _compute_share(find_alarms(p, rule), worse)


def _compute_share(alarm: NDArray[np.bool_], worse: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.asarray((alarm & ~worse).sum(axis=1) / np.maximum(alarm.sum(axis=1), 1))
