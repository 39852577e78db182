"""Exact p-values, computed without trials: which comparisons have them, and the jobs that compute them.

Where all unit differences have the same size, p is a binomial tail, computed as a column. Else the rows of a panel
become problems: how much each unit's swap changes the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from sigdask.analysis.comparison.pairs import Comparisons, CountedCells
from sigdask.counts.factors import group_rows, number_rows, scatter_rows
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.interface import spell_in
from sigdask.metrics.forms import Ratios
from sigdask.options import Method
from sigdask.randomization.panels.exact import ExactPanel, IntegerScoring
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.slabs import Job, Tallies
from sigdask.randomization.tallies import TAILS
from sigdask.results.columns import CodedColumn, Columns
from sigdask.results.table import NOT_APPLICABLE, Table
from sigdask.statistics import exact
from sigdask.statistics.bounds import EXACT_VALUE, SECOND_RUN, SIGN_TEST
from sigdask.statistics.classical import EXACT_UP_TO, sign_test
from sigdask.statistics.exact import (
    CLOSE_SHARE,
    ChosenMethod,
    EnumeratedScore,
    MethodLimits,
    NoMethod,
    Problem,
    QuotientProblem,
    SumProblem,
    binomials,
)
from sigdask.statistics.exact.problems import MAX_ESTIMATE
from sigdask.text import format_count, format_duration

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
            yield (
                "the scores have so many digits that their sums are rounded, so it is computed exactly only up to 20 "
                "discordant units"
            )
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

ENUMERATION: ExactMethod = ("enumeration", "exact")


@dataclass(frozen=True, slots=True, eq=False)
class ExactValues:
    """Exact p-values of one tail, or bounds of them: arrays of shape (n,).

    Attributes
    ----------
    low, high : float64
        NaN if unknown.
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

    def where(self, mask: Bools, other: ExactValues) -> ExactValues:
        """Return these values where `mask` is true, and the values of `other` elsewhere."""
        codes = np.where(mask, self.by.codes, other.by.codes + len(self.by.values)).astype(np.int32)
        methods = CodedColumn(codes, (*self.by.values, *other.by.values))
        return ExactValues(np.where(mask, self.low, other.low), np.where(mask, self.high, other.high), methods)

    @property
    def is_p(self) -> Bools:
        """Whether each upper bound can be used as p: the bounds are guaranteed and close enough."""
        is_guaranteed = self.by.find(lambda method: method is not None and method[1] in GUARANTEED)
        return _can_be_p(self.low, self.high, is_guaranteed)


def _can_be_p(low: Floats, high: Floats, is_guaranteed: Bools) -> Bools:
    return np.asarray(is_guaranteed & ((high - low < CLOSE_SHARE * high) | (high == low)))


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


def list_exact_jobs(
    comparisons: Comparisons, method: Method, seconds: float | None
) -> tuple[Integers, list[CountedCells]]:
    """Return the signs of binomial tails and the jobs of exact p-values, of comparisons that are not enumerated.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons with one kind of unit.
    method : str
        auto: all sampled comparisons of a metric, or none; both: those that are feasible; exact: all.
    seconds : float or None
        Limit of the estimated seconds of one core for all exact p-values of a metric; None for the defaults.

    Returns
    -------
    (int64 array of shape (n_comparisons, 2), list of CountedCells)
        Wins and losses of comparisons whose p is a binomial tail, which needs no job, and -1 for others; and the jobs.

    Raises
    ------
    InputError
        Some comparison has no exact p within the limits, and only exact p-values were requested.
    """
    signs: Integers = np.broadcast_to(np.int64(-1), (len(comparisons), 2))
    cells: list[CountedCells] = []
    if method == "randomization":
        return signs, cells
    for group in group_rows(number_rows(comparisons.metric)):
        selected = group[~comparisons.enumerated[group]]
        group_signs: Integers = np.broadcast_to(np.int64(-1), (len(selected), 2))
        for in_panel in group_rows(number_rows(comparisons.panel[selected])):
            rows = selected[in_panel]
            sign_counts = comparisons.get_panel(rows[0]).sign_counts
            counts = sign_counts[comparisons.row[rows], comparisons.column[rows]]
            group_signs = scatter_rows(group_signs, in_panel, counts)
        panels = _build_panels(comparisons, selected, group_signs, method, seconds)
        if panels is None:
            continue
        signs = scatter_rows(signs, selected, group_signs)
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


def _build_panels(
    comparisons: Comparisons, selected: Integers, signs: Integers, method: Method, seconds: float | None
) -> list[tuple[int, ExactPanel]] | None:
    """Return panels that compute exact p-values, with the indices of their comparisons among the selected ones.

    The comparisons share a metric. Binomial tails need no panel. None means that the metric gets no exact p-values.
    """
    unsolved = np.flatnonzero(signs[:, 0] < 0)
    large_tails = np.unique(signs[signs.sum(axis=1) > EXACT_UP_TO], axis=0)
    spent = len(large_tails) * OPERATIONS_A_TAIL + len(unsolved) * OPERATIONS_A_PAIR
    if method == "auto" and seconds is None and spent > MAX_OPERATIONS:
        return None
    found: list[tuple[int, ExactPanel]] = []
    for k, problem in _iter_problems(comparisons, selected, unsolved):
        panel = f"{problem}; {spell_in(REMEDY)}" if isinstance(problem, str) else _plan_panel(problem, method, seconds)
        if isinstance(panel, str) and method == "exact":
            raise InputError(f"method exact: {comparisons.describe(int(selected[k]))}: {panel}")
        if isinstance(panel, ExactPanel):
            spent += panel.chosen.operations
            found.append((k, panel))
        if method == "auto" and (isinstance(panel, str) or (seconds is None and spent > MAX_OPERATIONS)):
            return None
    return _limit_panels(comparisons, selected, found, method, seconds)


def _limit_panels(
    comparisons: Comparisons,
    selected: Integers,
    panels: list[tuple[int, ExactPanel]],
    method: Method,
    seconds: float | None,
) -> list[tuple[int, ExactPanel]] | None:
    """Return all panels if their total time is within the limit.

    Else "both" returns the fastest panels, "auto" returns None, and "exact" raises.
    """
    limit = _get_limit(method, seconds)
    order = sorted(range(len(panels)), key=lambda k: panels[k][1].chosen.seconds)
    total = np.cumsum([panels[k][1].chosen.seconds for k in order])
    if limit is None or not len(total) or total[-1] <= limit:
        return panels
    if method == "both":
        return [panels[k] for k in sorted(order[: int(np.searchsorted(total, limit, side="right"))])]
    if method == "auto":
        return None
    longest_index, panel = panels[order[-1]]
    longest = int(selected[longest_index])
    raise InputError(
        f"method exact: the exact p-values of {format_count(len(panels), 'comparison')} by "
        f"{comparisons.get_metric(longest).name} would take {_format_duration(float(total[-1]))} of one core together "
        f"(the longest, {comparisons.describe(longest)}, {_format_duration(panel.chosen.seconds)}), but the limit is "
        f"{_format_seconds(limit)}; {spell_in(RAISE_REMEDY)}; {spell_in(REMEDY)}"
    )


def _iter_problems(
    comparisons: Comparisons, selected: Integers, unsolved: Integers
) -> Iterator[tuple[int, Problem | str]]:
    """Yield the index of each comparison with its problem, or with the reason why it has no problem."""
    c = comparisons
    for group in group_rows(number_rows(c.panel[selected[unsolved]])):
        rows = selected[unsolved[group]]
        panel, column = c.get_panel(rows[0]), int(c.column[rows[0]])
        if not isinstance(panel, Panel):
            problems: Iterator[Problem | str] = (
                f"the p-value of {panel.kind} can only be enumerated or sampled, and {n} discordant units are too "
                "many to enumerate"
                for n in c.n_discordant[rows].tolist()
            )
        elif panel.is_coarse(column):
            problems = repeat("scores of very unequal size can be enumerated only up to 20 discordant units", len(rows))
        else:
            problems = _iter_pair_problems(panel, column, c.row[rows].astype(np.int64))
        yield from zip(unsolved[group].tolist(), problems, strict=True)


def _get_limit(method: Method, seconds: float | None) -> float | None:
    """Return the limit in seconds; None if the method is limited by predicted operations instead."""
    return MAX_SECONDS if seconds is None and method == "exact" else seconds


def _plan_panel(problem: Problem, method: Method, seconds: float | None) -> ExactPanel | str:
    """Return the panel that solves a problem, or the reason why no method can."""
    limit = _get_limit(method, seconds)
    limits = LIMITS[method] if limit is None else MethodLimits(MAX_ESTIMATE, seconds=limit)
    method_plan = exact.choose_method(problem, limits)
    if method == "exact" and (isinstance(method_plan, NoMethod) or method_plan.guarantee not in GUARANTEED):
        return _explain_refusal(problem, method_plan, limits)
    return method_plan.reason if isinstance(method_plan, NoMethod) else ExactPanel(problem, method_plan)


def _explain_refusal(problem: Problem, method_plan: ChosenMethod | NoMethod, limits: MethodLimits) -> str:
    """Return a message on the time and memory that an exact p would take, and on what to do instead."""
    candidates = [candidate for candidate in exact.iter_methods(problem) if candidate.guarantee in GUARANTEED]
    if not candidates:
        reason = (
            method_plan.reason if isinstance(method_plan, NoMethod) else f"{method_plan.method} gives only limits of p"
        )
        return f"no exact p: {reason}; {spell_in(REMEDY)}"
    cheapest = min(candidates, key=lambda candidate: (candidate.n_bytes > limits.n_bytes, candidate.seconds))
    needs = f"{_format_duration(cheapest.seconds)} of one core and {_format_gigabytes(cheapest.n_bytes)} of memory"
    limit, remedy = _format_seconds(limits.seconds), f"{RAISE_REMEDY}; {REMEDY}"
    if cheapest.n_bytes > limits.n_bytes:
        limit, remedy = f"{_format_gigabytes(limits.n_bytes)} of memory", REMEDY
    return f"an exact p ({cheapest.method}) would take {needs}, but the limit is {limit}; {spell_in(remedy)}"


def _format_duration(seconds: float) -> str:
    is_long = seconds >= 100 * 365 * 86400
    return "more than a century" if is_long else f"about {_format_seconds(seconds)}"


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


RAISE_REMEDY = "raise it with {exact_limit=SECONDS}"

REMEDY = (
    "{method=auto} samples it, {method=both} samples it and adds the exact values that fit, {method=randomization} "
    "only samples"
)


def use_exact_p(table: Table) -> Table:
    """Return the table with exact p-values in place of those from trials, if they are known closely enough.

    If no trials were requested, p is the upper bound, whatever the lower bound is.
    """
    exact_low, exact_high = table["exact.p_lo"], table["exact.p_hi"]
    is_known = _can_be_p(exact_low, exact_high, table["exact.guarantee"].find(GUARANTEED.__contains__))
    is_only_exact = (table.n_trials == 0) & ~np.isnan(exact_high)
    p = np.where(is_known | is_only_exact, exact_high, table.p_value)
    low = np.where(is_only_exact, np.where(is_known, p, exact_low), table["p_interval.0"])
    is_exact = table.is_exact | is_known
    columns: Columns = {
        "method": table.method.fill(is_known, "exact"),
        "p_value": p,
        "p_interval.0": low,
        "p_interval.1": np.where(is_only_exact, p, table["p_interval.1"]),
    }
    return table.replace(**columns, **_remove_repeated_checks(table, is_exact))


def _remove_repeated_checks(table: Table, exact: Bools) -> Columns:
    """Return the checks, of which those that compute an exact p again, or have no part in it, are not applicable."""
    sign_p, is_checked = table[f"checks.{SIGN_TEST}.p_value"], table[f"checks.{EXACT_VALUE}.verdict"].find(bool)
    is_same = exact & is_checked & np.isclose(sign_p, table["exact.p_hi"], rtol=1e-9, atol=0)
    columns: Columns = {}
    for name, is_repeated, why in (
        (SECOND_RUN, exact, "p is exact, so a second run checks nothing"),
        (SIGN_TEST, is_same, "the exact p is that of the sign test, and the trials are compared with it"),
    ):
        verdict, p_value, reason = (table[f"checks.{name}.{key}"] for key in ("verdict", "p_value", "why"))
        rows = is_repeated & verdict.find(lambda word: word not in {"", NOT_APPLICABLE})
        columns |= {
            f"checks.{name}.verdict": verdict.fill(rows, NOT_APPLICABLE),
            f"checks.{name}.p_value": np.where(rows, np.nan, p_value),
            f"checks.{name}.why": reason.fill(rows, why),
        }
    return columns
