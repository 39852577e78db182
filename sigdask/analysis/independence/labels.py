"""Labellings of the same items, ordered by stratum, with the frequencies of their labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import LabelFields
from sigdask.errors import InputError
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.stream.swaps import Key
from sigdask.statistics.matchings import LabelMargins


@dataclass(frozen=True, eq=False)
class Labellings:
    """The labellings of one test set, and the reference labelling with which they are compared.

    Attributes
    ----------
    names : tuple of str
        Of the labellings.
    labels : tuple of str
        All labels, which codes point into.
    key : tuple of int
        Key of the stream.
    starts : int64 array, shape (n_strata + 1,)
        Where the items of each stratum begin, and their end.
    reference : int32 array, shape (n_items,)
        Labels that they are held against, in canonical order within each stratum.
    predicted : int32 array, shape (n_systems, n_items)
        Labels of each.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    key: Key
    starts: NDArray[np.int64]
    reference: NDArray[np.int32]
    predicted: NDArray[np.int32]

    @staticmethod
    def from_counts(counts: Counts, seed: int, within: str | None = None) -> Labellings:
        """Return the labellings of a test set, ordered by stratum; each value of the column `within` is a stratum."""
        fields = counts.fields
        if not isinstance(fields, LabelFields) or counts.replicates:
            found_fields = counts.warnings[0] if counts.replicates else ", ".join([*fields][:6])
            raise InputError(
                "independence needs two labellings, one label an item and no replicates; these data have: "
                f"{found_fields}"
            )
        units = SwapUnits.from_counts(counts.with_unit("item"), seed)
        strata = np.zeros(counts.n_items, np.int64) if within is None else np.asarray(counts.group(within).codes)
        order = np.lexsort((units.index, strata))
        sizes = np.bincount(strata)
        return Labellings(
            names=counts.systems,
            labels=fields.labels,
            key=units.key,
            starts=np.concatenate([[0], np.cumsum(sizes[sizes > 0])]),
            reference=np.ascontiguousarray(fields.gold[order, 0]),
            predicted=np.ascontiguousarray(fields.predicted[order].T),
        )

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.reference)

    @property
    def n_strata(self) -> int:
        """Number of strata, the groups of items within which labels are permuted."""
        return len(self.starts) - 1

    @cached_property
    def stratum(self) -> NDArray[np.int64]:
        """The stratum of each item."""
        return np.repeat(np.arange(self.n_strata), np.diff(self.starts))

    def count_margins(self, system: int) -> list[LabelMargins]:
        """Return the number of times that each label occurs in a labelling and in the reference, for each stratum."""
        predicted, reference = self._count_by_stratum(self.predicted[system]), self._count_by_stratum(self.reference)
        sizes = np.diff(self.starts).tolist()
        return [LabelMargins(*own) for own in zip(sizes, map(tuple, predicted), map(tuple, reference), strict=True)]

    def count_agreements(self, system: int) -> list[int]:
        """Return, for each label, the number of items to which both a labelling and the reference give it."""
        agreed_labels = self.reference[self.predicted[system] == self.reference]
        counts: list[int] = np.bincount(agreed_labels, minlength=len(self.labels)).tolist()
        return counts

    def _count_by_stratum(self, codes: NDArray[np.int32]) -> list[list[int]]:
        n = len(self.labels)
        counts: list[list[int]] = (
            np.bincount(self.stratum * n + codes, minlength=self.n_strata * n).reshape(-1, n).tolist()
        )
        return counts
