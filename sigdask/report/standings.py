"""Which system leads in each comparison, and by how much, as arrays.

Comparisons are grouped by test set, subset and metric. Headlines are written from these.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Integers
from sigdask.results.table import Table
from sigdask.statistics.numbering import find_distinct

GroupKey = tuple[str, str, str]
"""The names of a test set, subset ("" without) and metric."""

PAIR, BASELINE, ALL, SOME = "pair", "baseline", "all", "some"
"""Which systems were compared in each group: two, all with one, all with each other, or others."""

MAX_LEADING = 20
"""Maximum number of groups whose best system and runner-up are opened on a page."""


def get_group_key(table: Table, row: int) -> GroupKey:
    """Return the test set, subset and metric of a row."""
    return table.test_set[row], table["subset.value"][row], table.metric[row]


class Standings:
    """The lead of A over B in each comparison of a table.

    Attributes
    ----------
    table : Table
        The comparisons.
    names : list of str
        Names of the systems.
    a, b : int array
        The places of systems A and B of each row among the names.
    group : int array
        The group of each row, numbered in the order in which groups come first.
    n_groups : int
        The number of groups.
    first_rows : int array
        The first row of each group.
    ahead : float array
        How much better A is than B, also if lower scores are better. NaN if a score is missing.
    outcome : int array
        As `Table.outcome`.
    is_two_sided : bool
        Whether either direction could be shown of all comparisons.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.names, self.a, self.b = table.index_systems()
        self.group = table.number_rows("test_set", "subset.column", "subset.value", "metric")
        self.n_groups = int(self.group.max()) + 1 if len(self.group) else 0
        self.first_rows = np.unique(self.group, return_index=True)[1]
        higher = table.higher_is_better
        self.ahead = np.asarray(table.difference * np.where(higher, 1.0, -1.0))
        self.outcome = table.outcome
        self.is_two_sided = bool(table.alternative.equals("two-sided").all())

    @cached_property
    def members(self) -> tuple[Integers, Integers]:
        """The systems of each group, best first, as arrays: group and system."""
        n = len(self.names)
        keys = np.concatenate([self.group * n + self.a, self.group * n + self.b])
        lacks_a, lacks_b = np.isnan(self.table.score_a), np.isnan(self.table.score_b)
        is_behind = np.concatenate([(self.ahead < 0) | lacks_a, (self.ahead > 0) | lacks_b])
        unique_keys, inverse = find_distinct(keys)
        losses = np.bincount(inverse[is_behind], minlength=len(unique_keys))
        order = np.lexsort((unique_keys % n, losses, unique_keys // n))
        return unique_keys[order] // n, unique_keys[order] % n

    @cached_property
    def n_members(self) -> Integers:
        """The number of systems of each group, shape (n_groups,)."""
        return np.bincount(self.members[0], minlength=self.n_groups)

    @cached_property
    def top(self) -> Integers:
        """The best system of each group; of equally good ones, the first."""
        group, system = self.members
        return system[np.searchsorted(group, np.arange(self.n_groups))]

    @cached_property
    def has_top(self) -> NDArray[np.bool_]:
        """Mask of the rows that compare the best of a group with another system."""
        top = self.top[self.group]
        return np.asarray((self.a == top) | (self.b == top))

    @cached_property
    def design(self) -> str:
        """Which systems were compared: one pair, all with a baseline, all with each other, or some other pairs."""
        sizes = np.bincount(self.group, minlength=self.n_groups)
        low, high = np.minimum(self.a, self.b), np.maximum(self.a, self.b)
        n = len(self.names)
        pairs = find_distinct(self.group * n * n + low * n + high)[0]  # a pair may be requested in both directions
        n_pairs = np.bincount(pairs // (n * n), minlength=self.n_groups)
        if (sizes == 1).all():
            return PAIR if (low == low[0]).all() and (high == high[0]).all() else SOME
        if (self.b == self.b[0]).all() and (n_pairs == sizes).all():
            return BASELINE
        every = n_pairs == self.n_members * (self.n_members - 1) // 2
        return ALL if every.all() and self.is_two_sided and (self.n_members > 2).all() else SOME

    def find_rival(self, group: int) -> int:
        """Return the row that compares a group's best system with the one closest to it in score."""
        rows = np.flatnonzero(self.has_top & (self.group == group))
        return int(rows[np.argmin(np.abs(np.nan_to_num(self.ahead[rows], nan=np.inf)))])

    def list_leading_rows(self) -> list[int]:
        """Return the row of each of the first groups that compares its best system with the runner-up or baseline."""
        groups = range(min(self.n_groups, MAX_LEADING))
        if self.design == BASELINE:
            rows = (np.flatnonzero(self.group == g) for g in groups)
            return [int(own[np.argmax(np.nan_to_num(self.ahead[own], nan=-np.inf))]) for own in rows]
        return [self.find_rival(g) for g in groups]

    def get_opponent(self, row: int, system: int) -> str:
        """Return the name of the system that `system` is compared with."""
        return self.names[int(self.b[row] if self.a[row] == system else self.a[row])]
