"""Which comparisons get an exact p-value, and the jobs that find it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.exact.problems import ProblemReader
from sigdask.analysis.comparison.exact.signs import binomial, n_tails
from sigdask.analysis.comparison.pairs import Comparisons, CountPositions
from sigdask.counts.grouping import numbered, rows_of
from sigdask.errors import InputError
from sigdask.options import Method
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels.exact import ExactPanel
from sigdask.randomization.panels.sums import SUMS, Panel
from sigdask.results.columns.coded import Coded
from sigdask.results.exact import SURE, By, ExactValues
from sigdask.statistics import exact
from sigdask.statistics.exact import ChosenMethod, MethodLimits, NoMethod, Problem
from sigdask.statistics.exact.result import LARGEST
from sigdask.text import count_noun, duration

Integers = NDArray[np.int64]

MOST_OPERATIONS = 2 * 10**8
"""Predicted operations of a test set and metric up to which auto adds exact values: a fifth of a second or so."""

MOST_SECONDS = 60.0
"""Estimated seconds of one core that `exact` takes at most for a test set and metric, unless a limit is given."""

LIMITS = {"auto": MethodLimits(operations=MOST_OPERATIONS), "both": MethodLimits()}
"""What the method of one comparison may take where no limit is given."""

IN_PARTS = MethodLimits(operations=4 * 10**12)
"""What a count may take that is made in parts, on any cluster: an hour or so of a core, as for 60 real scores."""

OPERATIONS_A_PAIR = 2 * 10**5
"""What a pair costs beside its counting, in operations: most of this is Python."""

OPERATIONS_A_TAIL = 10**5
"""What a binomial tail costs that is not summed on columns."""


def list_exact(
    comparisons: Comparisons, method: Method, seconds: float | None, standing: CountPositions, jobs: list[Job]
) -> Integers:
    """List what is to be found exactly of comparisons that are not enumerated.

    Parameters
    ----------
    comparisons : Comparisons
        Of one exchange.
    method : str
        auto: of a metric all that are sampled, or none; both: what there is; exact: all.
    seconds : float or None
        Estimated seconds of one core that the exact p-values of a metric may take together; None for the defaults.
    standing : CountPositions
        Told where what is found stands.
    jobs : list of Job
        What finds it is added to them.

    Returns
    -------
    int64 array, shape (n_comparisons, 2)
        Wins and losses of those whose p is a binomial tail, which needs no job; -1 of others.

    Raises
    ------
    InputError
        Some comparison has no exact p within the limits, and no other is asked for.
    """
    signs = np.full((len(comparisons), 2), -1, np.int64)
    if method == "randomization":
        return signs
    for own in rows_of(numbered(comparisons.metric)):
        some = own[~comparisons.enumerated[own]]
        asked = _NonEnumerable.of(comparisons, some)
        panels = asked.panels(method, seconds)
        if panels is None:
            continue
        signs[some] = asked.signs
        for k, panel in panels:
            standing.job[some[k]] = len(jobs)
            jobs.append(Job(panel, panel.n_trials, label=comparisons.label(int(some[k]))))
    return signs


def limits_of(
    signs: Integers, standing: CountPositions, jobs: Sequence[Job], tallies: Tallies, tail: int
) -> ExactValues:
    """Return the exact p-values that are known under one alternative, of what was listed."""
    n = len(signs)
    low, high, codes = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, np.int32)
    values: dict[By | None, int] = {None: 0}
    for row in np.flatnonzero(standing.job >= 0).tolist():
        job = jobs[standing.job[row]]
        assert isinstance(job.panel, ExactPanel)
        limits = job.panel.found(tallies[job])
        if not np.isnan(limits).any():
            low[row], high[row] = limits[tail]
            by = job.panel.chosen.method, job.panel.guarantee(limits)
            codes[row] = values.setdefault(by, len(values))
    found = ExactValues(low, high, Coded(codes, tuple(values)))
    closed = signs[:, 0] >= 0
    return binomial(signs, tail).where(closed, found) if closed.any() else found


@dataclass(frozen=True, slots=True, eq=False)
class _NonEnumerable:
    """Comparisons under one metric that no enumeration counts.

    Attributes
    ----------
    comparisons : Comparisons
        All.
    some : int64 array, shape (n,)
        Which these are.
    signs : int64 array, shape (n, 2)
        As `list_exact` returns them.
    """

    comparisons: Comparisons
    some: Integers
    signs: Integers

    @staticmethod
    def of(comparisons: Comparisons, some: Integers) -> _NonEnumerable:
        signs = np.full((len(some), 2), -1, np.int64)
        for own in rows_of(numbered(comparisons.panel[some])):
            panel = comparisons.panels[int(comparisons.panel[some[own[0]]])]
            signs[own] = panel.signs[comparisons.row[some[own]], comparisons.column[some[own]]]
        return _NonEnumerable(comparisons, some, signs)

    def panels(self, method: Method, seconds: float | None) -> list[tuple[int, ExactPanel]] | None:
        """Return what solves those that are no binomial tails, by their places; None where none is added."""
        rest = np.flatnonzero(self.signs[:, 0] < 0)
        spent = n_tails(self.signs) * OPERATIONS_A_TAIL + len(rest) * OPERATIONS_A_PAIR
        if method == "auto" and seconds is None and spent > MOST_OPERATIONS:
            return None
        found: list[tuple[int, ExactPanel]] = []
        for k, problem in self._problems(rest):
            panel = f"{problem}; {REMEDY}" if isinstance(problem, str) else _planned(problem, method, seconds)
            if isinstance(panel, str) and method == "exact":
                raise InputError(f"method exact: {self.comparisons.label(int(self.some[k]))}: {panel}")
            if isinstance(panel, ExactPanel):
                spent += panel.chosen.operations
                found.append((k, panel))
            if method == "auto" and (isinstance(panel, str) or (seconds is None and spent > MOST_OPERATIONS)):
                return None
        return self._within(found, method, seconds)

    def _within(
        self, found: list[tuple[int, ExactPanel]], method: Method, seconds: float | None
    ) -> list[tuple[int, ExactPanel]] | None:
        """Return the panels that together stay within a limit: all, or of `both` the cheapest."""
        limit = _seconds(method, seconds)
        if limit is None:
            return found
        order = sorted(range(len(found)), key=lambda k: found[k][1].chosen.seconds)
        total = np.cumsum([found[k][1].chosen.seconds for k in order])
        if not len(total) or total[-1] <= limit:
            return found
        if method == "both":
            return [found[k] for k in sorted(order[: int(np.searchsorted(total, limit, side="right"))])]
        if method == "auto":
            return None
        place, panel = found[order[-1]]
        longest = self.comparisons.label(int(self.some[place]))
        metric = self.comparisons.metrics[int(self.comparisons.metric[self.some[place]])].name
        raise InputError(
            f"method exact: the exact p-values of {count_noun(len(found), 'comparison')} by {metric} would take "
            f"{_duration(float(total[-1]))} of one core together (the longest, {longest}, "
            f"{_duration(panel.chosen.seconds)}), and the limit is {duration(limit)}; {RAISE}; {REMEDY}"
        )

    def _problems(self, rest: Integers) -> Iterator[tuple[int, Problem | str]]:
        """Yield the problem of each comparison, by its place among these, or why it has none."""
        c = self.comparisons
        for own in rows_of(numbered(c.panel[self.some[rest]])):
            at = self.some[rest[own]]
            panel = c.panels[int(c.panel[at[0]])]
            if isinstance(panel, Panel) and panel.is_coarse(int(c.column[at[0]])):
                problems: Iterator[Problem | str] = iter([COARSE] * len(at))
            elif panel.kind == SUMS:
                assert isinstance(panel, Panel)
                problems = ProblemReader.of(panel, int(c.column[at[0]])).problems(c.row[at].astype(np.int64))
            else:
                problems = (
                    f"{panel.kind} is enumerated or sampled, and {n} units are discordant"
                    for n in c.n_discordant[at].tolist()
                )
            yield from zip(rest[own].tolist(), problems, strict=True)


def _seconds(method: Method, seconds: float | None) -> float | None:
    """Return the limit in seconds; None where none was given and operations limit the method."""
    return MOST_SECONDS if seconds is None and method == "exact" else seconds


def _planned(problem: Problem, method: Method, seconds: float | None) -> ExactPanel | str:
    """Return what solves a problem, or why nothing does that is asked for."""
    limit = _seconds(method, seconds)
    limits = LIMITS[method] if limit is None else MethodLimits(LARGEST, seconds=limit)
    chosen = exact.plan(problem, limits)
    if limit is None and method == "both" and (isinstance(chosen, NoMethod) or chosen.guarantee not in SURE):
        parted = exact.plan(problem, IN_PARTS)
        chosen = parted if not isinstance(parted, NoMethod) and parted.n_parts > 1 else chosen
    if method == "exact" and (isinstance(chosen, NoMethod) or chosen.guarantee not in SURE):
        return _why_not(problem, chosen, limits)
    return chosen.reason if isinstance(chosen, NoMethod) else ExactPanel(problem, chosen)


COARSE = "scores of very unequal size are enumerated up to 20 discordant units alone"


def _why_not(problem: Problem, chosen: ChosenMethod | NoMethod, limits: MethodLimits) -> str:
    """Say what an exact p would take, and what to do instead."""
    needed = [way for way in exact.ways(problem) if way.guarantee in SURE]
    if not needed:
        why = chosen.reason if isinstance(chosen, NoMethod) else f"{chosen.method} gives {LESS[chosen.guarantee]}"
        return f"no exact p: {why}; {REMEDY}"
    least = min(needed, key=lambda way: (way.n_bytes > limits.n_bytes, way.seconds))
    fits = least.n_bytes <= limits.n_bytes
    return (
        f"an exact p ({least.method}) would take {_duration(least.seconds)} of one core and "
        f"{_gigabytes(least.n_bytes)} of memory, and the limit is "
        + (f"{duration(limits.seconds)}; {RAISE}; " if fits else f"{_gigabytes(limits.n_bytes)} of memory; ")
        + REMEDY
    )


def _duration(seconds: float) -> str:
    return f"about {duration(seconds)}" if seconds < CENTURY else "more than a century"


def _gigabytes(n: int) -> str:
    """Write a size in memory.

    Examples
    --------
    >>> _gigabytes(2 * 10**9), _gigabytes(336_600_000), _gigabytes(10**400)
    ('2.0 GB', '0.3 GB', 'more than 1,000 GB')
    """
    return f"{max(n / 10**9, 0.1):.1f} GB" if n < 10**12 else "more than 1,000 GB"


CENTURY = 100 * 365 * 86400.0

LESS = {"numeric": "p without a bound of its rounding", "bounds": "limits of p alone"}
"""What a guarantee is less than."""

RAISE = "raise it with --exact-limit SECONDS"

REMEDY = (
    "--method auto samples it, --method both samples it and adds the exact values that fit, "
    "--method randomization samples alone"
)
