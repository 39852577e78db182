"""Metrics compared by their agreement with people: sizes of the permutation tests, and speed against NumPy.

    python -m benchmarks.meta sizes 400     # data sets without a true difference, in each row
    python -m benchmarks.meta speed         # all pairs of 20 metrics

`sizes` draws scores of 15 systems and 100 segments. People and both metrics see one latent quality of each cell, of the
system and of the segment. Both metrics have errors of the same distribution, so neither agrees better with people:
independent errors of each cell and, where it says so, errors that all cells of a system, or of a segment, share. Human
scores are whole numbers up to 0, as MQM's, with many ties.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from sigdask.analysis.comparison.pairs import CompareSpec, list_comparisons
from sigdask.counts import Counts
from sigdask.execution.run import limit_blas_threads

N_SYSTEMS, N_SEGMENTS = 15, 100
TRIALS = 99
LEVEL = 0.05
EFFECTS = {"independent errors": (0.0, 0.0), "system effects": (0.5, 0.0), "segment effects": (0.0, 0.5)}
"""Standard deviations of the errors that cells of a system and of a segment share; each cell's own is 1."""

TESTS = [
    ("meta-acc-eq:group=item", "item"), ("meta-acc-eq:group=item,permute=pairs", "item"),
    ("meta-acc-eq:group=item", "segment"), ("meta-acc-eq:group=item", "system"), ("meta-pearson", "item"),
    ("meta-pearson", "segment"), ("meta-pearson", "system"), ("meta-kendall:group=item", "item"),
    ("meta-kendall:group=item", "segment"), ("meta-kendall:group=item", "system"),
    ("meta-pearson:level=system", "system"), ("meta-spa:signs=200", "item"), ("meta-spa:signs=200", "segment"),
    ("meta-spa:signs=200", "system"),
]  # fmt: skip


def draw_scores(rng: np.random.Generator, n_metrics: int, effects: tuple[float, float]) -> Counts:
    """Return human scores and those of some equally good metrics."""
    shape = N_SYSTEMS, N_SEGMENTS
    quality = 0.5 * rng.normal(size=(N_SYSTEMS, 1)) + rng.normal(size=(1, N_SEGMENTS)) + rng.normal(size=shape)
    human = np.minimum(np.round(2 * (quality + rng.normal(size=shape))), 0.0)
    columns = []
    for _ in range(n_metrics):
        shared = effects[0] * rng.normal(size=(N_SYSTEMS, 1)) + effects[1] * rng.normal(size=(1, N_SEGMENTS))
        columns.append((quality + rng.normal(size=shape) + shared).ravel())
    systems = [f"s{i}" for i in range(N_SYSTEMS) for _ in range(N_SEGMENTS)]
    groups = {"system": systems, "segment": [str(k) for k in range(N_SEGMENTS)] * N_SYSTEMS}
    names = tuple(f"m{k}" for k in range(n_metrics))
    own = {"human": human.reshape(-1, 1), "score": np.column_stack(columns)}
    return Counts(names, own, len(systems), groups=groups)


def build_panel(counts: Counts, metric: str, unit: str) -> Any:
    """Return the panel of all pairs of metrics."""
    counts = counts.with_unit(unit)
    spec = CompareSpec([metric], method="randomization", trials=TRIALS)
    [panel] = list_comparisons(counts, spec).panels
    return panel


def measure_sizes(n_sets: int) -> Iterator[str]:
    """Yield how often each test finds a difference of equally good metrics at 0.05, two-sided."""
    yield f"| statistic | swapped | {' | '.join(EFFECTS)} |"
    yield f"| --- | --- |{' ---: |' * len(EFFECTS)}"
    for metric, unit in TESTS:
        cells = []
        for k, effects in enumerate(EFFECTS.values()):
            n = 0
            for number in range(n_sets):
                panel = build_panel(draw_scores(np.random.default_rng([k, number]), 2, effects), metric, unit)
                n_extreme = int(panel.tally(run=0, first=0, n_trials=TRIALS).counts[0, 0, 2])
                n += (n_extreme + 1) / (TRIALS + 1) <= LEVEL
            cells.append(f"{n / n_sets:.3f}")
        swapped = "pairs" if "pairs" in metric else {"item": "scores"}.get(unit, f"{unit}s")
        yield f"| {metric.partition(',permute')[0]} | {swapped} | {' | '.join(cells)} |"


def correlate_groups(x: np.ndarray, human: np.ndarray) -> float:
    """Return the mean Pearson correlation of rows by array operations; undefined rows are left out."""
    x, h = x - x.mean(axis=-1, keepdims=True), human - human.mean(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.nanmean((x * h).sum(axis=-1) / np.sqrt((x * x).sum(axis=-1) * (h * h).sum(axis=-1))))


def rank_rows(x: np.ndarray) -> np.ndarray:
    """Return ranks within rows; scores do not tie here."""
    ranks = np.empty(x.shape)
    np.put_along_axis(ranks, np.argsort(x, axis=-1), np.arange(x.shape[-1], dtype=float)[None], axis=-1)
    return ranks


def order_pairs(x: np.ndarray, ordered: np.ndarray, i: np.ndarray, j: np.ndarray) -> float:
    """Return the share of pairs within rows whose signs are those of people."""
    return float((np.sign(x[:, i] - x[:, j]) == ordered).mean())


def correlate_pairs(x: np.ndarray, prepared: dict[str, np.ndarray]) -> float:
    """Return the mean tau-b of rows; scores do not tie here, people's do."""
    human, n_pairs = prepared["ordered"], len(prepared["i"])
    same = (np.sign(x[:, prepared["i"]] - x[:, prepared["j"]]) * human).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return float(np.nanmean(same / np.sqrt(n_pairs * (human != 0).sum(axis=1))))


def calibrate_ties(x: np.ndarray, ordered: np.ndarray, i: np.ndarray, j: np.ndarray) -> float:
    """Return the largest share of right pairs over all thresholds of ties: from the pairs sorted by their difference."""
    d = x[:, i] - x[:, j]
    order, same = np.argsort(np.abs(d), axis=None), np.sign(d) == ordered
    won = np.where(ordered == 0, 1, -same.astype(int)).ravel()[order].cumsum()  # no two differences are equal
    right = same & (ordered != 0)
    return float((right.sum() + max(0, won.max())) / d.size)


def score_by_numpy(statistic: str, x: np.ndarray, prepared: dict[str, np.ndarray]) -> float:  # noqa: PLR0911
    """Return the agreement of scores, shape (n_systems, n_segments), as an implementation for each metric does."""
    human = prepared["human"]
    if statistic == "meta-pearson":
        return correlate_groups(x.ravel()[None], human.ravel()[None])
    if statistic == "meta-pearson:group=item":
        return correlate_groups(x.T, human.T)
    if statistic == "meta-spearman:group=item":
        return correlate_groups(rank_rows(x.T), prepared["ranks"])
    if statistic == "meta-accuracy:group=item":
        return order_pairs(x.T, prepared["ordered"], prepared["i"], prepared["j"])
    if statistic == "meta-pearson:level=system":
        return correlate_groups(x.mean(axis=1)[None], human.mean(axis=1)[None])
    if statistic == "meta-kendall":
        return float(kendalltau(x.ravel(), human.ravel()).statistic)
    if statistic == "meta-kendall:group=item":
        return correlate_pairs(x.T, prepared)
    if statistic == "meta-kendall:level=system":
        return correlate_pairs(x.mean(axis=1)[None], {**prepared, "ordered": prepared["ordered_systems"]})
    if statistic.startswith("meta-acc-eq"):
        is_system, name = "system" in statistic, "ordered"
        x, name = (x.mean(axis=1)[None], f"{name}_systems") if is_system else (x.T, name)
        return calibrate_ties(x, prepared[name], prepared["i"], prepared["j"])
    sums = x.astype(np.float32) @ prepared["signs"].T
    i, j = prepared["i"], prepared["j"]
    totals = x.sum(axis=1).astype(np.float32)
    wins = ((sums[i] - sums[j]) >= (totals[i] - totals[j])[:, None]).mean(axis=1)
    return float(1 - np.abs(wins - prepared["wins"]).mean())


SPEED = ("meta-pearson", "meta-pearson:group=item", "meta-spearman:group=item", "meta-accuracy:group=item",
         "meta-kendall", "meta-kendall:group=item", "meta-acc-eq:group=item", "meta-pearson:level=system",
         "meta-kendall:level=system", "meta-acc-eq:level=system", "meta-spa:signs=1000")  # fmt: skip


def measure_speed(n_metrics: int = 20, n_pairs_timed: int = 8, trials: int = 512) -> Iterator[str]:
    """Yield the CPU time of a trial and pair of metrics: of all pairs together, and of NumPy for each pair alone."""
    yield "| statistic | NumPy, µs a trial and pair | sigdask | times faster |"
    yield "| --- | ---: | ---: | ---: |"
    counts = draw_scores(np.random.default_rng(0), n_metrics, (0.0, 0.0))
    scores = counts.field("score").T.reshape(n_metrics, N_SYSTEMS, N_SEGMENTS)
    human = counts.field("human").reshape(N_SYSTEMS, N_SEGMENTS)
    i, j = np.triu_indices(N_SYSTEMS, 1)
    rng = np.random.default_rng(1)
    signs = np.where(rng.random((1000, N_SEGMENTS)) < 0.5, np.float32(-1), np.float32(1))
    prepared = {"human": human, "i": i, "j": j, "signs": signs, "ranks": rank_rows(human.T),
                "ordered": np.sign(human.T[:, i] - human.T[:, j]),
                "ordered_systems": np.sign(human.mean(axis=1)[i] - human.mean(axis=1)[j])[None], "wins": np.full(len(i), 0.5)}  # fmt: skip
    z = (scores - scores.mean(axis=(1, 2), keepdims=True)) / scores.std(axis=(1, 2), keepdims=True)
    for statistic in SPEED:
        level = "system" if "level=system" in statistic else "item"
        panel = build_panel(counts, statistic, level)
        panel.tally(run=0, first=0, n_trials=1)
        times: list[list[float]] = [[], []]
        for _ in range(3):
            start = time.process_time()
            panel.tally(run=0, first=0, n_trials=trials)
            times[1].append((time.process_time() - start) / trials / len(panel.pairs))
            start = time.process_time()
            with limit_blas_threads():
                for a, b in panel.pairs[:n_pairs_timed].tolist():
                    for _ in range(64):
                        swapped = rng.random(human.shape[: 1 + (level == "item")]) < 0.5
                        swapped = swapped.reshape(N_SYSTEMS, -1)
                        first, second = np.where(swapped, z[b], z[a]), np.where(swapped, z[a], z[b])
                        score_by_numpy(statistic, first, prepared) - score_by_numpy(statistic, second, prepared)
            times[0].append((time.process_time() - start) / 64 / n_pairs_timed)
        slow, fast = (1e6 * min(values) for values in times)
        yield f"| {statistic} | {slow:,.1f} | {fast:,.2f} | {slow / fast:,.0f} |"


if __name__ == "__main__":
    lines = measure_sizes(int(sys.argv[2])) if sys.argv[1] == "sizes" else measure_speed()
    for line in lines:
        print(line, flush=True)
