"""Compute exact p-values of all pairs of real evaluations, and compare sampled counts with them.

    python docs/make_exact.py     # writes the table of docs/statistics/exact.md, in some minutes

The data are in ../../shared/data. Seconds are of one core, of finding the exact values alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from sigdask.analysis.comparison.jobs import plan_jobs
from sigdask.analysis.comparison.pairs import CompareSpec
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.formats import Options, parse_maps, read
from sigdask.randomization.panels.exact import ExactPanel
from sigdask.results.table import DISAGREES
from sigdask.statistics.exact import CLOSE_SHARE

PAGE = Path(__file__).parent / "statistics" / "exact.md"
DATA = Path(__file__).parents[2] / "shared" / "data"
BEGIN, END = "<!-- made by docs/make_exact.py: begin -->", "<!-- made by docs/make_exact.py: end -->"
TRIALS = 2**18
MIN_EXPECTED = 20.0
"""Exceedances expected, and trials without, from which a count is nearly normal."""


def main() -> None:
    """Write the table between the page's markers."""
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    PAGE.write_text("\n".join([before + BEGIN, *iter_lines(), END]) + rest.split(END)[1])


def iter_lines() -> Iterator[str]:
    """Yield the lines of the table, one for each set."""
    yield (
        "| data, metric | pairs | discordant units | method (guarantee) | seconds | smallest p | "
        "limits apart, relatively | counts that do not fit | Σz² / cases, p |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, counts, metrics in iter_sets():
        yield format_row(name, counts, metrics)


def iter_sets() -> Iterator[tuple[str, Counts, Sequence[str]]]:
    """Yield the name, counts and metrics of each set."""
    counts = read(DATA / "matrix_trec_urbano" / "adhoc8_ap.csv")
    yield "`matrix_trec_urbano` adhoc8_ap, mean AP at four decimals", counts, ["mean"]
    folder = DATA / "seqlab_wnut17"
    counts = read(*sorted((folder / "submissions").iterdir()), format="conll", gold=folder / "emerging.test.annotated")
    yield "`seqlab_wnut17`, F1 of entities by sentence", counts, ["f1"]
    folder = DATA / "class_hans"
    labels = parse_maps(["non-entailment=neutral,contradiction"])
    counts = read(*sorted(folder.glob("*preds*.txt")), gold=folder / "gold.csv", options=Options(label_map=labels))
    yield "`class_hans`, accuracy of 30,000 items", counts, ["accuracy"]


def format_row(name: str, counts: Counts, metrics: Sequence[str]) -> str:
    """Compare the systems of a set and format the row of its results."""
    seconds = _time_exact(counts, metrics)
    apart = {"adjust": "none", "second_run": False, "interval": "none"}
    results = compare_all(counts, metrics=metrics, method="both", trials=TRIALS, **apart)
    t = results.table
    known = zip(t["exact.method"], t["exact.guarantee"], strict=True)
    methods = Counter(f"{method} ({guarantee})" if method else "none" for method, guarantee in known)
    differ = f"{t.n_discordant.min():,}–{t.n_discordant.max():,}"
    low, p, k, n = t["exact.p_lo"], t["exact.p_hi"], t.n_extreme, t.n_trials
    smallest_p = format_p(float(p.min())) if not np.isnan(p).all() else "–"
    alarms = int(t["checks.exact value.verdict"].equals(DISAGREES).sum())
    is_tested = (p - low < CLOSE_SHARE * p) & ~t.is_enumerated & (n * p >= MIN_EXPECTED) & (n * (1 - p) >= MIN_EXPECTED)
    z = (k[is_tested] - n[is_tested] * p[is_tested]) / np.sqrt(n[is_tested] * p[is_tested] * (1 - p[is_tested]))
    fit = f"{(z**2).sum():,.1f} / {len(z):,}, {stats.chi2.sf((z**2).sum(), len(z)):.2f}" if len(z) else "–"
    methods_text = ", ".join(f"{n:,} {method}" for method, n in methods.most_common())
    with np.errstate(invalid="ignore"):
        apart = np.nanmax((p - low) / p)
    return (
        f"| {name} | {len(t):,} | {differ} | {methods_text} | {seconds:.2f} | {smallest_p} | {apart:.1g} | {alarms} "
        f"| {fit} |"
    )


def format_p(p: float) -> str:
    """Format the smallest p-value."""
    return f"{p:.2g}"


def _time_exact(counts: Counts, metrics: Sequence[str]) -> float:
    """Return the CPU seconds of the exact values alone."""
    start = time.process_time()
    comparisons = plan_jobs(counts, CompareSpec(metrics, method="both"))
    for job in (part.job for part in comparisons.cells):
        if isinstance(job.panel, ExactPanel):
            job.panel.tally(first=0, n_trials=job.n_trials)
    return time.process_time() - start


if __name__ == "__main__":
    main()
