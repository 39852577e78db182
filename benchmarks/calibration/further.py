"""Error rates of tests of labels, of predictions of another scale, and of many subsets; accuracy of power estimates."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.calibration.compared import QUIET, build_score_counts, draw_seed, list_pairs
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.pairs import compute_t_power
from benchmarks.calibration.scenarios import Rng, to_thousandths
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.counts.fields import Array
from sigdask.report.analyses import independence_all, power

ALPHA, N_TRIALS = 0.05, 999
LABELS = ("N", "V", "A")
N_SUBSETS, SUBSET_SIZE = 57, 100
"""As in MMLU."""


def cases() -> list[Case]:
    """Return the cases of independence tests and power estimates."""
    return [
        *(Case("labellings", f"{n} items, labels of 70, 20 and 10 %", partial(measure_labellings, n), 5_000, 100)
          for n in (8, 50)),
        *(Case("foretold power", f"{n} normal units, better by {shift:g} sd", partial(measure_estimated_power, n, shift), 400, 50)
          for n, shift in ((30, 0.5), (100, 0.3))),
        *(Case("scale", metric, partial(measure_scale, metric), 500, 50) for metric in ("pearson", "spearman", "AUC")),
        Case("subsets", f"{N_SUBSETS} subsets of {SUBSET_SIZE} items, 0/1", measure_subsets, 400, 50),
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


def measure_scale(metric: str, rng: Rng, n_sets: int) -> Outcomes:
    """Return which correlations with 100 gold values are found to differ: equal ones, and .57 from .37."""
    outcomes = {}
    for name, slopes in (("equal", (0.5, 0.5)), ("different", (0.7, 0.4))):
        found = []
        for _ in range(n_sets):
            gold = rng.standard_normal(100)
            a, b = (slope * gold + rng.standard_normal(100) for slope in slopes)
            true, seed = (gold > 0).astype(int) if metric == "AUC" else gold, draw_seed(rng)
            found.append(
                [compute_p(metric, true, a, b, seed) <= ALPHA, compute_p(metric, true, 100 * a + 5, b, seed) <= ALPHA]
            )
        for suffix, rejected in zip(("", ", × 100 + 5"), np.array(found).T, strict=True):
            outcomes[name + suffix] = Outcome(rejected, should="at most" if name == "equal" else "nothing")
    return outcomes


def compute_p(metric: str, gold: Array, a: Array, b: Array, seed: int) -> float:
    """Return p of two systems' predictions."""
    counts = Counts.from_numbers(gold.tolist(), {"a": a.tolist(), "b": b.tolist()})
    results = compare_all(
        counts, metrics=metric, method="randomization", trials=N_TRIALS, seed=seed, interval="none", **QUIET
    )
    return float(results.table.p_value[0])


def measure_subsets(rng: Rng, n_sets: int) -> Outcomes:
    """Return in which test sets two equal systems differ in at least one subset, without adjustment and with max-T."""
    found = []
    for _ in range(n_sets):
        scores = rng.integers(0, 2, (2, N_SUBSETS * SUBSET_SIZE))
        subset = [f"s{k:02d}" for k in np.repeat(np.arange(N_SUBSETS), SUBSET_SIZE)]
        counts = Counts.from_scores({"a": scores[0], "b": scores[1]}, groups={"subset": subset})
        table = compare_all(
            counts, metrics="mean", by="subset", alternative="greater", adjust="max-t", method="randomization",
            trials=N_TRIALS, seed=draw_seed(rng), interval="none", **QUIET,
        ).table  # fmt: skip
        found.append([table.p_value.min() <= ALPHA, table.p_adjusted.min() <= ALPHA])
    unadjusted, adjusted = np.array(found).T
    return {"without adjustment": Outcome(unadjusted, should="nothing"), "max-t": Outcome(adjusted)}
