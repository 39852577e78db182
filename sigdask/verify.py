"""Checks of the program against known answers: random streams, Yeh's example, exact p-values, ties, the cluster.

Yeh's printed counts for F and precision (14,794 and 25,770 of 2^20) do not follow from the printed cell counts under
fair swaps, which give 15,493.4 +- 123.5 and 20,965.5 +- 143.3. The checks use the exact values that are computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np

from sigdask.api import compare, compare_all
from sigdask.execution.clusters import check_cluster, connect
from sigdask.formats import read
from sigdask.options import Alternative
from sigdask.randomization.stream import compute_stream_key, draw_swap_bits, philox
from sigdask.report.presentable import Results
from sigdask.statistics.bounds import ALARM, compute_fit_p
from sigdask.statistics.rounding import format_p_equals

Audit = tuple[str, bool, str]

METRICS = ("recall", "f1", "precision")
ALTERNATIVES = {"recall": "greater", "f1": "greater", "precision": "less"}
SIDES: tuple[Alternative, ...] = ("greater", "less")
PRINTED_COUNTS = {"recall": 96, "f1": 14_794, "precision": 25_770}


def run_audits(cluster: str = "local", workers: int | None = None) -> Iterator[Audit]:
    """Yield (name, passed, figures) for each audit, running one after another; refuse an unknown cluster at once."""
    check_cluster(cluster)
    words = np.empty((4, 1), np.uint32)
    philox(np.uint32(0), np.uint32(0), np.uint32(0), np.uint32(0), 0, words)
    digits = " ".join(f"{word:08x}" for word in words[:, 0])
    yield "Philox4x32-10 known answer (Random123)", digits == "6627e8d5 e169c58d bc57ac4c 9b00dbd8", digits
    yield from _check_stream()
    local_results = _compare_yeh("none")
    yield from _check_sampling(local_results)
    yield from _check_methods()
    cluster_results = _compare_yeh(cluster, workers)
    is_same = all(cluster_results[side] == local_results[side] for side in local_results)
    yield f"the same counts on cluster {cluster}", is_same, "2 x 3 comparisons of 1,048,576 trials, and second runs"


def yeh_exact(metric: str) -> Fraction:
    """Return the exact one-sided p of Yeh's example under a metric, from its 35 x 53 cells.

    Of 34 relations of interest found by one system only, x end with I; of 52 spurious ones, y.

    Examples
    --------
    >>> float(yeh_exact("recall")), float(yeh_exact("precision"))
    (9.756279177963734e-05, 0.019994289562099043)
    """
    observed = _compute_difference(metric, 28, 43)
    sign = 1 if observed > 0 else -1
    cells = ((x, y) for x, y in np.ndindex(35, 53) if sign * (_compute_difference(metric, x, y) - observed) >= 0)
    return Fraction(sum(comb(34, x) * comb(52, y) for x, y in cells), 2**86)


def _compute_difference(metric: str, x: int, y: int) -> Fraction:
    return _compute_score(metric, 19 + x, 5 + y) - _compute_score(metric, 19 + 34 - x, 5 + 52 - y)


def _compute_score(metric: str, tp: int, fp: int) -> Fraction:
    if metric == "recall":
        return Fraction(tp, 103)
    return Fraction(tp, tp + fp) if metric == "precision" else Fraction(2 * tp, tp + fp + 103)


def _check_stream() -> Iterator[Audit]:
    bits = draw_swap_bits(compute_stream_key(0, "verify", 256), run=0, first=0, n_trials=2**14, n_units=256)
    signs = 2.0 * bits - 1
    z = float(signs.sum() / np.sqrt(signs.size))
    yield "stream: as many swaps as not", abs(z) < 5, f"z = {z:.2f} over {signs.size:,} bits"
    products = signs.T @ signs / np.sqrt(len(signs))
    largest_z = float(np.abs(products[np.triu_indices(256, 1)]).max())
    yield "stream: units uncorrelated", largest_z < 6.5, f"largest |z| = {largest_z:.2f} of 32,640 pairs of units"
    lag_z = float((signs[1:] * signs[:-1]).sum() / np.sqrt(signs[1:].size))
    yield "stream: consecutive trials uncorrelated", abs(lag_z) < 5, f"z = {lag_z:.2f}"


def _compare_yeh(cluster: str, workers: int | None = None) -> dict[str, Results]:
    counts = read(Path(__file__).parent / "examples" / "yeh2000.tsv")
    with connect(cluster, workers=workers) as connected:
        return {side: compare_all(counts, metrics=METRICS, alternative=side, cluster=connected) for side in SIDES}


def _check_sampling(local_results: dict[str, Results]) -> Iterator[Audit]:
    for k, metric in enumerate(METRICS):
        result = local_results[ALTERNATIVES[metric]][k]
        p = float(yeh_exact(metric))
        fits = float(compute_fit_p(result.n_extreme, result.n_trials, p))
        printed = float(compute_fit_p(PRINTED_COUNTS[metric], 2**20, p))
        detail = (
            f"{result.n_extreme:,} of {result.n_trials:,}, exact {format_p_equals(p, digits=6)} expects "
            f"{p * result.n_trials:,.1f} (fit {format_p_equals(fits)}; "
            f"the paper prints {PRINTED_COUNTS[metric]:,}, fit {format_p_equals(printed, digits=2)})"
        )
        yield f"Yeh's {metric}, sampled against exact", fits >= ALARM and not result.disagreements(), detail


def _check_methods() -> Iterator[Audit]:
    """Yield an audit for each exact method: its p-value compared with that of random trials, on suitable scores."""
    rng = np.random.default_rng(17)
    cases = {
        "0/1 scores": (rng.random(300) < 0.6).astype(int) - (rng.random(300) < 0.5),
        "decimals": rng.normal(0.02, 0.1, 50).round(4),
        "small integers": rng.integers(-5, 6, 2000),
        "reals": rng.normal(0.1, 0.5, 32),
    }
    for name, differences in cases.items():
        result = compare(differences, np.zeros(len(differences)), trials=2**18)
        exact_value, passed = result.exact, not result.disagreements()
        if exact_value is None:
            yield f"{name}, sampled against exact", False, "no exact value"
            continue
        fits = float(compute_fit_p(result.n_extreme, result.n_trials, exact_value.p_hi))
        detail = f"{result.n_extreme:,} of {result.n_trials:,}, exact {format_p_equals(exact_value.p_hi, digits=6)}"
        audit = f"{name}, sampled against exact by {exact_value.method}"
        yield audit, passed, f"{detail} (fit {format_p_equals(fits)})"
