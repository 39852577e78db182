"""Error rates of independence tests of labels, and the accuracy of power estimates."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.calibration.compared import build_score_counts, draw_seed, list_pairs
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.pairs import compute_t_power
from benchmarks.calibration.scenarios import Rng, to_thousandths
from sigdask.api import independence_all, power
from sigdask.counts import Counts

ALPHA, N_TRIALS = 0.05, 999
LABELS = ("N", "V", "A")


def cases() -> list[Case]:
    """Return the cases of independence tests and power estimates."""
    return [
        *(Case("labellings", f"{n} items, labels of 70, 20 and 10 %", partial(measure_labellings, n), 5_000, 100)
          for n in (8, 50)),
        *(Case("foretold power", f"{n} normal units, better by {shift:g} sd", partial(measure_estimated_power, n, shift), 400, 50)
          for n, shift in ((30, 0.5), (100, 0.3))),
    ]  # fmt: skip


def measure_labellings(n_items: int, rng: Rng, n_sets: int) -> Outcomes:
    """Return which random labellings are found to depend on the gold labels."""
    labels = rng.choice(LABELS, (n_sets + 1, n_items), p=(0.7, 0.2, 0.1))
    labels[0, :3] = LABELS  # gold has each
    counts = Counts.from_labels(
        labels[0].tolist(), {f"s{k}": system_labels.tolist() for k, system_labels in enumerate(labels[1:])}
    )
    results = independence_all(
        counts, metrics=["accuracy", "macro-f1"], seed=draw_seed(rng), trials=N_TRIALS, method="randomization",
        second_run=False, cluster="none",
    )  # fmt: skip
    names = dict.fromkeys(result.metric for result in results)
    return {
        name: Outcome(np.array([result.p_value <= ALPHA for result in results if result.metric == name]))
        for name in names
    }


def measure_estimated_power(n_units: int, shift: float, rng: Rng, n_sets: int) -> Outcomes:
    """Return power estimates from samples; on average they should equal the exact power."""
    a, b = to_thousandths(rng.standard_normal((2, n_units, n_sets)) / np.sqrt(2))
    counts = build_score_counts(a + round(1000 * shift), b)
    results = power(
        counts, difference=1000 * shift, metrics="mean", pairs=list_pairs(counts), samples=200, seed=draw_seed(rng),
        cluster="none", cache=False,
    )  # fmt: skip
    powers = np.array([np.nan if result.at_wanted is None else result.at_wanted.power for result in results])
    return {"predicted power": Outcome(powers[~np.isnan(powers)], compute_t_power(n_units, shift), "nothing")}
