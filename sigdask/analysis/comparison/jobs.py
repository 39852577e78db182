"""The jobs that count comparisons, the positions of their counts, and comparisons of several test sets together.

Exact p-values are computed without trials. Where all unit differences have the same size, p is a binomial tail,
computed as a column. Else the rows of a panel become problems: how much each unit's swap changes the difference.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import RUN_KINDS, CompareSpec, Comparisons, CountedCells, list_comparisons
from sigdask.counts import Counts
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.interface import spell_in
from sigdask.metrics.forms import Ratios
from sigdask.options import Method
from sigdask.randomization.panels import AnyPanel, ComparedPanel
from sigdask.randomization.panels.digests import format_hash, hash_code
from sigdask.randomization.panels.exact import ExactPanel, IntegerScoring
from sigdask.randomization.panels.sums import EnumeratedPairs, Panel
from sigdask.randomization.slabs import Job, Tallies
from sigdask.randomization.tallies import TAILS
from sigdask.results.columns import Columns, encode, repeat
from sigdask.statistics import exact
from sigdask.statistics.bounds import count_second_trials
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

Enumerated = tuple[Integers, AnyPanel]
"""Comparisons, and the panel whose rows are all their arrangements."""


def plan_jobs(counts: Counts, spec: CompareSpec) -> Comparisons:
    """Return the comparisons of a test set with the jobs that count them, including those of exact p-values."""
    comparisons = list_comparisons(counts, spec)
    signs, cells = list_exact_jobs(comparisons)
    return replace(comparisons, signs=signs, cells=[*list_cells(comparisons), *cells])


def list_cells(comparisons: Comparisons) -> Iterator[CountedCells]:
    """Yield the jobs that sample or enumerate comparisons, with the cells of the comparisons' counts."""
    for group in _group_by_columns(np.flatnonzero(comparisons.sampled), comparisons.panel):
        used, pair_index = np.unique(comparisons.row[group].astype(np.int64), return_inverse=True)
        sampled_panel, n_trials = comparisons.get_panel(group[0]).select(used), int(comparisons.n_trials[group[0]])
        for run, kind in enumerate(RUN_KINDS[: 1 + comparisons.spec.second_run]):
            label, n = _describe_comparisons(comparisons, group), count_second_trials(n_trials) if run else n_trials
            job = Job(sampled_panel, n, run, label=label)
            yield CountedCells(kind, job, group, pair_index, comparisons.column[group])
    for group in _group_by_columns(np.flatnonzero(comparisons.enumerated), comparisons.metric):
        for selected, panel in _merge_enumerations(_iter_enumerations(comparisons, group)):
            n_arrangements = 2 ** int(comparisons.n_discordant[selected[0]])
            job = Job(panel, n_arrangements, label=_describe_comparisons(comparisons, selected))
            rows, columns = np.arange(len(selected)), np.zeros(len(selected), np.int64)
            yield CountedCells("all arrangements", job, selected, rows, columns)


def _group_by_columns(selected: Integers, *columns: NDArray[np.int32]) -> list[Integers]:
    """Return groups of the selected comparisons with equal values in the columns."""
    return [selected[rows] for rows in group_rows(number_rows(*(column[selected] for column in columns)))]


def _describe_comparisons(comparisons: Comparisons, selected: Integers) -> str:
    """Return the names of the first comparison and the number of other comparisons, for errors."""
    suffix = f" and {len(selected) - 1} more" if len(selected) > 1 else ""
    return comparisons.describe(int(selected[0])) + suffix


def _iter_enumerations(comparisons: Comparisons, group: Integers) -> Iterator[Enumerated]:
    """Yield the comparisons of a group under one metric, with panels whose rows are all their arrangements."""
    for in_panel in _group_by_columns(group, comparisons.panel):
        row = comparisons.row[in_panel].astype(np.int64)
        comparison_of_row = np.zeros(int(row.max()) + 1, np.int64)
        comparison_of_row[row] = in_panel
        panel, column = comparisons.get_panel(in_panel[0]), int(comparisons.column[in_panel[0]])
        for rows, arrangements in panel.iter_enumerations(row, column):
            yield comparison_of_row[rows], arrangements


def _merge_enumerations(enumerations: Iterable[Enumerated]) -> Iterator[Enumerated]:
    """Yield enumerations, merged into larger panels where possible, because many subsets give many small panels."""
    alike: dict[Hashable, list[tuple[Integers, EnumeratedPairs]]] = {}
    for selected, panel in enumerations:
        if isinstance(panel, EnumeratedPairs) and panel.sharing_key is not None:
            alike.setdefault(panel.sharing_key, []).append((selected, panel))
        else:
            yield selected, panel
    for batch in alike.values():
        n_before = np.cumsum([0, *(len(selected) for selected, _ in batch)])[:-1]
        for part in group_rows(n_before // batch[0][1].max_pairs):
            indices, (first, *rest) = zip(*(batch[k] for k in part), strict=True)
            yield np.concatenate(indices), first.join(rest) if rest else first


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
            problems: Iterable[Problem | str] = (
                f"the p-value of {panel.kind} can only be enumerated or sampled, and {n} discordant units are too "
                "many to enumerate"
                for n in c.n_discordant[rows].tolist()
            )
        elif panel.is_coarse(column):
            problems = ["scores of very unequal size are rounded, so p can only be sampled"] * len(rows)
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


@dataclass(frozen=True, eq=False)
class JoinedComparisons:
    """Comparisons of one or several test sets that are judged together.

    Attributes
    ----------
    sets : tuple of Comparisons
        All comparisons of each test set.
    index : int64 array, shape (n,)
        The comparisons, among those of all test sets one after another.
    """

    sets: tuple[Comparisons, ...]
    index: Integers

    @staticmethod
    def from_sets(*sets: Comparisons) -> JoinedComparisons:
        """Return all comparisons of some test sets, one test set after another."""
        return JoinedComparisons(sets, np.arange(sum(map(len, sets))))

    def __len__(self) -> int:
        return len(self.index)

    def select(self, selected: Integers) -> JoinedComparisons:
        """Return some of the comparisons, given their indices."""
        return self if len(selected) == len(self) else replace(self, index=self.index[selected])

    def get_column(self, name: str) -> Any:
        """Return the values of a column of `Comparisons`; places of subsets and others differ between test sets."""
        arrays = [getattr(comparisons, name) for comparisons in self.sets]
        values = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        return values if len(values) == len(self) else values[self.index]

    @cached_property
    def set_index(self) -> Integers:
        """Index of each comparison's test set."""
        return np.asarray(np.repeat(np.arange(len(self.sets)), [*map(len, self.sets)])[self.index])

    @cached_property
    def row(self) -> Integers:
        """Index of each comparison among those of its test set."""
        return np.asarray(self.index - np.cumsum([0, *map(len, self.sets)])[self.set_index])

    @property
    def methods(self) -> set[Method]:
        """Methods of the test sets of the comparisons."""
        return {self.sets[k].spec.method for k in np.unique(self.set_index)}

    @property
    def panel(self) -> Integers:
        """Indices of the comparisons' panels in `panels`."""
        offsets = np.cumsum([0, *(len(comparisons.panels) for comparisons in self.sets)])
        return np.asarray(self.get_column("panel") + offsets[self.set_index])

    @property
    def panels(self) -> list[ComparedPanel]:
        """Panels of all test sets, one test set after another."""
        return [panel for comparisons in self.sets for panel in comparisons.panels]

    def encode_names(self, column: str) -> Integers:
        """Return codes of the names in the column "a", "b" or "metric"; sides and test sets share the codes."""
        codes: dict[str, int] = {}
        names = [[m.name for m in c.metrics] if column == "metric" else c.counts.systems for c in self.sets]
        all_codes = [codes.setdefault(name, len(codes)) for set_names in names for name in set_names]
        offsets = np.cumsum([0, *map(len, names)])
        return np.asarray(np.array(all_codes, np.int64)[self.get_column(column) + offsets[self.set_index]])

    def look_up(self, texts: Sequence[Sequence[str]], column: str) -> Texts:
        """Return the text of each comparison: of those of its test set, the one at the place that a column has."""
        offsets = np.cumsum([0, *map(len, texts)])
        return encode(chain.from_iterable(texts), self.get_column(column) + offsets[self.set_index])

    def describe(self, k: int) -> str:
        """Return the names of the systems and the metric of comparison `k`, for errors."""
        return self.sets[int(self.set_index[k])].describe(int(self.row[k]))


def build_input_digests(joined: JoinedComparisons, version: str) -> Columns:
    """Return the digests of the inputs of results, without the digests of families, which are added later."""
    data = np.zeros((len(joined), 2), np.uint64)
    start = 0
    for comparisons in joined.sets:
        for panel, column, rows in comparisons.iter_panels():
            data[start + rows] = panel.hash_contents(column)[comparisons.row[rows]]
        start += len(comparisons)
    return {
        "origins.seed": np.repeat([c.spec.seed for c in joined.sets], [*map(len, joined.sets)]),
        "origins.version": repeat(version, len(joined)),
        "origins.method": encode(map(_describe_method, joined.sets), joined.set_index),
        "origins.units": encode((format_hash(c.units.content) for c in joined.sets), joined.set_index),
        "origins.data_a": _encode_digests(data[:, 0]),
        "origins.data_b": _encode_digests(data[:, 1]),
        "origins.code": joined.look_up([[*map(hash_code, c.metrics)] for c in joined.sets], "metric"),
    }


def _describe_method(comparisons: Comparisons) -> str:
    spec = comparisons.spec
    limits_exact = spec.exact_limit is not None and spec.method in {"auto", "both"}
    return f"{spec.method}:{float(spec.exact_limit or 0)!r}" if limits_exact else spec.method


def _encode_digests(bits: NDArray[np.uint64]) -> Texts:
    distinct, codes = np.unique(bits, return_inverse=True)
    return encode(map(format_hash, distinct.tolist()), codes)
