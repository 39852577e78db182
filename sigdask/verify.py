"""The program audits itself: streams, Yeh's example, sampled against exact, ties, and the cluster.

Yeh's printed counts for F and precision (14,794 and 25,770 of 2^20) do not follow from the printed
cell counts under a fair swap, which give 15,493.4 +- 123.5 and 20,965.5 +- 143.3; the exact values
computed here are the target.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.api import compare, compare_all
from sigdask.counts import Counts
from sigdask.execution.clusters import connect
from sigdask.formats import read
from sigdask.io.folders import own_folder
from sigdask.options import Alternative, Method
from sigdask.randomization.stream.shuffles import philox, stream_key, swap_bits
from sigdask.report.presentable import Results
from sigdask.statistics.crosscheck import ALARM, count_fits
from sigdask.statistics.rounding import p_equals

Audit = tuple[str, bool, str]

EXAMPLE = Path(__file__).parent / "examples" / "yeh2000.tsv"
METRICS = ("recall", "f1", "precision")
ALTERNATIVES = {"recall": "greater", "f1": "greater", "precision": "less"}
SIDES: tuple[Alternative, ...] = ("greater", "less")
METHODS: tuple[Method, ...] = ("auto", "randomization")
PRINTED = {"recall": 96, "f1": 14_794, "precision": 25_770}


def audits(cluster: str = "local", workers: int | None = None) -> Iterator[Audit]:
    """Run the audits one by one: (name, passed, figures)."""
    yield _known_answer()
    yield from _stream()
    here = _yeh("none")
    yield from _sampled_against_exact(here)
    yield from _methods()
    yield _enumeration()
    yield _identical()
    yield _family()
    yield _pairs()
    yield _table()
    yield _same_on(cluster, workers, here)


def yeh_exact(metric: str) -> Fraction:
    """Return the exact one-sided p of Yeh's example, by its 35 x 53 cells.

    Of 34 relations of interest found by one system only, x end with I; of 52 spurious ones, y.

    Examples
    --------
    >>> float(yeh_exact("recall")), float(yeh_exact("precision"))
    (9.756279177963734e-05, 0.019994289562099043)
    """
    observed = _difference(metric, 28, 43)
    cells = sum(
        comb(34, x) * comb(52, y)
        for x in range(35)
        for y in range(53)
        if (_difference(metric, x, y) >= observed if observed > 0 else _difference(metric, x, y) <= observed)
    )
    return Fraction(cells, 2**86)


def _difference(metric: str, x: int, y: int) -> Fraction:
    return _score(metric, 19 + x, 5 + y) - _score(metric, 19 + 34 - x, 5 + 52 - y)


def _score(metric: str, tp: int, fp: int) -> Fraction:
    if metric == "recall":
        return Fraction(tp, 103)
    return Fraction(tp, tp + fp) if metric == "precision" else Fraction(2 * tp, tp + fp + 103)


def _known_answer() -> Audit:
    words = np.empty((4, 1), np.uint32)
    philox(np.uint32(0), np.uint32(0), np.uint32(0), np.uint32(0), 0, words)
    found = " ".join(f"{word:08x}" for word in words[:, 0])
    return "Philox4x32-10 known answer (Random123)", found == "6627e8d5 e169c58d bc57ac4c 9b00dbd8", found


def _stream() -> Iterator[Audit]:
    bits = swap_bits(stream_key(0, "verify", 256), run=0, first=0, n_trials=2**14, n_units=256)
    signs = 2.0 * bits - 1
    z = float(signs.sum() / np.sqrt(signs.size))
    yield "stream: as many swaps as not", abs(z) < 5, f"z = {z:.2f} over {signs.size:,} bits"
    products = signs.T @ signs / np.sqrt(len(signs))
    worst = float(np.abs(products[np.triu_indices(256, 1)]).max())
    yield "stream: units uncorrelated", worst < 6.5, f"largest |z| = {worst:.2f} of 32,640 pairs of units"
    along = float((signs[1:] * signs[:-1]).sum() / np.sqrt(signs[1:].size))
    yield "stream: consecutive trials uncorrelated", abs(along) < 5, f"z = {along:.2f}"


def _yeh(cluster: str, workers: int | None = None) -> dict[str, Results]:
    counts = read(EXAMPLE)
    with connect(cluster, workers=workers) as connected:
        return {side: compare_all(counts, metrics=METRICS, alternative=side, cluster=connected) for side in SIDES}


def _sampled_against_exact(here: dict[str, Results]) -> Iterator[Audit]:
    for k, metric in enumerate(METRICS):
        result = here[ALTERNATIVES[metric]][k]
        p = float(yeh_exact(metric))
        fits = float(count_fits(result.n_extreme, result.n_trials, p))
        printed = float(count_fits(PRINTED[metric], 2**20, p))
        detail = (
            f"{result.n_extreme:,} of {result.n_trials:,}, exact {p_equals(p, digits=6)} expects "
            f"{p * result.n_trials:,.1f} (fit {p_equals(fits)}; "
            f"the paper prints {PRINTED[metric]:,}, fit {p_equals(printed, digits=2)})"
        )
        yield f"Yeh's {metric}, sampled against exact", fits >= ALARM and not result.disagreements(), detail


def _methods() -> Iterator[Audit]:
    """Hold trials against what other exact methods give, of scores that ask for one each."""
    rng = np.random.default_rng(17)
    cases = {
        "0/1 scores": (rng.random(300) < 0.6).astype(int) - (rng.random(300) < 0.5),
        "decimals": rng.normal(0.02, 0.1, 50).round(4),
        "small integers": rng.integers(-5, 6, 2000),
        "reals": rng.normal(0.1, 0.5, 32),
    }
    for name, differences in cases.items():
        result = compare(differences, np.zeros(len(differences)), trials=2**18)
        known, passed = result.exact, not result.disagreements()
        if known is None:
            yield f"{name}, sampled against exact", False, "no exact value"
            continue
        fits = float(count_fits(result.n_extreme, result.n_trials, known.p_hi))
        detail = f"{result.n_extreme:,} of {result.n_trials:,}, exact {p_equals(known.p_hi, digits=6)}"
        yield f"{name}, sampled against exact by {known.method}", passed, f"{detail} (fit {p_equals(fits)})"


def _enumeration() -> Audit:
    # steps of 0.1, which naive floating-point comparison miscounts; exact by integers x 10
    tenths = np.array([1, 2, 3, 4, 5, 6, 7, -1, -2, 3])
    p = compare(tenths / 10, np.zeros(10)).p_value
    return "enumeration with decimal ties", p == 24 / 1024, f"{p_equals(p, digits=6)} (exact: 24/1024)"


def _identical() -> Audit:
    scores = np.arange(50) / 7
    p = compare(scores, scores, method="randomization", trials=999).p_value
    return "identical systems", p == 1.0, p_equals(p)


def _family() -> Audit:
    """Hold the smallest adjusted p of a family, of which all arrangements can be counted, against trials of it."""
    rng = np.random.default_rng(3)
    gold = rng.choice([*"xyz"], 10)
    share = 0.3 + 0.07 * np.arange(9)
    labels = {
        f"s{k}": np.where(rng.random(10) < p, gold, rng.choice([*"xyz"], 10)).tolist() for k, p in enumerate(share)
    }
    counts = Counts.from_labels(gold.tolist(), labels)
    whole, sampled = (
        compare_all(
            counts, metrics=["accuracy", "macro-f1"], adjust="max-t", interval="none", trials=2**16, method=method
        )
        for method in METHODS
    )
    known, found = (min(float(r.p_adjusted or 0) for r in results) for results in (whole, sampled))
    n_extreme = round(found * (2**16 + 1)) - 1
    fits = float(count_fits(n_extreme, 2**16, known))
    passed = fits >= ALARM and whole.family is not None and whole.family.exact
    return (
        "a family of 72, sampled against all arrangements",
        passed,
        f"{n_extreme:,} of 65,536, exact {p_equals(known)}",
    )


def _pairs() -> Audit:
    scores = np.random.default_rng(4).normal(0, 1, (40, 50)).round(3) + np.arange(40)[:, None] / 100
    counts = Counts.from_scores({f"s{k}": own for k, own in enumerate(scores)})
    some = [("s0", "s39"), ("s7", "s8"), ("s20", "s38")]
    asked: dict[str, Any] = {"metrics": ["mean"], "trials": 8192, "interval": "none"}
    together = {(r.a, r.b): r.n_extreme for r in compare_all(counts, adjust="max-t", **asked)}
    alone = {(r.a, r.b): r.n_extreme for r in compare_all(counts, pairs=some, adjust="none", **asked)}
    same = all(together[pair] == n for pair, n in alone.items())
    return "all pairs at once as pair by pair", same, f"{len(together)} pairs of 40 systems, {len(alone)} of them alone"


def _table() -> Audit:
    scores = np.random.default_rng(5).random((2, 4000)).tolist()
    with own_folder("sigdask-verify-") as folder:
        file = folder / "scores.csv"
        file.write_text("a,b\n" + "\n".join(f"{a!r},{b!r}" for a, b in zip(*scores, strict=True)))
        [found] = compare_all(read(file), metrics=["mean"], trials=999)
    own = compare(*scores, trials=999)
    same = (found.difference, found.n_extreme) == (own.difference, own.n_extreme)
    return "a table as Python reads it", same, "8,000 numbers"


def _same_on(cluster: str, workers: int | None, here: dict[str, Results]) -> Audit:
    there = _yeh(cluster, workers)
    same = all(there[side] == here[side] for side in here)
    return f"the same counts on cluster {cluster}", same, "2 x 3 comparisons, two runs of 1,048,576 trials each"
