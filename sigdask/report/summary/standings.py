"""Which system leads in each comparison, and by how much, in groups (a test set, subset and metric), as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.grouping import number_rows
from sigdask.results.comparisons import ResultAcrossSets
from sigdask.results.ranking import index_systems
from sigdask.results.table import Table

Integers = NDArray[np.int64]
PAIR, BASELINE, ALL, SOME = "pair", "baseline", "all", "some"
"""Which systems were compared in each group: two, all with one, all with each other, or others."""


@dataclass(frozen=True, eq=False)
class Standings:
    """Comparisons in groups with the lead of A over B in each: arrays of shape (n,).

    Attributes
    ----------
    names : list of str
        Of the systems.
    group : int64
        Numbered in the order in which groups come first.
    a, b : int64
        Places of the two systems.
    ahead : float64
        By how much A is better than B, whichever scores are better; NaN where a score is missing.
    lacks_a, lacks_b : bool
        Where a score is missing.
    decision : int8
        As `Table.decision`.
    is_two_sided : bool
        Whether either direction could be shown of all of them.
    """

    names: list[str]
    group: Integers
    a: Integers
    b: Integers
    ahead: NDArray[np.float64]
    lacks_a: NDArray[np.bool_]
    lacks_b: NDArray[np.bool_]
    decision: NDArray[np.int8]
    is_two_sided: bool

    @staticmethod
    def from_table(table: Table) -> Standings:
        """Return the leads of a table's comparisons, grouped by test set, subset and metric."""
        names, a, b = index_systems(table)
        codes = np.unique(table.alternative.codes).tolist()
        return Standings(
            names=names,
            group=number_rows(table.test_set.codes, table.subset.codes, table.metric.codes),
            a=a,
            b=b,
            ahead=table.difference * _compute_signs(table),
            lacks_a=np.isnan(table.score_a),
            lacks_b=np.isnan(table.score_b),
            decision=table.decision,
            is_two_sided=all(table.alternative.values[code] == "two-sided" for code in codes),
        )

    @staticmethod
    def from_joint_verdicts(table: Table, verdicts: tuple[ResultAcrossSets, ...]) -> Standings:
        """Return the leads of verdicts over all sets, grouped by metric."""
        indices: dict[str, int] = {}
        a, b = (np.array([indices.setdefault(getattr(v, side), len(indices)) for v in verdicts]) for side in "ab")
        metrics: dict[str, int] = {}
        group = np.array([metrics.setdefault(v.metric, len(metrics)) for v in verdicts])
        signs = {score.name: 1 if score.higher_is_better else -1 for score in table.metric.values}
        p = np.array([v.p_value if v.p_adjusted is None else v.p_adjusted for v in verdicts])
        ahead = np.array([v.difference * signs[v.metric] for v in verdicts], np.float64)
        lacks = np.isnan(ahead)
        decision = (p <= table.alpha).astype(np.int8)
        two_sided = all(v == "two-sided" for v in table.alternative.values)
        return Standings([*indices], group, a, b, ahead, lacks, lacks, decision, two_sided)

    @cached_property
    def n_groups(self) -> int:
        """The number of groups of comparisons: a test set, subset and metric each."""
        return int(self.group.max()) + 1 if len(self.group) else 0

    @cached_property
    def first_rows(self) -> Integers:
        """The first row of each group."""
        return np.unique(self.group, return_index=True)[1]

    @cached_property
    def members(self) -> tuple[Integers, Integers, Integers]:
        """The systems of each group, best first, as arrays: group, system, and number of systems ahead of it."""
        n = len(self.names)
        keys = np.concatenate([self.group * n + self.a, self.group * n + self.b])
        is_behind = np.concatenate([(self.ahead < 0) | self.lacks_a, (self.ahead > 0) | self.lacks_b])
        unique_keys, inverse = np.unique(keys, return_inverse=True)
        losses = np.bincount(inverse.reshape(-1), is_behind).astype(np.int64)
        order = np.lexsort((unique_keys % n, losses, unique_keys // n))
        return unique_keys[order] // n, unique_keys[order] % n, losses[order]

    @cached_property
    def n_members(self) -> Integers:
        """The number of systems of each group, shape (n_groups,)."""
        return np.bincount(self.members[0], minlength=self.n_groups)

    @cached_property
    def top(self) -> Integers:
        """The best system of each group; of equally good ones, the first."""
        group, system, _ = self.members
        return system[np.searchsorted(group, np.arange(self.n_groups))]

    @cached_property
    def near_top_rows(self) -> Integers:
        """Rows that compare the best of a group with a system that is not significantly different."""
        return np.flatnonzero(self.has_top & (self.decision != 1))

    @cached_property
    def has_top(self) -> NDArray[np.bool_]:
        """Mask of the rows that compare the best of a group with another system."""
        top = self.top[self.group]
        return np.asarray((self.a == top) | (self.b == top))

    @cached_property
    def n_near_top(self) -> Integers:
        """The number of systems not significantly different from the best of each group."""
        return np.bincount(self.group[self.near_top_rows], minlength=self.n_groups)

    @cached_property
    def design(self) -> str:
        """Which systems were compared: one pair, all with a baseline, all with each other, or some other pairs."""
        sizes = np.bincount(self.group, minlength=self.n_groups)
        low, high = np.minimum(self.a, self.b), np.maximum(self.a, self.b)
        n = len(self.names)
        n_pairs = np.bincount(
            np.unique(self.group * n * n + low * n + high) // (n * n), minlength=self.n_groups
        )  # a pair may be asked for in both directions
        if (sizes == 1).all():
            return PAIR if (low == low[0]).all() and (high == high[0]).all() else SOME
        if (self.b == self.b[0]).all() and (n_pairs == sizes).all():
            return BASELINE
        every = n_pairs == self.n_members * (self.n_members - 1) // 2
        return ALL if every.all() and self.is_two_sided and (self.n_members > 2).all() else SOME

    def find_rival(self, group: int) -> int:
        """Return the row that compares a group's best system with the one closest to it in score."""
        rows = np.flatnonzero(self.has_top & (self.group == group))
        lead = np.abs(np.nan_to_num(self.ahead[rows], nan=np.inf))
        return int(rows[np.argmin(lead)])

    def get_winner(self, row: int) -> str:
        """Return the name of the better system."""
        return self.names[int((self.a if self.ahead[row] > 0 else self.b)[row])]

    def get_opponent(self, row: int, system: int) -> str:
        """Return the name of the system that `system` is compared with."""
        return self.names[int(self.b[row] if self.a[row] == system else self.a[row])]


def _compute_signs(table: Table) -> NDArray[np.float64]:
    signs = np.array([1.0 if score.higher_is_better else -1.0 for score in table.metric.values])
    return signs[table.metric.codes]
