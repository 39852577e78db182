"""Exact p-values, computed without trials: which comparisons have them, and the jobs that compute them.

Where all unit differences have the same size, p is a binomial tail, computed as a column. Else the rows of a panel
become problems: how much each unit's swap changes the difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from sigdask.analysis.comparison.pairs import Comparisons, CountedCells
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.interface import spell_in
from sigdask.metrics.forms import Ratios
from sigdask.options import Method
from sigdask.randomization.panels.exact import ExactPanel, IntegerScoring
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.slabs import Job, Tallies
from sigdask.randomization.tallies import TAILS
from sigdask.results.columns import encode
from sigdask.statistics import exact
from sigdask.statistics.classical import EXACT_UP_TO, sign_test
from sigdask.statistics.exact import (
    CLOSE_SHARE,
    EnumeratedScore,
    MethodLimits,
    NoMethod,
    Problem,
    QuotientProblem,
    SumProblem,
    binomials,
)
from sigdask.statistics.exact.problems import MAX_ESTIMATE
from sigdask.statistics.numbering import group_rows, number_rows
from sigdask.text import format_count

SWAPPED_SLACK = 2
"""Slack of a shuffled difference in steps. It differs from the observed one by twice the sum over swapped units."""


def _iter_pair_problems(panel: Panel, column: int, rows: Integers) -> Iterator[Problem | str]:
    """Yield the problem of each pair under the metric in a column, or the reason why it has no problem."""
    metric, is_linear = panel.metrics[column], panel.linear[column]
    fields = list(metric.fields)
    values = panel.compute_numerators(column, panel.values) if is_linear else panel.values[:, :, fields]
    for row, (i, j) in zip(rows.tolist(), panel.pairs[rows].tolist(), strict=True):
        changes = np.subtract(values[:, i], values[:, j], dtype=np.int64)
        if is_linear:
            yield SumProblem(changes[changes != 0], SWAPPED_SLACK * int(panel.slack[row, column]))
            continue
        if panel.is_approximate(column):
            yield "the scores have so many digits that their sums are rounded, so p can only be sampled or enumerated"
            continue
        form, changes, totals = metric.form, changes[changes.any(axis=1)], panel.totals[[i, j]][:, fields]
        lattices = tuple(panel.lattices[f] for f in fields)
        if isinstance(form, Ratios) and len({*lattices}) == 1:
            weights = np.array(form.numerators), np.array(form.denominators)
            yield QuotientProblem.from_counts(changes, np.zeros_like(changes), totals, *weights, form.zero_division)
        else:
            yield EnumeratedScore(changes, totals, IntegerScoring(form, lattices).score)


ExactMethod = tuple[str, str]

GUARANTEED = ("exact", "certified")
"""Guarantees with which an exact value counts as p."""

METHODS: tuple[ExactMethod, ...] = (
    ("", ""), ("enumeration", "exact"), ("binomial", "exact"), ("binomial", "certified"),
)  # fmt: skip
"""Methods that need no job of their own, with their guarantees."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactValues:
    """Exact p-values of one tail, or bounds of them: arrays of shape (n,).

    Attributes
    ----------
    low, high : float64
        NaN if unknown.
    method, guarantee : Texts
        How each is known, as in `Result.exact`; empty if unknown.
    """

    low: Floats
    high: Floats
    method: Texts
    guarantee: Texts

    @property
    def is_p(self) -> Bools:
        """Whether each upper bound can be used as p: the bounds are guaranteed and close enough."""
        is_guaranteed = self.guarantee.find(GUARANTEED.__contains__)
        is_close = (self.high - self.low < CLOSE_SHARE * self.high) | (self.high == self.low)
        return np.asarray(is_guaranteed & is_close)


def read_exact_values(
    shares: Floats, signs: Integers, cells: Iterable[CountedCells], tallies: Tallies, tail: int
) -> ExactValues:
    """Return the exact p-values for one tail.

    Parameters
    ----------
    shares : float64 array, shape (n,)
        Shares of extreme arrangements; NaN where these were not enumerated.
    signs : int64 array, shape (n, 2)
        Wins and losses where p is a binomial tail, -1 elsewhere.
    cells : iterable of CountedCells
        Jobs of other exact p-values.
    tallies, tail
        Their tallies, and the index of the tail.

    Examples
    --------
    >>> unknown, signs = np.full(2, np.nan), np.array([[12, 3], [-1, -1]])
    >>> read_exact_values(unknown, signs, [], {}, TAILS.index("two-sided")).high.tolist()
    [0.03515625, nan]
    """
    low, high, codes = shares.copy(), shares.copy(), (~np.isnan(shares)).astype(np.int32)
    values: dict[ExactMethod, int] = {method: k for k, method in enumerate(METHODS)}
    for part in cells:
        panel = part.job.panel
        assert isinstance(panel, ExactPanel)
        limits = panel.compute_limits(tallies[part.job])
        if not np.isnan(limits).any():
            low[part.index], high[part.index] = limits[tail]
            key = panel.chosen.method, panel.get_guarantee(limits)
            codes[part.index] = values.setdefault(key, len(values))
    total = signs.sum(axis=1)
    is_small = (total >= 0) & (total <= EXACT_UP_TO)
    low[is_small] = high[is_small] = sign_test(signs[is_small, 0], signs[is_small, 1], TAILS[tail])
    codes[is_small] = METHODS.index(("binomial", "exact"))
    large = np.flatnonzero(total > EXACT_UP_TO)
    for group in group_rows(number_rows(*signs[large].T)):
        rows = large[group]
        wins, losses = signs[rows[0]].tolist()
        ends = low[rows], high[rows] = compute_limits(wins, losses, tail)
        codes[rows] = METHODS.index(("binomial", "exact" if ends[0] == ends[1] else "certified"))
    methods, guarantees = zip(*values, strict=True)
    return ExactValues(low, high, encode(methods, codes), encode(guarantees, codes))


def compute_limits(wins: int, losses: int, tail: int) -> tuple[float, float]:
    """Return the lower and upper limit of the sign test's p-value, for given numbers of wins and losses."""
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

OPERATIONS_A_PAIR = 2 * 10**5
"""Overhead of a pair in addition to its counting, in operations. Most of it is Python."""

OPERATIONS_A_TAIL = 10**5
"""Cost of a binomial tail that is not summed on columns, in operations."""


def list_exact_jobs(comparisons: Comparisons) -> tuple[Integers, list[CountedCells]]:
    """Return the signs of binomial tails and the jobs of exact p-values, of comparisons that are not enumerated.

    By method auto these are all sampled comparisons of a metric, or none; by both, those that are feasible.

    Returns
    -------
    (int64 array of shape (n_comparisons, 2), list of CountedCells)
        Wins and losses of comparisons whose p is a binomial tail, which needs no job, and -1 for others; and the jobs.

    Raises
    ------
    InputError
        Some comparison has no exact p within the limits, and only exact p-values were requested.
    """
    c, cells = comparisons, list[CountedCells]()
    signs: Integers = np.full((len(c), 2), -1, np.int64)
    if c.spec.method == "randomization" or c.enumerated.all():
        return signs, cells
    for group in group_rows(number_rows(c.metric)):
        selected = group[~c.enumerated[group]]
        group_signs = np.full((len(selected), 2), -1, np.int64)
        for in_panel in group_rows(number_rows(c.panel[selected])):
            rows = selected[in_panel]
            group_signs[in_panel] = c.get_panel(rows[0]).sign_counts[c.row[rows], c.column[rows]]
        panels = _build_panels(c, selected, group_signs)
        if panels is not None:
            signs[selected] = group_signs
            for k, panel in panels:
                job = Job(panel, panel.n_trials, label=c.describe(k))
                cells.append(CountedCells.from_whole(job, np.array([k]), "exact p"))
    return signs, cells


def _build_panels(comparisons: Comparisons, selected: Integers, signs: Integers) -> list[tuple[int, ExactPanel]] | None:
    """Return panels that compute exact p-values, with the indices of their comparisons, which share a metric.

    Binomial tails need no panel. None means that the metric gets no exact p-values.
    """
    method, seconds = comparisons.spec.method, comparisons.spec.exact_limit
    unsolved = selected[signs[:, 0] < 0]
    large_tails = np.unique(signs[signs.sum(axis=1) > EXACT_UP_TO], axis=0)
    spent = len(large_tails) * OPERATIONS_A_TAIL + len(unsolved) * OPERATIONS_A_PAIR
    max_spent = MAX_OPERATIONS if method == "auto" and seconds is None else math.inf
    if spent > max_spent:
        return None
    seconds = MAX_SECONDS if seconds is None and method == "exact" else seconds
    limits = LIMITS[method] if seconds is None else MethodLimits(MAX_ESTIMATE, seconds=seconds)
    found: list[tuple[int, ExactPanel]] = []
    for k, problem in _iter_problems(comparisons, unsolved):
        panel = problem if isinstance(problem, str) else _plan_panel(problem, method, limits)
        if isinstance(panel, str) and method == "exact":
            raise InputError(f"method exact: {comparisons.describe(k)}: {panel}; {spell_in(REMEDY)}")
        if isinstance(panel, ExactPanel):
            spent += panel.chosen.operations
            found.append((k, panel))
        if method == "auto" and (isinstance(panel, str) or spent > max_spent):
            return None
    found.sort(key=lambda pair: pair[1].chosen.seconds)
    total = np.cumsum([panel.chosen.seconds for _, panel in found])
    if seconds is not None and found and total[-1] > seconds:
        if method == "exact":
            raise InputError(
                f"method exact: the exact p-values of {format_count(len(found), 'comparison')} by "
                f"{comparisons.get_metric(found[0][0]).name} would take about {total[-1]:,.3g} s of one core together, "
                f"but the limit is {seconds:g} s; {spell_in(RAISE_REMEDY)}; {spell_in(REMEDY)}"
            )
        found = found[: int(np.searchsorted(total, seconds, side="right"))] if method == "both" else []
        if method == "auto":
            return None
    return sorted(found, key=lambda pair: pair[0])


def _iter_problems(comparisons: Comparisons, unsolved: Integers) -> Iterator[tuple[int, Problem | str]]:
    """Yield the index of each comparison with its problem, or with the reason why it has no problem."""
    c = comparisons
    for group in group_rows(number_rows(c.panel[unsolved])):
        rows = unsolved[group]
        panel, column = c.get_panel(rows[0]), int(c.column[rows[0]])
        if not isinstance(panel, Panel):
            problems: Iterator[Problem | str] = (
                f"the p-value of {panel.kind} can only be enumerated or sampled, and {n} discordant units are too "
                "many to enumerate"
                for n in c.n_discordant[rows].tolist()
            )
        elif panel.is_coarse(column):
            problems = repeat("scores of very unequal size are rounded, so p can only be sampled", len(rows))
        else:
            problems = _iter_pair_problems(panel, column, c.row[rows].astype(np.int64))
        yield from zip(rows.tolist(), problems, strict=True)


def _plan_panel(problem: Problem, method: Method, limits: MethodLimits) -> ExactPanel | str:
    """Return the panel that solves a problem, or the reason why no method can."""
    plan = exact.choose_method(problem, limits)
    if not isinstance(plan, NoMethod) and (method != "exact" or plan.guarantee in GUARANTEED):
        return ExactPanel(problem, plan)
    reason = plan.reason if isinstance(plan, NoMethod) else f"{plan.method} gives only limits of p"
    allowed = f"{limits.seconds:,g} s of one core and {limits.n_bytes / 10**9:.1f} GB of memory"
    needed = plan.needed if isinstance(plan, NoMethod) else None
    remedy = "" if needed and needed.n_bytes > limits.n_bytes else f"; {spell_in(RAISE_REMEDY)}"
    return f"no exact p within {allowed}: {reason}{remedy}"


RAISE_REMEDY = "raise the time with {exact_limit=SECONDS}"

REMEDY = (
    "{method=auto} samples it, {method=both} samples it and adds the exact values that fit, {method=randomization} "
    "only samples"
)
