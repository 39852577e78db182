"""From rows of a panel to problems of exact p-values: how much each unit's swap changes the difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.metrics.forms import Ratios
from sigdask.randomization.panels.exact import IntegerScoring
from sigdask.randomization.panels.sums import Panel
from sigdask.statistics.exact import EnumeratedScore, Problem, QuotientProblem, SumProblem

Integers = NDArray[np.int64]

SWAPPED_SLACK = 2
"""A shuffled difference less the observed one is twice the sum over swapped units, in whose steps panels have slack."""


@dataclass(frozen=True, slots=True, eq=False)
class ProblemReader:
    """Reader of the problems of a panel's pairs under one metric; values that pairs share are computed once.

    Attributes
    ----------
    panel : Panel
        The pairs.
    column : int
        The metric.
    values : int array, shape (n_kept, n_systems) or (n_kept, n_systems, n_fields)
        Numerators of a linear metric; else what its fields sum.
    """

    panel: Panel
    column: int
    values: NDArray[Any]

    @staticmethod
    def from_panel(panel: Panel, column: int) -> ProblemReader:
        """Return a reader of the problems under the metric in a column of the panel."""
        if panel.linear[column]:
            return ProblemReader(panel, column, panel.compute_numerators(column, panel.values))
        return ProblemReader(panel, column, panel.values[:, :, list(panel.metrics[column].fields)])

    def iter_problems(self, rows: Integers) -> Iterator[Problem | str]:
        """Yield the problem of each pair, or the reason why it has no problem."""
        for row, (i, j) in zip(rows.tolist(), self.panel.pairs[rows].tolist(), strict=True):
            yield self._read_problem(row, i, j)

    def _read_problem(self, row: int, i: int, j: int) -> Problem | str:
        panel, values = self.panel, self.values
        changes = np.subtract(values[:, i], values[:, j], dtype=np.int64)
        if panel.linear[self.column]:
            return SumProblem(changes[changes != 0], SWAPPED_SLACK * int(panel.slack[row, self.column]))
        if panel.is_approximate(self.column):
            return "the score is made of sums that are not exact, and of no one of them alone"
        changes = changes[changes.any(axis=1)]
        metric = panel.metrics[self.column]
        fields = list(metric.fields)
        totals = panel.totals[[i, j]][:, fields]
        if isinstance(metric.form, Ratios) and len({panel.lattices[f] for f in fields}) == 1:
            form = metric.form
            weights = np.array(form.numerators), np.array(form.denominators)
            return QuotientProblem.from_counts(changes, np.zeros_like(changes), totals, *weights, form.zero_division)
        return EnumeratedScore(
            changes, totals, IntegerScoring(metric.form, tuple(panel.lattices[f] for f in fields)).score
        )
