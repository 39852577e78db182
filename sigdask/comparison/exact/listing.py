"""Which comparisons get an exact p-value, and the jobs that find it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.comparisons import Comparisons, Standing
from sigdask.comparison.exact.known import SURE, By, Values
from sigdask.comparison.exact.problems import Reader
from sigdask.comparison.exact.signs import binomial, n_tails
from sigdask.comparison.table import Coded
from sigdask.counts.grouping import numbered, rows_of
from sigdask.errors import InputError
from sigdask.options import Method
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels.exact import ExactPanel
from sigdask.randomization.panels.sums import SUMS, Panel
from sigdask.statistics import exact
from sigdask.statistics.exact import Limits, Problem, Refused

Integers = NDArray[np.int64]

MOST_OPERATIONS = 2 * 10**8
"""Predicted operations of a test set and metric up to which auto adds exact values: a fifth of a second or so."""

LIMITS = {"auto": Limits(operations=MOST_OPERATIONS), "both": Limits(), "exact": Limits()}
"""What the method of one comparison may take."""

IN_PARTS = Limits(operations=4 * 10**12)
"""What a count may take that is made in parts, on any cluster: an hour or so of a core, as for 60 real scores."""

OPERATIONS_A_PAIR = 2 * 10**5
"""What a pair costs beside its counting, in operations: most of this is Python."""

OPERATIONS_A_TAIL = 10**5
"""What a binomial tail costs that is not summed on columns."""


def list_exact(comparisons: Comparisons, method: Method, standing: Standing, jobs: list[Job]) -> Integers:
    """List what is to be found exactly of comparisons that are not enumerated.

    Parameters
    ----------
    comparisons : Comparisons
        Of one exchange.
    method : str
        auto: of a metric all that are sampled, or none; both: what there is; exact: all.
    standing : Standing
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
        Some comparison has no exact p, and no other is asked for.
    """
    signs = np.full((len(comparisons), 2), -1, np.int64)
    if method == "randomization":
        return signs
    for own in rows_of(numbered(comparisons.metric)):
        some = own[~comparisons.enumerated[own]]
        asked = _Asked.of(comparisons, some)
        panels = asked.panels(method)
        if panels is None:
            continue
        signs[some] = asked.signs
        for k, panel in panels:
            standing.job[some[k]] = len(jobs)
            jobs.append(Job(panel, panel.n_trials, label=comparisons.label(int(some[k]))))
    return signs


def limits_of(signs: Integers, standing: Standing, jobs: Sequence[Job], tallies: Tallies, tail: int) -> Values:
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
    found = Values(low, high, Coded(codes, tuple(values)))
    closed = signs[:, 0] >= 0
    return binomial(signs, tail).where(closed, found) if closed.any() else found


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
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
    def of(comparisons: Comparisons, some: Integers) -> _Asked:
        signs = np.full((len(some), 2), -1, np.int64)
        for own in rows_of(numbered(comparisons.panel[some])):
            panel = comparisons.panels[int(comparisons.panel[some[own[0]]])]
            signs[own] = panel.signs[comparisons.row[some[own]], comparisons.column[some[own]]]
        return _Asked(comparisons, some, signs)

    def panels(self, method: Method) -> list[tuple[int, ExactPanel]] | None:
        """Return what solves those that are no binomial tails, by their places; None where none is added."""
        rest = np.flatnonzero(self.signs[:, 0] < 0)
        left = MOST_OPERATIONS - n_tails(self.signs) * OPERATIONS_A_TAIL - len(rest) * OPERATIONS_A_PAIR
        if method == "auto" and left < 0:
            return None
        found: list[tuple[int, ExactPanel]] = []
        for k, problem in self._problems(rest):
            panel = problem if isinstance(problem, str) else _planned(problem, method)
            if isinstance(panel, str) and method == "exact":
                raise InputError(f"method exact: {self.comparisons.label(int(self.some[k]))}: {panel}; {REMEDY}")
            if isinstance(panel, ExactPanel):
                left -= panel.chosen.operations
                found.append((k, panel))
            if method == "auto" and (isinstance(panel, str) or left < 0):
                return None
        return found

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
                problems = Reader.of(panel, int(c.column[at[0]])).problems(c.row[at].astype(np.int64))
            else:
                problems = (
                    f"{panel.kind} is enumerated or sampled, and {n} units are discordant"
                    for n in c.n_discordant[at].tolist()
                )
            yield from zip(rest[own].tolist(), problems, strict=True)


def _planned(problem: Problem, method: Method) -> ExactPanel | str:
    """Return what solves a problem, or why nothing does that is asked for."""
    chosen = exact.plan(problem, LIMITS[method])
    if method != "auto" and (isinstance(chosen, Refused) or chosen.guarantee not in SURE):
        parted = exact.plan(problem, IN_PARTS)
        chosen = parted if not isinstance(parted, Refused) and parted.n_parts > 1 else chosen
    if isinstance(chosen, Refused):
        return chosen.reason
    if method == "exact" and chosen.guarantee not in SURE:
        return f"{chosen.method} gives {LESS[chosen.guarantee]}"
    return ExactPanel(problem, chosen)


COARSE = "scores of very unequal size are enumerated up to 20 discordant units alone"

LESS = {"numeric": "p without a bound of its rounding", "bounds": "limits of p alone"}
"""What a guarantee is less than."""

REMEDY = "--method auto samples it, --method both samples all and adds what exact values there are"
