"""Exact p-values as columns, and their use in place of p-values from trials."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.panels.exact import CLOSE
from sigdask.results.columns.coded import CodedColumn
from sigdask.results.table import Table

Floats = NDArray[np.float64]
ExactMethod = tuple[str, str]

GUARANTEED = ("exact", "certified")
"""Guarantees with which an exact value is p; what is numeric is held against the trials alone."""

ENUMERATION: ExactMethod = ("enumeration", "exact")


@dataclass(frozen=True, slots=True, eq=False)
class ExactValues:
    """Exact p-values of one tail, or bounds of them: arrays of shape (n,).

    Attributes
    ----------
    low, high : float64
        NaN where nothing is known.
    by : CodedColumn of (str, str) or None
        Method and guarantee.
    """

    low: Floats
    high: Floats
    by: CodedColumn[ExactMethod | None]

    @staticmethod
    def from_shares(share: Floats) -> ExactValues:
        """Return exact p-values from the shares of extreme arrangements; NaN where arrangements were not enumerated."""
        return ExactValues(share, share, CodedColumn((~np.isnan(share)).astype(np.int32), (None, ENUMERATION)))

    def where(self, mask: NDArray[np.bool_], other: ExactValues) -> ExactValues:
        """Return these values where `mask` is true, and the values of `other` elsewhere."""
        codes = np.where(mask, self.by.codes, other.by.codes + len(self.by.values)).astype(np.int32)
        methods = CodedColumn(codes, (*self.by.values, *other.by.values))
        return ExactValues(np.where(mask, self.low, other.low), np.where(mask, self.high, other.high), methods)

    @property
    def is_p(self) -> NDArray[np.bool_]:
        """Whether each upper bound can be used as p: the bounds are guaranteed and close enough."""
        is_guaranteed = np.array(
            [method is not None and method[1] in GUARANTEED for method in self.by.values], np.bool_
        )[self.by.codes]
        return np.asarray(is_guaranteed & ((self.high - self.low < CLOSE * self.high) | (self.high == self.low)))


def use_exact_p(table: Table) -> Table:
    """Return the table with exact p-values in place of those from trials, where they are known closely enough.

    Where no trials were asked for, p is the upper bound however far the lower one is, between which then p lies.
    """
    is_known = ExactValues(table.exact_low, table.exact_high, table.exact_by).is_p
    is_only_exact = (table.n_trials == 0) & ~np.isnan(table.exact_high)
    p = np.where(is_known | is_only_exact, table.exact_high, table.p_value)
    low = np.where(is_only_exact, np.where(is_known, p, table.exact_low), table.p_low)
    return replace(
        table, exact=table.exact | is_known, p_value=p, p_low=low, p_high=np.where(is_only_exact, p, table.p_high)
    )
