"""Labellings of the same items: in canonical order, in strata, with how often each gives each label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import LabelFields
from sigdask.errors import InputError
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.stream.shuffles import Key
from sigdask.statistics.matchings import LabelMargins


@dataclass(frozen=True, eq=False)
class Labellings:
    """Labellings of one test set beside the one that they are held against.

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
    meant : int32 array, shape (n_items,)
        Labels that they are held against, in canonical order within each stratum.
    given : int32 array, shape (n_systems, n_items)
        Labels of each.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    key: Key
    starts: NDArray[np.int64]
    meant: NDArray[np.int32]
    given: NDArray[np.int32]

    @staticmethod
    def of(counts: Counts, seed: int, within: str | None = None) -> Labellings:
        """Order the items of labelled data; those of one value of the column `within` are a stratum."""
        fields = counts.fields
        if not isinstance(fields, LabelFields) or counts.replicates:
            listed = counts.warnings[0] if counts.replicates else ", ".join([*fields][:6])
            raise InputError(
                f"independence needs two labellings, one label an item and no replicates; these data have: {listed}"
            )
        units = SwapUnits.of(counts.with_unit("item"), seed)
        strata = np.zeros(counts.n_items, np.int64) if within is None else np.asarray(counts.group(within).codes)
        order = np.lexsort((units.index, strata))
        sizes = np.bincount(strata)
        return Labellings(
            names=counts.systems,
            labels=fields.labels,
            key=units.key,
            starts=np.concatenate([[0], np.cumsum(sizes[sizes > 0])]),
            meant=np.ascontiguousarray(fields.gold[order, 0]),
            given=np.ascontiguousarray(fields.predicted[order].T),
        )

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.meant)

    @property
    def n_strata(self) -> int:
        """Number of groups of items within which labels are permuted."""
        return len(self.starts) - 1

    @cached_property
    def stratum(self) -> NDArray[np.int64]:
        """The stratum of each item."""
        return np.repeat(np.arange(self.n_strata), np.diff(self.starts))

    def margins(self, system: int) -> list[LabelMargins]:
        """Return how often a labelling, and the one that it is held against, give each label, by stratum."""
        given, meant = self._table(self.given[system]), self._table(self.meant)
        sizes = np.diff(self.starts).tolist()
        return [LabelMargins(*own) for own in zip(sizes, map(tuple, given), map(tuple, meant), strict=True)]

    def agreed(self, system: int) -> list[int]:
        """Return in how many items of each label a labelling agrees."""
        right = self.meant[self.given[system] == self.meant]
        found: list[int] = np.bincount(right, minlength=len(self.labels)).tolist()
        return found

    def _table(self, codes: NDArray[np.int32]) -> list[list[int]]:
        n = len(self.labels)
        found: list[list[int]] = (
            np.bincount(self.stratum * n + codes, minlength=self.n_strata * n).reshape(-1, n).tolist()
        )
        return found
