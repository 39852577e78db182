"""Exact p-values, computed without trials: which comparisons have them, and the jobs that compute them.

Where all unit differences have the same size, p is a binomial tail, computed as a column. Else the rows of a panel
become problems: how much each unit's swap changes the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import Comparisons, CountedCells
from sigdask.counts.factors import group_rows, number_rows, scatter_rows, take_cells
from sigdask.counts.fields import Integers
from sigdask.errors import InputError
from sigdask.identity import dataclass
from sigdask.metrics.forms import Ratios
from sigdask.options import Method
from sigdask.randomization.panels.exact import ExactPanel, IntegerScoring
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.slabs import Job, Tallies
from sigdask.randomization.tallies import TAILS
from sigdask.results.columns import CodedColumn
from sigdask.results.table import GUARANTEED, ExactMethod, ExactValues
from sigdask.statistics import exact
from sigdask.statistics.classical import EXACT_UP_TO, sign_test
from sigdask.statistics.exact import (
    ChosenMethod,
    EnumeratedScore,
    MethodLimits,
    NoMethod,
    Problem,
    QuotientProblem,
    SumProblem,
    binomials,
)
from sigdask.statistics.exact.result import MAX_ESTIMATE
from sigdask.text import format_count, format_duration

SWAPPED_SLACK = 2
"""Slack of a shuffled difference in steps. It differs from the observed one by twice the sum over swapped units."""


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
        Numerators of a linear metric, or the fields of another metric.
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
            return (
                "the scores have so many digits that their sums are rounded, so it is computed exactly only up to 20 "
                "discordant units"
            )
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


METHODS: tuple[ExactMethod | None, ...] = (None, ("binomial", "exact"), ("binomial", "certified"))


def compute_binomial_values(signs: Integers, tail: int) -> ExactValues:
    """Return the exact p-values of the sign test for wins and losses, shape (n, 2); NaN where these are -1.

    Examples
    --------
    >>> compute_binomial_values(np.array([[12, 3], [-1, -1]]), TAILS.index("two-sided")).high.tolist()
    [0.03515625, nan]
    """
    n = len(signs)
    low, high, codes = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, np.int32)
    total = signs.sum(axis=1)
    is_small = (total >= 0) & (total <= EXACT_UP_TO)
    low[is_small] = high[is_small] = sign_test(signs[is_small, 0], signs[is_small, 1], TAILS[tail])
    codes[is_small] = 1
    large = np.flatnonzero(total > EXACT_UP_TO)
    for group in group_rows(number_rows(*signs[large].T)):
        rows = large[group]
        wins, losses = signs[rows[0]].tolist()
        low[rows], high[rows] = compute_limits(wins, losses, tail)
        codes[rows] = 1 if low[rows[0]] == high[rows[0]] else 2
    return ExactValues(low, high, CodedColumn(codes, METHODS))


def compute_limits(wins: int, losses: int, tail: int) -> tuple[float, float]:
    """Return the lower and the upper limit of the sign test's p-value, for any number of wins and losses."""
    reached = (wins, losses, max(wins, losses))[tail]
    sides = 2 if TAILS[tail] == "two-sided" else 1
    bounds = binomials.compute_tail(wins + losses, reached)
    low, high = (min(float(sides * limit), 1.0) for limit in (bounds.low, bounds.high))
    return low, high


MAX_OPERATIONS = 2 * 10**8
"""Maximum predicted operations of a test set and metric for which `auto` adds exact p-values: about a fifth of a
second.
"""

MAX_SECONDS = 60.0
"""Default limit of `exact` for a test set and metric, in estimated seconds of one core."""

LIMITS = {"auto": MethodLimits(operations=MAX_OPERATIONS), "both": MethodLimits()}
"""Default limits for the exact p-value of one comparison."""

PARTED_LIMITS = MethodLimits(operations=4 * 10**12)
"""Limits for a count that is split into parts on a cluster: about an hour of one core, as for 60 real scores."""

OPERATIONS_A_PAIR = 2 * 10**5
"""Overhead of a pair in addition to its counting, in operations. Most of it is Python."""

OPERATIONS_A_TAIL = 10**5
"""Cost of a binomial tail that is not summed on columns, in operations."""


def list_exact_jobs(
    comparisons: Comparisons, method: Method, seconds: float | None
) -> tuple[Integers, list[CountedCells]]:
    """Return the signs of binomial tails and the jobs of exact p-values, of comparisons that are not enumerated.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons with one kind of unit.
    method : str
        auto: of a metric all that are sampled, or none; both: what there is; exact: all.
    seconds : float or None
        Estimated seconds of one core that the exact p-values of a metric may take together; None for the defaults.

    Returns
    -------
    (int64 array of shape (n_comparisons, 2), list of CountedCells)
        Wins and losses of those whose p is a binomial tail, which needs no job; -1 of others. And the other jobs.

    Raises
    ------
    InputError
        Some comparison has no exact p within the limits, and no other is asked for.
    """
    signs: Integers = np.broadcast_to(np.int64(-1), (len(comparisons), 2))
    cells: list[CountedCells] = []
    if method == "randomization":
        return signs, cells
    for group in group_rows(number_rows(comparisons.metric)):
        selected = group[~comparisons.enumerated[group]]
        candidates = _UnenumeratedGroup.from_comparisons(comparisons, selected)
        panels = candidates.build_panels(method, seconds)
        if panels is None:
            continue
        signs = scatter_rows(signs, selected, candidates.signs)
        for k, panel in panels:
            job = Job(panel, panel.n_trials, label=comparisons.describe(int(selected[k])))
            cells.append(CountedCells.from_whole(job, selected[k : k + 1], "exact p"))
    return signs, cells


def read_exact_values(signs: Integers, cells: Iterable[CountedCells], tallies: Tallies, tail: int) -> ExactValues:
    """Return the exact p-values for one tail, from binomial tails and tallies of exact jobs; NaN if unknown."""
    n = len(signs)
    low, high, codes = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, np.int32)
    values: dict[ExactMethod | None, int] = {None: 0}
    for part in cells:
        panel = part.job.panel
        assert isinstance(panel, ExactPanel)
        limits = panel.compute_limits(tallies[part.job])
        if not np.isnan(limits).any():
            low[part.index], high[part.index] = limits[tail]
            key = panel.chosen.method, panel.get_guarantee(limits)
            codes[part.index] = values.setdefault(key, len(values))
    solved = ExactValues(low, high, CodedColumn(codes, tuple(values)))
    is_binomial = signs[:, 0] >= 0
    return compute_binomial_values(signs, tail).where(is_binomial, solved) if is_binomial.any() else solved


@dataclass(frozen=True, slots=True, eq=False)
class _UnenumeratedGroup:
    """Comparisons under one metric whose arrangements are not enumerated.

    Attributes
    ----------
    comparisons : Comparisons
        All.
    selected : int64 array, shape (n,)
        Rows of the comparisons.
    signs : int64 array, shape (n, 2)
        As `list_exact_jobs` returns them.
    """

    comparisons: Comparisons
    selected: Integers
    signs: Integers

    @staticmethod
    def from_comparisons(comparisons: Comparisons, selected: Integers) -> _UnenumeratedGroup:
        signs: Integers = np.broadcast_to(np.int64(-1), (len(selected), 2))
        for group in group_rows(number_rows(comparisons.panel[selected])):
            panel, rows = comparisons.panels[int(comparisons.panel[selected[group[0]]])], selected[group]
            counts = take_cells(panel.sign_counts, comparisons.row[rows], comparisons.column[rows])
            signs = scatter_rows(signs, group, counts)
        return _UnenumeratedGroup(comparisons, selected, signs)

    def build_panels(self, method: Method, seconds: float | None) -> list[tuple[int, ExactPanel]] | None:
        """Return panels that compute exact p-values, with the indices of their comparisons.

        Binomial tails need no panel. None means that the metric gets no exact p-values.
        """
        unsolved = np.flatnonzero(self.signs[:, 0] < 0)
        large_tails = np.unique(self.signs[self.signs.sum(axis=1) > EXACT_UP_TO], axis=0)
        spent = len(large_tails) * OPERATIONS_A_TAIL + len(unsolved) * OPERATIONS_A_PAIR
        if method == "auto" and seconds is None and spent > MAX_OPERATIONS:
            return None
        found: list[tuple[int, ExactPanel]] = []
        for k, problem in self._iter_problems(unsolved):
            panel = f"{problem}; {REMEDY}" if isinstance(problem, str) else _plan_panel(problem, method, seconds)
            if isinstance(panel, str) and method == "exact":
                raise InputError(f"method exact: {self.comparisons.describe(int(self.selected[k]))}: {panel}")
            if isinstance(panel, ExactPanel):
                spent += panel.chosen.operations
                found.append((k, panel))
            if method == "auto" and (isinstance(panel, str) or (seconds is None and spent > MAX_OPERATIONS)):
                return None
        return self._limit_panels(found, method, seconds)

    def _limit_panels(
        self, panels: list[tuple[int, ExactPanel]], method: Method, seconds: float | None
    ) -> list[tuple[int, ExactPanel]] | None:
        """Return all panels if their total time is within the limit.

        Else "both" returns the fastest panels, "auto" returns None, and "exact" raises.
        """
        limit = _get_limit(method, seconds)
        if limit is None:
            return panels
        order = sorted(range(len(panels)), key=lambda k: panels[k][1].chosen.seconds)
        total = np.cumsum([panels[k][1].chosen.seconds for k in order])
        if not len(total) or total[-1] <= limit:
            return panels
        if method == "both":
            return [panels[k] for k in sorted(order[: int(np.searchsorted(total, limit, side="right"))])]
        if method == "auto":
            return None
        longest_index, panel = panels[order[-1]]
        longest = self.comparisons.describe(int(self.selected[longest_index]))
        metric = self.comparisons.metrics[int(self.comparisons.metric[self.selected[longest_index]])].name
        raise InputError(
            f"method exact: the exact p-values of {format_count(len(panels), 'comparison')} by {metric} would take "
            f"{_format_duration(float(total[-1]))} of one core together (the longest, {longest}, "
            f"{_format_duration(panel.chosen.seconds)}), but the limit is {_format_seconds(limit)}; {RAISE_REMEDY}; "
            f"{REMEDY}"
        )

    def _iter_problems(self, unsolved: Integers) -> Iterator[tuple[int, Problem | str]]:
        """Yield the index of each comparison with its problem, or with the reason why it has no problem."""
        c = self.comparisons
        for group in group_rows(number_rows(c.panel[self.selected[unsolved]])):
            rows = self.selected[unsolved[group]]
            panel = c.panels[int(c.panel[rows[0]])]
            if isinstance(panel, Panel) and panel.is_coarse(int(c.column[rows[0]])):
                problems: Iterator[Problem | str] = iter([COARSE_REASON] * len(rows))
            elif isinstance(panel, Panel):
                problems = ProblemReader.from_panel(panel, int(c.column[rows[0]])).iter_problems(
                    c.row[rows].astype(np.int64)
                )
            else:
                problems = (
                    (
                        f"the p-value of {panel.kind} can only be enumerated or sampled, and {n} discordant units "
                        "are too many to enumerate"
                    )
                    for n in c.n_discordant[rows].tolist()
                )
            yield from zip(unsolved[group].tolist(), problems, strict=True)


def _get_limit(method: Method, seconds: float | None) -> float | None:
    """Return the limit in seconds; None if the method is limited by predicted operations instead."""
    return MAX_SECONDS if seconds is None and method == "exact" else seconds


def _plan_panel(problem: Problem, method: Method, seconds: float | None) -> ExactPanel | str:
    """Return the panel that solves a problem, or the reason why no method can."""
    limit = _get_limit(method, seconds)
    limits = LIMITS[method] if limit is None else MethodLimits(MAX_ESTIMATE, seconds=limit)
    method_plan = exact.choose_method(problem, limits)
    if (
        limit is None
        and method == "both"
        and (isinstance(method_plan, NoMethod) or method_plan.guarantee not in GUARANTEED)
    ):
        parted_plan = exact.choose_method(problem, PARTED_LIMITS)
        method_plan = parted_plan if not isinstance(parted_plan, NoMethod) and parted_plan.n_parts > 1 else method_plan
    if method == "exact" and (isinstance(method_plan, NoMethod) or method_plan.guarantee not in GUARANTEED):
        return _explain_refusal(problem, method_plan, limits)
    return method_plan.reason if isinstance(method_plan, NoMethod) else ExactPanel(problem, method_plan)


COARSE_REASON = "scores of very unequal size can be enumerated only up to 20 discordant units"


def _explain_refusal(problem: Problem, method_plan: ChosenMethod | NoMethod, limits: MethodLimits) -> str:
    """Return a message on the time and memory that an exact p would take, and on what to do instead."""
    candidates = [candidate for candidate in exact.iter_methods(problem) if candidate.guarantee in GUARANTEED]
    if not candidates:
        reason = (
            method_plan.reason
            if isinstance(method_plan, NoMethod)
            else f"{method_plan.method} gives {WEAKER_GUARANTEES[method_plan.guarantee]}"
        )
        return f"no exact p: {reason}; {REMEDY}"
    cheapest = min(candidates, key=lambda candidate: (candidate.n_bytes > limits.n_bytes, candidate.seconds))
    fits = cheapest.n_bytes <= limits.n_bytes
    return (
        f"an exact p ({cheapest.method}) would take {_format_duration(cheapest.seconds)} of one core and "
        f"{_format_gigabytes(cheapest.n_bytes)} of memory, but the limit is "
        + (
            f"{_format_seconds(limits.seconds)}; {RAISE_REMEDY}; "
            if fits
            else f"{_format_gigabytes(limits.n_bytes)} of memory; "
        )
        + REMEDY
    )


def _format_duration(seconds: float) -> str:
    return f"about {_format_seconds(seconds)}" if seconds < CENTURY else "more than a century"


def _format_seconds(seconds: float) -> str:
    return format_duration(seconds) if seconds >= 1 else f"{seconds:.1g} s"


def _format_gigabytes(n: int) -> str:
    """Format a size in memory.

    Examples
    --------
    >>> _format_gigabytes(2 * 10**9), _format_gigabytes(336_600_000), _format_gigabytes(10**400)
    ('2.0 GB', '0.3 GB', 'more than 1,000 GB')
    """
    return f"{max(n / 10**9, 0.1):.1f} GB" if n < 10**12 else "more than 1,000 GB"


CENTURY = 100 * 365 * 86400.0

WEAKER_GUARANTEES = {"numeric": "a p whose rounding error is not bounded", "bounds": "only limits of p"}
"""What the weaker guarantees give, in words."""

RAISE_REMEDY = "raise it with --exact-limit SECONDS"

REMEDY = (
    "--method auto samples it, --method both samples it and adds the exact values that fit, --method "
    "randomization only samples"
)
