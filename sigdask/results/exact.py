"""Exact p-values of comparisons as columns, and what they make of what trials found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.panels.exact import CLOSE
from sigdask.results.columns.coded import Coded
from sigdask.results.table import Table

Floats = NDArray[np.float64]
By = tuple[str, str]

SURE = ("exact", "certified")
"""Guarantees with which an exact value is p; what is numeric is held against the trials alone."""

ENUMERATION: By = ("enumeration", "exact")


@dataclass(frozen=True, slots=True, eq=False)
class ExactValues:
    """Exact p-values of one tail, or bounds of them: arrays of shape (n,).

    Attributes
    ----------
    low, high : float64
        NaN where nothing is known.
    by : Coded of (str, str) or None
        Method and guarantee.
    """

    low: Floats
    high: Floats
    by: Coded[By | None]

    @staticmethod
    def of_shares(share: Floats) -> ExactValues:
        """Return what shares of all arrangements are; NaN where these were not counted."""
        return ExactValues(share, share, Coded((~np.isnan(share)).astype(np.int32), (None, ENUMERATION)))

    def where(self, kept: NDArray[np.bool_], other: ExactValues) -> ExactValues:
        """Return these where `kept`, else the others."""
        codes = np.where(kept, self.by.codes, other.by.codes + len(self.by.values)).astype(np.int32)
        by = Coded(codes, (*self.by.values, *other.by.values))
        return ExactValues(np.where(kept, self.low, other.low), np.where(kept, self.high, other.high), by)

    @property
    def is_p(self) -> NDArray[np.bool_]:
        """Where the upper bound is taken for p: it is guaranteed, and the lower one as good as it."""
        sure = np.array([how is not None and how[1] in SURE for how in self.by.values], np.bool_)[self.by.codes]
        return np.asarray(sure & ((self.high - self.low < CLOSE * self.high) | (self.high == self.low)))


def with_exact(table: Table) -> Table:
    """Return a table whose p is the exact one where that is known well enough; what trials counted stays.

    Where no trials were asked for, p is the upper bound however far the lower one is, between which then p lies.
    """
    known = ExactValues(table.exact_low, table.exact_high, table.exact_by).is_p
    alone = (table.n_trials == 0) & ~np.isnan(table.exact_high)
    p = np.where(known | alone, table.exact_high, table.p_value)
    low = np.where(alone, np.where(known, p, table.exact_low), table.p_low)
    return replace(table, exact=table.exact | known, p_value=p, p_low=low, p_high=np.where(alone, p, table.p_high))
