"""Diagnosis of the units of comparisons: skewed differences, few deciding units, differences of one sign."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.counts.grouping import group_rows, number_rows
from sigdask.randomization.influence import ComparisonVerdicts, compute_influence
from sigdask.randomization.panels.sums import SUMS, Panel
from sigdask.results.columns.assumptions import Assumptions, build_empty_assumptions, compute_unseen_rate
from sigdask.results.table import Table


def diagnose_units(set_comparisons: Sequence[Comparisons], table: Table) -> Assumptions:
    """Return the diagnosis of the units of all comparisons of some test sets, in the row order of their table."""
    empty = build_empty_assumptions(len(table))
    columns = Assumptions(*(getattr(empty, name).copy() for name in Assumptions.__slots__))
    verdicts, start = extract_verdicts(table), 0
    for comparisons in set_comparisons:
        for rows in group_rows(number_rows(comparisons.panel, comparisons.column)):
            panel = comparisons.panels[int(comparisons.panel[rows[0]])]
            if panel.kind == SUMS and isinstance(panel, Panel):
                _enter_diagnoses(
                    columns,
                    panel,
                    int(comparisons.column[rows[0]]),
                    comparisons.row[rows].astype(np.int64),
                    start + rows,
                    verdicts,
                )
        start += len(comparisons)
    return columns


def _enter_diagnoses(
    columns: Assumptions,
    panel: Panel,
    metric: int,
    pairs: NDArray[np.int64],
    rows: NDArray[np.int64],
    verdicts: ComparisonVerdicts,
) -> None:
    selected_verdicts = ComparisonVerdicts(verdicts.decision[rows], verdicts.level[rows], verdicts.side[rows])
    influence = compute_influence(panel, metric, pairs, selected_verdicts)
    columns.skewness[rows] = np.where(influence.is_skewed, influence.skewness, np.nan)
    for name in ("is_skewed", "n_deciding", "reverses"):
        getattr(columns, name)[rows] = getattr(influence, name)
    one_sign = influence.has_one_sign
    rate = compute_unseen_rate(panel.n_units)
    columns.unseen_rate[rows[one_sign]] = rate
    if panel.linear[metric]:
        size = np.abs(panel.differences[pairs, metric]) * (1 - rate) / rate
        columns.cancelling_size[rows[one_sign]] = size[one_sign]


def extract_verdicts(table: Table) -> ComparisonVerdicts:
    """Return, for each comparison, the decision, the level that its unadjusted p has to reach, and the side tested."""
    sides = {"two-sided": 0, "greater": 1, "less": -1}
    side = np.array([sides[value] for value in table.alternative.values], np.int8)[table.alternative.codes]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(np.isnan(table.p_adjusted) | (table.p_adjusted == 0), 1.0, table.p_value / table.p_adjusted)
    return ComparisonVerdicts(table.decision, np.nan_to_num(table.alpha * share, nan=table.alpha), side)
