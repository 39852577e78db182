"""Figures of a plan's runs: results, single comparisons, rankings, and scores and p over the nights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.details.details import ComparisonDetails
from sigdask.nightly.report.highlights import select_first
from sigdask.nightly.store.status import Nights, PlanReport, read_nights
from sigdask.report import plots
from sigdask.report.plots.folder import MOST_FIGURES, iter_null_pictures, iter_ranking_pictures, iter_result_pictures
from sigdask.report.plots.results import FigureSpec, get_subject
from sigdask.results.ranking import group_rows
from sigdask.results.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LINES = 12
"""Comparisons whose p is drawn over the nights, of each test set, subset and metric."""


def plot_report(report: PlanReport, opened_details: Sequence[ComparisonDetails] = ()) -> Iterator[FigureSpec]:
    """Yield the figures that fit a plan's results, then those of the comparisons given in detail."""
    yield from iter_result_pictures(report.results.values())
    if opened_details:
        yield from iter_null_pictures(
            Table.join([results.table for results in report.results.values()]), opened_details
        )
    yield from iter_ranking_pictures(report.evaluations)
    yield from plot_nights(report)


def plot_nights(report: PlanReport) -> Iterator[FigureSpec]:
    """Yield scores and p over the runs by test set, subset and metric; nothing for a first run."""
    tables = [results.table for results in report.results.values()]
    metric_tables = [table.take(rows) for table in tables for rows in group_rows(table)][:MOST_FIGURES]
    selected = [metric_table.take(select_first(report, metric_table, MOST_LINES)[0]) for metric_table in metric_tables]
    if not selected:
        return
    history = read_nights(report.store, report.run, Table.join(selected))
    if len(history.runs) > 1:
        ends = np.cumsum([len(metric_table) for metric_table in selected])
        for metric_table, stop in zip(selected, ends.tolist(), strict=True):
            yield FigureSpec(
                "nights",
                get_subject(metric_table),
                partial(_plot_history, metric_table, history.take(slice(stop - len(metric_table), stop))),
            )


def _plot_history(table: Table, history: Nights) -> Figure:
    """Plot scores and p of selected comparisons under one metric over the runs."""
    scores: dict[str, NDArray[np.float64]] = {}
    for names, values in ((table.a, history.score_a), (table.b, history.score_b)):
        for name, run_scores in zip(names.to_list(), values, strict=True):
            earlier = scores.get(name, run_scores)
            scores[name] = np.where(np.isnan(earlier), run_scores, earlier)
    pairs = [f"{a} and {b}" for a, b in zip(table.a.to_list(), table.b.to_list(), strict=True)]
    runs = [str(run.number) for run in history.runs]
    p = dict(zip(pairs, history.p, strict=True))
    return plots.nights(
        runs, scores, p, table.alpha, title=", ".join(get_subject(table)), score=table.metric[0].name,
        adjusted=not np.isnan(history.p_adjusted).all(),
    )  # fmt: skip
