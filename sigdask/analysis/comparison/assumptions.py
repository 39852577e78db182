"""Diagnose the units of comparisons: skewed differences, few deciding units, differences of one sign."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.counts.grouping import numbered, rows_of
from sigdask.randomization.influence import ComparisonVerdicts, unit_influence
from sigdask.randomization.panels.sums import SUMS, Panel
from sigdask.results.columns.assumptions import Assumptions, no_assumptions, unseen_rate
from sigdask.results.table import Table


def check_assumptions(asked: Sequence[Comparisons], table: Table) -> Assumptions:
    """Diagnose the units of the comparisons of test sets, whose results stand below each other in a table."""
    made = no_assumptions(len(table))
    columns = Assumptions(*(getattr(made, name).copy() for name in Assumptions.__slots__))
    verdicts, start = verdicts_of(table), 0
    for own in asked:
        for rows in rows_of(numbered(own.panel, own.column)):
            panel = own.panels[int(own.panel[rows[0]])]
            if panel.kind == SUMS and isinstance(panel, Panel):
                _enter(columns, panel, int(own.column[rows[0]]), own.row[rows].astype(np.int64), start + rows, verdicts)
        start += len(own)
    return columns


def _enter(
    columns: Assumptions,
    panel: Panel,
    metric: int,
    pairs: NDArray[np.int64],
    rows: NDArray[np.int64],
    verdicts: ComparisonVerdicts,
) -> None:
    own = ComparisonVerdicts(verdicts.decision[rows], verdicts.level[rows], verdicts.side[rows])
    found = unit_influence(panel, metric, pairs, own)
    columns.skewness[rows] = np.where(found.is_skewed, found.skewness, np.nan)
    for name in ("is_skewed", "n_deciding", "reverses"):
        getattr(columns, name)[rows] = getattr(found, name)
    one_sign = found.has_one_sign
    rate = unseen_rate(panel.n_units)
    columns.unseen_rate[rows[one_sign]] = rate
    if panel.linear[metric]:
        size = np.abs(panel.differences[pairs, metric]) * (1 - rate) / rate
        columns.cancelling_size[rows[one_sign]] = size[one_sign]


def verdicts_of(table: Table) -> ComparisonVerdicts:
    """Return what was decided, and the level that p alone has to reach: of an adjusted p, as its adjustment tells."""
    sides = {"two-sided": 0, "greater": 1, "less": -1}
    side = np.array([sides[value] for value in table.alternative.values], np.int8)[table.alternative.codes]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(np.isnan(table.p_adjusted) | (table.p_adjusted == 0), 1.0, table.p_value / table.p_adjusted)
    return ComparisonVerdicts(table.decision, np.nan_to_num(table.alpha * share, nan=table.alpha), side)
