"""What headlines are made of: comparisons, or verdicts over all sets, each with its sentence, amount and p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from sigdask.report.summary.amounts import amount, in_points
from sigdask.report.summary.answer import chance, doubt, lead, sentence
from sigdask.report.summary.standings import Standings
from sigdask.results.comparisons import ComparisonResults, ResultAcrossSets
from sigdask.results.table import Table
from sigdask.results.views import result_view
from sigdask.statistics.rounding import p_equals
from sigdask.text import count_noun


class VerdictGroups(Protocol):
    """Comparisons in groups, and words for single ones of them."""

    @property
    def contests(self) -> Standings:
        """Who is ahead of whom."""
        ...

    @property
    def places(self) -> Sequence[str]:
        """Where each group is, as its own sentence calls it: on which metric, of which test set and subset."""
        ...

    @property
    def noun(self) -> str:
        """What groups are of which only one thing differs: metrics, subsets or test sets; else comparisons."""
        ...

    def among(self, groups: Sequence[int], told: Sequence[str]) -> str:
        """Where several groups are, with what is told of each."""
        ...

    def sentence(self, row: int) -> str:
        """Tell one comparison."""
        ...

    def size(self, row: int) -> str:
        """Write by how much the better system is ahead."""
        ...

    def doubt(self, row: int) -> str:
        """Return a clause on what the units say against one comparison's verdict; empty as a rule."""
        ...

    def doubts(self, rows: Sequence[int], told: Sequence[int] = ()) -> str:
        """Return a clause on how many comparisons have such doubts, where others have than those told of already."""
        ...

    def p(self, row: int) -> str:
        """Write the p of the verdict."""
        ...


@dataclass(frozen=True)
class SingleComparisons:
    """Comparisons as they are."""

    table: Table

    @cached_property
    def contests(self) -> Standings:
        """Who is ahead of whom."""
        return Standings.of(self.table)

    @cached_property
    def _points(self) -> frozenset[str]:
        return in_points(self.table)

    @cached_property
    def noun(self) -> str:
        """What groups are of which only one thing differs."""
        table = self.table
        columns = {"test sets": table.test_set.codes, "subsets": table.subset.codes, "metrics": table.metric.codes}
        varying = [name for name, codes in columns.items() if (codes != codes[0]).any()]
        return varying[0] if len(varying) == 1 else "comparisons"

    @cached_property
    def places(self) -> Sequence[str]:
        """Where each group is."""
        return [f"on {self._metric(row)}{self._where(row)}" for row in self.contests.first.tolist()]

    def among(self, groups: Sequence[int], told: Sequence[str]) -> str:
        """Where several groups are, the metric once where it is the same."""
        rows = self.contests.first[list(groups)].tolist()
        same = self.noun in {"subsets", "test sets"}
        named = [
            self._where(row).removeprefix(" in ") if same else self._metric(row) + self._where(row) for row in rows
        ]
        parts = joined([name + text for name, text in zip(named, told, strict=True)])
        return f"on {self._metric(rows[0])} in {parts}" if same else f"on {parts}"

    def _metric(self, row: int) -> str:
        score = self.table.metric[row]
        return score.name + ("" if score.higher_is_better else " (lower is better)")

    def _where(self, row: int) -> str:
        """Say of which test set and subset a row is, where there are several."""
        subset = self.table.subset[row]
        codes = self.table.test_set.codes
        parts = [self.table.test_set[row]] if (codes != codes[0]).any() else []
        parts += [f"{subset.column} {subset.value}"] if subset is not None else []
        return f" in {', '.join(parts)}" if parts else ""

    def sentence(self, row: int) -> str:
        """Tell one comparison."""
        points = self.table.metric[row].name in self._points
        return sentence(result_view(self.table, row), self.table.alpha, points=points, where=self._where(row))

    def size(self, row: int) -> str:
        """Write by how much the better system is ahead."""
        return lead(result_view(self.table, row), points=self.table.metric[row].name in self._points)

    def doubt(self, row: int) -> str:
        """Return a clause on what the units say against one comparison's verdict."""
        return doubt(result_view(self.table, row), self.table.alpha, points=self.table.metric[row].name in self._points)

    def doubts(self, rows: Sequence[int], told: Sequence[int] = ()) -> str:
        """Return a clause on how many comparisons have such doubts."""
        return count_doubts(self.table, rows, told)

    def p(self, row: int) -> str:
        """Write the p of the verdict."""
        return chance(result_view(self.table, row), self.table.alpha)


@dataclass(frozen=True)
class JointVerdicts:
    """Verdicts over all test sets or subsets."""

    table: Table
    found: tuple[ResultAcrossSets, ...]

    @cached_property
    def contests(self) -> Standings:
        """Who is ahead of whom."""
        return Standings.together(self.table, self.found)

    @property
    def noun(self) -> str:
        """What groups are of."""
        return "metrics"

    @cached_property
    def places(self) -> Sequence[str]:
        """Where each group is."""
        return [f"on {self._metric(row)}" for row in self.contests.first.tolist()]

    def among(self, groups: Sequence[int], told: Sequence[str]) -> str:
        """Where several groups are."""
        rows = self.contests.first[list(groups)].tolist()
        return f"on {joined([self._metric(row) + text for row, text in zip(rows, told, strict=True)])}"

    @cached_property
    def _points(self) -> frozenset[str]:
        return in_points(self.table)

    @cached_property
    def _lower(self) -> set[str]:
        return {score.name for score in self.table.metric.values if not score.higher_is_better}

    def _metric(self, row: int) -> str:
        v = self.found[row]
        return f"{v.metric}{' (lower is better)' if v.metric in self._lower else ''} (mean of {v.n_sets} sets)"

    def sentence(self, row: int) -> str:
        """Tell one verdict."""
        v, c = self.found[row], self.contests
        if v.difference == 0:
            return f"{v.a} and {v.b} score the same on {self._metric(row)}; {self.p(row)}"
        better = c.winner(row)
        if c.decision[row] == 1:
            other = v.b if better == v.a else v.a
            size = f"{self.size(row)}{self.doubt(row)}"
            return f"{better} is better than {other} on {self._metric(row)} by {size}; {self.p(row)}"
        if not c.is_two_sided:
            return f"{v.a} and {v.b} show no difference in the direction tested on {self._metric(row)}; {self.p(row)}"
        return (
            f"{v.a} and {v.b} are not significantly different on {self._metric(row)}: {better} is ahead by "
            f"{self.size(row)}{self.doubt(row)}; {self.p(row)}"
        )

    def size(self, row: int) -> str:
        """Write by how much the better system is ahead."""
        v = self.found[row]
        return amount(abs(v.difference), points=v.metric in self._points)

    def doubt(self, row: int) -> str:
        """Return a clause on the sets in which few units decide, or differences are skewed."""
        v, table = self.found[row], self.table
        sides = zip(table.a.listed(), table.b.listed(), table.metric.listed(), strict=True)
        own = [k for k, (a, b, score) in enumerate(sides) if (a, b, score.name) == (v.a, v.b, v.metric)]
        n = int(np.count_nonzero(table.is_skewed[own]))
        return f", but few units decide or differences are skewed in {n:,} of {len(own):,} sets" if n else ""

    def doubts(self, rows: Sequence[int], told: Sequence[int] = ()) -> str:  # noqa: ARG002
        """Return a clause on how many comparisons of single sets have such doubts."""
        return count_doubts(self.table, range(len(self.table)), ())

    def p(self, row: int) -> str:
        """Write the p of the verdict."""
        v, alpha = self.found[row], self.table.alpha
        if v.p_adjusted is not None:
            return f"adjusted {p_equals(v.p_adjusted, alpha)}"
        how = "exact" if v.method == "exact" else count_noun(v.n_trials, "trial")
        return f"{p_equals(v.p_value, alpha)} ({how})"


def count_doubts(table: Table, rows: Sequence[int], told: Sequence[int]) -> str:
    """Say in how many of some comparisons few units decide or differences are skewed.

    Parameters
    ----------
    table : Table
        All comparisons.
    rows : sequence of int
        Those that are meant.
    told : sequence of int
        Those of which it was said already: nothing more is said where there are no others.
    """
    fires = table.is_skewed[[*rows]]
    n, already = int(np.count_nonzero(fires)), int(np.count_nonzero(table.is_skewed[[*told]])) if told else 0
    if n <= already:
        return ""
    return f"; in {n:,} of {len(fires):,} comparisons few units decide or differences are skewed"


def joined(parts: Sequence[str]) -> str:
    """Join parts of a sentence.

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def told(results: ComparisonResults) -> VerdictGroups:
    """Return what a headline is of: verdicts over all sets where these were asked for."""
    if results.together:
        return JointVerdicts(results.table, results.together)
    return SingleComparisons(results.table)
