"""Pictures of a plan's runs: its results, opened comparisons, candidate rankings, scores and p over the nights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.details.details import ComparisonDetails
from sigdask.nightly.report.highlights import first
from sigdask.nightly.store.status import Nights, PlanReport, nights
from sigdask.report import plots
from sigdask.report.plots.folder import MOST_FIGURES, of_evaluations, of_opened, of_results
from sigdask.report.plots.results import Picture, of
from sigdask.results.ranking import groups
from sigdask.results.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LINES = 12
"""Comparisons whose p is drawn over the nights, of each test set, subset and metric."""


def of_report(report: PlanReport, opened: Sequence[ComparisonDetails] = ()) -> Iterator[Picture]:
    """Yield the pictures that fit what a plan has found, and those of comparisons that were opened."""
    yield from of_results(report.results.values())
    if opened:
        yield from of_opened(Table.joined([results.table for results in report.results.values()]), opened)
    yield from of_evaluations(report.evaluations)
    yield from of_nights(report)


def of_nights(report: PlanReport) -> Iterator[Picture]:
    """Yield scores and p over the runs of a plan, for each test set, subset and metric; nothing of a first run."""
    tables = [results.table for results in report.results.values()]
    of_metrics = [table.take(rows) for table in tables for rows in groups(table)][:MOST_FIGURES]
    looked = [own.take(first(report, own, MOST_LINES)[0]) for own in of_metrics]
    if not looked:
        return
    seen = nights(report.store, report.run, Table.joined(looked))
    if len(seen.runs) > 1:
        ends = np.cumsum([len(own) for own in looked])
        for own, stop in zip(looked, ends.tolist(), strict=True):
            yield Picture("nights", of(own), partial(_nights, own, seen.take(slice(stop - len(own), stop))))


def _nights(table: Table, seen: Nights) -> Figure:
    """Draw what runs found of some comparisons by one metric, those that are looked at first."""
    scores: dict[str, NDArray[np.float64]] = {}
    for names, values in ((table.a, seen.score_a), (table.b, seen.score_b)):
        for name, own in zip(names.listed(), values, strict=True):
            known = scores.get(name, own)
            scores[name] = np.where(np.isnan(known), own, known)
    pairs = [f"{a} and {b}" for a, b in zip(table.a.listed(), table.b.listed(), strict=True)]
    runs = [str(run.number) for run in seen.runs]
    p = dict(zip(pairs, seen.p, strict=True))
    return plots.nights(
        runs, scores, p, table.alpha, title=", ".join(of(table)), score=table.metric[0].name,
        adjusted=not np.isnan(seen.p_adjusted).all(),
    )  # fmt: skip
