"""Which system leads in each comparison, and by how much, as arrays.

Headlines are written from these. Comparisons, or verdicts over all sets, are grouped by test set, subset and metric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import find_distinct, number_rows
from sigdask.counts.fields import Integers
from sigdask.report.summary.sentences import (
    describe_comparison,
    find_metrics_in_points,
    format_amount,
    format_lead,
    format_verdict_p,
)
from sigdask.results.columns import EMPTY
from sigdask.results.comparisons import ComparisonResults, ResultAcrossSets
from sigdask.results.fields import get_result
from sigdask.results.ranking import index_systems
from sigdask.results.record import Result
from sigdask.results.table import CONTESTED, Table
from sigdask.statistics.rounding import format_p_equals
from sigdask.text import format_count

NO_ROWS: Integers = np.zeros(0, np.int64)
GroupKey = tuple[str, str, str]
"""The names of a test set, subset ("" without) and metric."""

PAIR, BASELINE, ALL, SOME = "pair", "baseline", "all", "some"
"""Which systems were compared in each group: two, all with one, all with each other, or others."""

MAX_LEADING = 20
"""Maximum number of groups whose best system and runner-up are opened on a page."""


def get_group_key(table: Table, row: int) -> GroupKey:
    """Return the test set, subset and metric of a row."""
    subset = table.subset[row]
    return table.test_set[row], "" if subset is None else subset.value, table.metric[row].name


@dataclass(frozen=True, eq=False)
class Standings:
    """Comparisons in groups with the lead of A over B in each: arrays of shape (n,).

    Attributes
    ----------
    names : list of str
        Names of the systems.
    group : int64
        Numbered in the order in which groups come first.
    a, b : int64
        Places of the two systems.
    ahead : float64
        How much better A is than B, also if lower scores are better. NaN if a score is missing.
    lacks_a, lacks_b : bool
        Whether a score is missing.
    decision, outcome : int8
        As `Table.decision` and `Table.outcome`.
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
    outcome: NDArray[np.int8]
    is_two_sided: bool

    @staticmethod
    def from_table(table: Table) -> Standings:
        """Return the leads of a table's comparisons, grouped by test set, subset and metric."""
        names, a, b = index_systems(table)
        codes = np.unique(table.alternative.codes).tolist()
        signs = [1.0 if score.higher_is_better else -1.0 for score in table.metric.values]
        return Standings(
            names=names,
            group=number_rows(table.test_set.codes, table.subset.codes, table.metric.codes),
            a=a,
            b=b,
            ahead=table.difference * np.array(signs)[table.metric.codes],
            lacks_a=np.isnan(table.score_a),
            lacks_b=np.isnan(table.score_b),
            decision=table.decision,
            outcome=table.outcome,
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
        return Standings([*indices], group, a, b, ahead, lacks, lacks, decision, decision, two_sided)

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
        first = self.group * n
        keys = np.concatenate([first + self.a, first + self.b])
        is_behind = np.concatenate([(self.ahead < 0) | self.lacks_a, (self.ahead > 0) | self.lacks_b])
        unique_keys, inverse = find_distinct(keys)
        losses = np.bincount(inverse[is_behind], minlength=len(unique_keys))
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
        lead = np.abs(np.nan_to_num(self.ahead[rows], nan=np.inf))
        return int(rows[np.argmin(lead)])

    def list_leading_rows(self) -> list[int]:
        """Return the row of each of the first groups that compares its best system with the runner-up or baseline."""
        groups = range(min(self.n_groups, MAX_LEADING))
        if self.design == BASELINE:
            rows = (np.flatnonzero(self.group == g) for g in groups)
            return [int(own[np.argmax(np.nan_to_num(self.ahead[own], nan=-np.inf))]) for own in rows]
        return [self.find_rival(g) for g in groups]

    def get_winner(self, row: int) -> str:
        """Return the name of the better system."""
        return self.names[int((self.a if self.ahead[row] > 0 else self.b)[row])]

    def get_opponent(self, row: int, system: int) -> str:
        """Return the name of the system that `system` is compared with."""
        return self.names[int(self.b[row] if self.a[row] == system else self.a[row])]


@dataclass(frozen=True)
class VerdictGroups:
    """Verdicts on single comparisons in groups (a test set, subset and metric each), with words that describe them."""

    table: Table

    @cached_property
    def standings(self) -> Standings:
        """Which system leads in each verdict, and by how much."""
        return Standings.from_table(self.table)

    @cached_property
    def _metrics_in_points(self) -> frozenset[str]:
        return find_metrics_in_points(self.table)

    @cached_property
    def noun(self) -> str:
        """Word for what the groups differ by: metrics, subsets or test sets; "comparisons" if by several of these."""
        table = self.table
        columns = {"test sets": table.test_set.codes, "subsets": table.subset.codes, "metrics": table.metric.codes}
        varying = [name for name, codes in columns.items() if (codes != codes[0]).any()]
        return varying[0] if len(varying) == 1 else "comparisons"

    @cached_property
    def group_labels(self) -> Sequence[str]:
        """Labels of the groups: "on" a metric, with test set and subset where there are several."""
        return [
            f"on {self._describe_metric(row)}{self._describe_subset(row)}{' over the items of each pair' * varies}"
            for row, varies in zip(self.standings.first_rows.tolist(), self._has_varying_scores.tolist(), strict=True)
        ]

    @cached_property
    def _has_varying_scores(self) -> NDArray[np.bool_]:
        """Whether a system of a group has several scores, because each pair is compared on its common items."""
        c, group = self.standings, np.tile(self.standings.group, 2)
        _, inverse = find_distinct(group * len(c.names) + np.concatenate([c.a, c.b]))
        scores = np.nan_to_num(np.concatenate([self.table.score_a, self.table.score_b]))
        last_scores = np.empty_like(scores)
        last_scores[inverse] = scores
        return np.bincount(group, ~np.isclose(scores, last_scores[inverse], rtol=1e-9, atol=1e-12), c.n_groups) > 0

    def explain_group_marks(self, groups: Sequence[int], texts: Sequence[str]) -> str:
        """Return text that names several groups, each with its text; a metric shared by all is named once."""
        rows = self.standings.first_rows[list(groups)].tolist()
        is_same_metric = self.noun in {"subsets", "test sets"}
        labels = [
            self._describe_subset(row).removeprefix(" in ")
            if is_same_metric
            else self._describe_metric(row) + self._describe_subset(row)
            for row in rows
        ]
        parts = join_phrases([name + text for name, text in zip(labels, texts, strict=True)])
        return f"on {self._describe_metric(rows[0])} in {parts}" if is_same_metric else f"on {parts}"

    def _describe_metric(self, row: int) -> str:
        score = self.table.metric[row]
        return f"{score.name}{'' if score.higher_is_better else ' (lower is better)'}"

    def _describe_subset(self, row: int) -> str:
        """Return the test set and subset of a row, where there are several."""
        subset = self.table.subset[row]
        codes = self.table.test_set.codes
        parts = [self.table.test_set[row]] if (codes != codes[0]).any() else []
        parts += [f"{subset.column} {subset.value or EMPTY}"] if subset is not None else []
        return f" in {', '.join(parts)}" if parts else ""

    def describe(self, row: int) -> str:
        """Return the verdict of a row as a sentence."""
        r, points = self._get_result(row)
        return describe_comparison(r, self.table.alpha, points=points, where=self._describe_subset(row))

    def _get_result(self, row: int) -> tuple[Result, bool]:
        """Return a comparison, and whether its difference is written in points of 100."""
        return self._build_result(row), self.table.metric[row].name in self._metrics_in_points

    @cached_property
    def _build_result(self) -> Callable[[int], Result]:
        return lru_cache(maxsize=100)(partial(get_result, self.table))  # several sentences are about the same rows

    def format_lead(self, row: int) -> str:
        """Return text on how far the better system of a row is ahead."""
        r, points = self._get_result(row)
        return format_lead(r, points=points)

    def count_contested(self, rows: Integers = NO_ROWS, mentioned: Sequence[int] = ()) -> str:
        """Return a clause on how many of some or all rows are contested, or "" if no more than those mentioned."""
        is_contested = (self.standings.outcome == CONTESTED)[rows if len(rows) else slice(None)]
        n = int(np.count_nonzero(is_contested))
        if n <= sum(self.standings.outcome[row] == CONTESTED for row in mentioned):
            return ""
        return f"; {n:,} of {format_count(len(is_contested), 'comparison')} {'is' if n == 1 else 'are'} contested"

    def format_p(self, row: int) -> str:
        """Return the p-value that the verdict of a row uses as text."""
        return format_verdict_p(self._build_result(row), self.table.alpha)


@dataclass(frozen=True)
class JointVerdicts(VerdictGroups):
    """Verdicts over all test sets or subsets together, grouped by metric."""

    verdicts: tuple[ResultAcrossSets, ...]

    @cached_property
    def standings(self) -> Standings:
        """Which system leads in each verdict, and by how much."""
        return Standings.from_joint_verdicts(self.table, self.verdicts)

    @property
    def noun(self) -> str:
        """Word for what the groups differ by."""
        return "metrics"

    @cached_property
    def _has_varying_scores(self) -> NDArray[np.bool_]:
        return np.zeros(self.standings.n_groups, np.bool_)

    def _describe_subset(self, _row: int) -> str:
        return ""

    def _describe_metric(self, row: int) -> str:
        v = self.verdicts[row]
        is_lower_better = any(v.metric == m.name and not m.higher_is_better for m in self.table.metric.values)
        return f"{v.metric}{' (lower is better)' * is_lower_better} (mean of {v.n_sets} sets)"

    def describe(self, row: int) -> str:
        """Return the verdict of a row as a sentence."""
        v, c, metric, p = self.verdicts[row], self.standings, self._describe_metric(row), self.format_p(row)
        if v.difference == 0:
            return f"{v.a} and {v.b} score the same on {metric}; {p}"
        better, size = c.get_winner(row), f"{self.format_lead(row)}; {p}"
        if c.outcome[row] == 1:
            return f"{better} is better than {v.b if better == v.a else v.a} on {metric} by {size}"
        if not c.is_two_sided:
            return f"{v.a} and {v.b} show no difference in the direction tested on {metric}; {p}"
        return f"{v.a} and {v.b} are not significantly different on {metric}: {better} is ahead by {size}"

    def format_lead(self, row: int) -> str:
        """Return text on how far the better system of a row is ahead."""
        v = self.verdicts[row]
        return format_amount(abs(v.difference), points=v.metric in self._metrics_in_points)

    def format_p(self, row: int) -> str:
        """Return the p-value that the verdict of a row uses as text."""
        v, alpha = self.verdicts[row], self.table.alpha
        if v.p_adjusted is not None:
            return f"adjusted {format_p_equals(v.p_adjusted, alpha)}"
        method_text = "exact" if v.method == "exact" else format_count(v.n_trials, "trial")
        return f"{format_p_equals(v.p_value, alpha)} ({method_text})"


def join_phrases(parts: Sequence[str]) -> str:
    """Join phrases with commas and a final "and".

    Examples
    --------
    >>> join_phrases(["a"]), join_phrases(["a", "b"]), join_phrases(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def build_verdict_groups(results: ComparisonResults) -> VerdictGroups:
    """Return the verdicts that a headline describes: over all sets if requested, otherwise of comparisons."""
    if results.together:
        return JointVerdicts(results.table, results.together)
    return VerdictGroups(results.table)
