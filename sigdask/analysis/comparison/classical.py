"""Classical tests of comparisons: which tests fit a score, the sums that they need, and their results.

Tests of matched pairs (t, sign, Wilcoxon and McNemar) take sums of the units' differences. With `unit`, items that
depend on each other are summed before they are tested (Yeh 2000, section 4), so these tests and the swaps have the same
units, such as documents or topics.

Tests that treat the two systems' scores as independent samples are shown for contrast. Scores of systems on the same
items are usually correlated (r12 above 0). These tests ignore that, and their intervals are 1 / sqrt(1 - r12) times too
wide (Yeh 2000, section 2.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.counts import Counts
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.counts.texts import Texts
from sigdask.metrics.base import AnyBound, BoundMetric
from sigdask.metrics.forms import Ratios, compute_gradients
from sigdask.randomization.panels.sums import Panel, SwapUnits
from sigdask.randomization.resampling import compute_binary_size
from sigdask.results.columns import Columns, encode, join_columns, repeat, take_rows
from sigdask.statistics.classical import (
    WILCOXON_EXACT_UP_TO,
    compute_correlations,
    compute_t,
    sign_test,
    two_proportion_z,
    wilcoxon,
)
from sigdask.statistics.dependence import SumsOfSquares
from sigdask.statistics.numbering import group_rows, number_rows

MAX_CORRELATED_NUMBERS = 2**18
"""Maximum number of item scores held at a time."""


def compute_r12(sets: Sequence[Comparisons]) -> Floats:
    """Return the correlation r12 (Yeh 2000) of each comparison of test sets, for all pairs that share items.

    NaN if its score is no mean over fixed items, or scores are constant.
    """
    starts = np.cumsum([0, *map(len, sets)]).tolist()
    result = np.full(starts[-1], np.nan)
    for comparisons, start in zip(sets, starts, strict=False):
        for group in iter_matched(comparisons):
            if isinstance(group.metric, BoundMetric) and group.mean is not None:
                result[start + group.rows] = compute_correlations(_build_score_iterator(group))[*group.sides]
    return result


def _build_score_iterator(group: MatchedComparisons) -> Callable[[], Iterator[Floats]]:
    """Return a function that yields the scores of blocks of items, shape (n_block, n_systems).

    Each score is the item's excess over the system's share of its size. If items differ in size (sentences of tokens),
    sizes alone would else make scores correlate.
    """

    def iter_blocks() -> Iterator[tuple[Floats, Floats]]:
        for above, below in group.iter_ratios():
            is_counted = (below > 0).all(axis=1)
            yield above[is_counted], below[is_counted]

    total, sizes = np.sum([[part.sum(axis=0) for part in block] for block in iter_blocks()], axis=0)
    share = total / np.where(sizes > 0, sizes, 1.0)
    return lambda: (above - below * share for above, below in iter_blocks())


MAX_NUMBERS = 2**19
"""Maximum number of unit differences held at a time."""


@dataclass(frozen=True, eq=False)
class MatchedComparisons:
    """Comparisons that share panel, metric, items and unit.

    Attributes
    ----------
    comparisons : Comparisons
        All comparisons of the test set.
    rows : int64 array, shape (n,)
        Indices of these comparisons.
    """

    comparisons: Comparisons
    rows: Integers

    @property
    def unit(self) -> str:
        """The unit that is swapped."""
        return self.comparisons.counts.unit

    @property
    def unit_text(self) -> str:
        """Text about the units, unless these are items."""
        return "" if self.unit == "item" else f", by {self.unit}"

    @cached_property
    def metric(self) -> AnyBound:
        """The metric."""
        return self.comparisons.metrics[int(self.comparisons.metric[self.rows[0]])]

    @property
    def form(self) -> Ratios:
        """The form of a metric of ratios."""
        assert isinstance(self.metric, BoundMetric)
        assert isinstance(self.metric.form, Ratios)
        return self.metric.form

    @property
    def is_ratio(self) -> bool:
        """Whether the score is a single ratio of sums."""
        metric = self.metric
        is_form = isinstance(metric, BoundMetric) and isinstance(metric.form, Ratios)
        return is_form and len(self.form.numerators) == 1

    @cached_property
    def mean(self) -> tuple[Panel, int] | None:
        """The panel and the metric's column in it, or None if the score is not a mean with a fixed denominator."""
        panel = self.comparisons.panels[int(self.comparisons.panel[self.rows[0]])]
        column = int(self.comparisons.column[self.rows[0]])
        return (panel, column) if isinstance(panel, Panel) and panel.is_mean(column) else None

    @cached_property
    def systems(self) -> Integers:
        """Indices of all systems compared, shape (n_systems,)."""
        return np.union1d(self.comparisons.a[self.rows], self.comparisons.b[self.rows]).astype(np.int64)

    @cached_property
    def sides(self) -> Integers:
        """The two systems of each comparison, as indices of `systems`, shape (2, n)."""
        side_systems = np.stack([self.comparisons.a[self.rows], self.comparisons.b[self.rows]])
        return np.searchsorted(self.systems, side_systems)

    @cached_property
    def items(self) -> Integers:
        """Indices of the items that all these systems have, shape (n_items,)."""
        mask = self.comparisons.masks[int(self.comparisons.subset[self.rows[0]])]
        return np.flatnonzero(self.comparisons.counts.in_common(self.systems.tolist(), mask, self.metric.held))

    def iter_ratios(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield numerators and denominators of blocks of items under a metric of one ratio, (n_block, n_systems)."""
        assert isinstance(self.metric, BoundMetric)
        fields = [self.metric.get_field(name, self.comparisons.counts) for name in self.metric.fields]
        n_blocks = 1 + len(self.items) * len(self.systems) // MAX_CORRELATED_NUMBERS
        for items in np.array_split(self.items, n_blocks):
            sums = np.zeros((2, len(items), len(self.systems)))
            for values, *weights in zip(fields, self.form.numerators[0], self.form.denominators[0], strict=True):
                selected = values[items] if values.shape[1] == 1 else values[items][:, self.systems]
                for k in np.flatnonzero(weights):
                    sums[k] += weights[k] * selected
            yield sums[0], sums[1]

    @cached_property
    def shares(self) -> tuple[Floats, Floats, Bools]:
        """Right items and all items of each system, and whether each of its items is right or wrong, (n_systems,)."""
        n = len(self.systems)
        n_right, n_items, fits = np.zeros(n), np.zeros(n), np.ones(n, np.bool_)
        for above, below in self.iter_ratios():
            is_share = ((above == 0) | (above == below)) & ((below == 0) | (below == 1))
            fits &= is_share.all(axis=0)
            n_right, n_items = n_right + above.sum(axis=0), n_items + below.sum(axis=0)
        return np.where(fits, n_right, 0.0), n_items, fits

    def sum_units(self, systems: Integers) -> tuple[Floats, Floats]:
        """Return numerators and denominators of units under a metric of one ratio, (n_units, n_systems) each."""
        assert isinstance(self.metric, BoundMetric)
        _, index = np.unique(self.comparisons.units.index[self.items], return_inverse=True)
        sums = sum_units(self.comparisons.counts, self.metric, systems, self.items, index)
        return sums @ np.array(self.form.numerators[0]), sums @ np.array(self.form.denominators[0])

    @cached_property
    def n_units(self) -> int:
        """Number of units that the denominator, which is the same for all systems, counts."""
        return int(np.count_nonzero(self.sum_units(self.systems[:1])[1]))

    def iter_differences(self) -> Iterator[UnitDifferences]:
        """Yield the units' differences of some comparisons after others, in the panel's steps."""
        assert self.mean is not None
        panel, column = self.mean
        pairs = panel.pairs[self.comparisons.row[self.rows]]
        metric_fields = list(panel.metrics[column].fields)
        sizes = panel.values[:, 0, metric_fields] @ np.array(panel.get_ratio(column).denominators[0])
        empty = np.flatnonzero(sizes == 0)  # units that the denominator does not count: references without a word
        step = float(panel.count_slack_steps(column) * panel.sizes.max(initial=0))
        n_together = max(1, MAX_NUMBERS // max(len(panel.values), 1))
        for start in range(0, len(pairs), n_together):
            systems, indices = np.unique(pairs[start : start + n_together], return_inverse=True)
            i, j = indices.reshape(-1, 2).T
            above = panel.compute_numerators(column, panel.values[:, systems]).astype(np.float64)
            by_system = np.ascontiguousarray(above.T)  # (n_systems, n_kept)
            d = by_system[i] - by_system[j]
            yield UnitDifferences(d, self.n_units + (np.abs(d[:, empty]) > step).sum(axis=1), step, self.unit_text)


def iter_matched(comparisons: Comparisons) -> Iterator[MatchedComparisons]:
    """Yield the comparisons of a test set in groups that share panel, metric and items."""
    for rows in group_rows(number_rows(comparisons.panel, comparisons.metric, comparisons.subset)):
        yield MatchedComparisons(comparisons, rows)


FREEDOM = "n - 1 degrees of freedom"
CONSTANT = "not defined: all differences are the same"
NO_DIFFERENCE = "no unit is discordant"
TOO_FEW = "fewer than 2 units"


@dataclass(frozen=True, slots=True, eq=False)
class UnitDifferences:
    """The units' differences of some matched comparisons.

    Attributes
    ----------
    values : float64 array, shape (n, n_kept)
        Differences; those of other units are 0.
    n_units : int64 array, shape (n,)
        Units that the denominator counts, or that differ.
    step : float
        Absolute differences that differ by at most this much are equal.
    unit_text : str
        Text about the units, unless these are items.
    """

    values: Floats
    n_units: Integers
    step: float
    unit_text: str


def student_t(differences: UnitDifferences, alternative: str) -> Columns:
    """Test the mean difference with Student's t-test."""
    d, n = differences.values, differences.n_units
    total = d.sum(axis=1)
    mean = total / np.maximum(n, 1)
    squares = ((d - mean[:, None]) ** 2).sum(axis=1) + (n - d.shape[1]) * mean**2
    t, p = compute_t(total, np.maximum(squares, 0), n, n - 1, alternative, min_deviation=differences.step)
    words = FREEDOM + differences.unit_text, CONSTANT, NO_DIFFERENCE, TOO_FEW
    codes = np.select([n < 2, ~np.isnan(t), p == 1], [3, 0, 2], 1)
    n = np.where(np.isnan(p), 0, n)
    return build_test(t, p, n, np.zeros_like(n), encode(words, codes))


def count_signs(differences: UnitDifferences, alternative: str) -> Columns:
    """Test whether A wins as many units as it loses; for single 0/1 items this is McNemar's test."""
    wins, losses = ((sign * differences.values > differences.step).sum(axis=1) for sign in (1, -1))
    n = wins + losses
    words = f"exact; {{dropped}} units of equal scores left out{differences.unit_text}"
    p = sign_test(wins, losses, alternative)
    return build_test(wins.astype(np.float64), p, n, differences.n_units - n, repeat(words, len(n)))


def rank_differences(differences: UnitDifferences, alternative: str) -> Columns:
    """Test with Wilcoxon's signed-rank test."""
    ranks = wilcoxon(differences.values, alternative, differences.step)
    zeros = f"{{dropped}} zeros dropped before ranking{differences.unit_text}"
    most = WILCOXON_EXACT_UP_TO
    words = (
        f"exact, ties share their ranks; {zeros}",
        f"normal approximation for more than {most} ranks, its variance that of the tied ranks; {zeros}",
    )
    codes = (ranks.n > most).astype(np.int32)
    n_dropped = differences.n_units - ranks.n
    return build_test(ranks.statistic, ranks.p_value, ranks.n, n_dropped, encode(words, codes))


def build_test(statistic: Floats, p_value: Floats, n: Integers, n_dropped: Integers, detail: Texts) -> Columns:
    """Return the columns of one classical test.

    Parameters
    ----------
    statistic, p_value : float64 array, shape (n_comparisons,)
        NaN where there is none.
    n, n_dropped : int64 array, shape (n_comparisons,)
        Number of observations, of both samples if there are two (0 if the test does not apply), and of units without a
        difference, which are dropped.
    detail : Texts
        How it was computed, or why it does not fit the score, with "{dropped}" for `n_dropped`.
    """
    return {"statistic": statistic, "p_value": p_value, "n": n, "n_dropped": n_dropped, "detail": detail}


TESTS: dict[str, Callable[[UnitDifferences, str], Columns]] = {
    "t": student_t,
    "sign": count_signs,
    "wilcoxon": rank_differences,
    "mcnemar": count_signs,
}
"""Tests of matched pairs, by the names in `sigdask.options.MATCHED_TESTS`."""


FEWEST = 5
"""Minimum expected count of right or wrong items in each cell for the normal approximation."""

SAMPLES_FREEDOM = "pooled variance, n - 2 degrees of freedom"
NO_SPREAD = "not defined: scores do not vary"
SHARES = "z of the difference of two shares"
ALL_ALIKE = "all items are alike"
NO_ITEMS = "does not apply: a system has no item that counts"


def two_sample_t(matched: MatchedComparisons, alternative: str) -> Columns:
    """Test the difference of two means with Student's two-sample t-test."""
    (a, b), (above, below), n_units = matched.sides, matched.sum_units(matched.systems), matched.n_units
    above = above / compute_binary_size(above)  # so that squares stay within range
    totals = above.sum(axis=0)
    squares = ((above - totals / below.sum(axis=0) * below) ** 2).sum(axis=0)
    total, square = totals[a] - totals[b], squares[a] + squares[b]
    statistic, p = compute_t(total, square, n_units, n_units - 1, alternative, samples=2)
    codes = np.isnan(statistic)
    n = np.where(np.isnan(p), 0, 2 * n_units)
    words = SAMPLES_FREEDOM + matched.unit_text, NO_SPREAD
    return build_test(statistic, p, n, np.zeros_like(n), encode(words, codes))


def compare_shares(matched: MatchedComparisons, alternative: str) -> Columns:
    """Test the difference of two shares of right items by the normal approximation."""
    (a, b), (n_right, n_items, _) = matched.sides, matched.shares
    z, p = two_proportion_z(n_right[a], n_items[a], n_right[b], n_items[b], alternative)
    all_right, all_items = n_right[a] + n_right[b], n_items[a] + n_items[b]
    smaller = np.minimum(n_items[a], n_items[b])
    expected = smaller * np.minimum(all_right, all_items - all_right) / np.maximum(all_items, 1)
    codes = np.select([np.isnan(p), np.isnan(z), expected < FEWEST], [3, 2, 1], 0)
    n = np.where(np.isnan(p), 0, all_items).astype(np.int64)
    words = (
        SHARES,
        f"{SHARES}; a poor approximation, as fewer than {FEWEST} are expected in a cell",
        ALL_ALIKE,
        NO_ITEMS,
    )
    return build_test(z, p, n, np.zeros_like(n), encode(words, codes))


INDEPENDENT = {"two-sample-t": two_sample_t, "binomial": compare_shares}
"""Tests of independent samples."""

NO_RATIO = "does not apply: the score is not a mean or share over items"
NOT_A_MEAN = "does not apply: the denominator depends on the system, so the score is not a sum over units"
NOT_RIGHT_OR_WRONG = "does not apply: it needs items that are right or wrong (scores of 0 and 1)"


def run_tests(comparisons: Comparisons) -> tuple[Columns, ...]:
    """Return the results of the requested classical tests of all comparisons of a test set, in their order."""
    names, alternative = comparisons.spec.tests, comparisons.spec.alternative
    if not names or not len(comparisons):
        return ()
    groups = [*iter_matched(comparisons)]
    order = np.argsort(np.concatenate([group.rows for group in groups]))
    results = (join_columns([_run_test(group, name, alternative) for group in groups]) for name in names)
    return tuple(take_rows(result, order) for result in results)


def _run_test(group: MatchedComparisons, name: str, alternative: str) -> Columns:
    """Return the results of a test for comparisons that share panel, metric and items."""
    if (reason := _find_misfit(group, name)) is not None:
        return build_misfit(reason, len(group.rows))
    if name in INDEPENDENT:
        result = INDEPENDENT[name](group, alternative)
    else:
        result = join_columns([TESTS[name](d, alternative) for d in group.iter_differences()])
    return _mask_unfit(group, result) if name in {"mcnemar", "binomial"} else result


def _find_misfit(group: MatchedComparisons, name: str) -> str | None:
    """Return why a test fits none of the comparisons, or None if it fits some."""
    if not group.is_ratio:
        return NO_RATIO
    if name in {"mcnemar", "binomial"} and group.unit != "item":
        return f"does not apply: it takes single items, and these depend on each other within a {group.unit}"
    return NOT_A_MEAN if name != "binomial" and group.mean is None else None


def _mask_unfit(group: MatchedComparisons, result: Columns) -> Columns:
    """Return test results in which comparisons of items that are not right or wrong have a misfit with its reason."""
    fits = np.logical_and(*group.shares[2][group.sides])
    if fits.all():
        return result
    candidates = join_columns([result, build_misfit(NOT_RIGHT_OR_WRONG, len(fits))])
    return take_rows(candidates, np.arange(len(fits)) + np.where(fits, 0, len(fits)))


def build_misfit(reason: str, n: int) -> Columns:
    """Return the column of a test that does not fit any of `n` comparisons: NaN, with the reason."""
    nans, zeros = np.full(n, np.nan), np.zeros(n, np.int64)
    return build_test(nans, nans, zeros, zeros, repeat(reason, n))


MAX_UNIT_SUMS, MAX_PAIRS = 2**24, 2**12
"""Maximum numbers of unit sums and of pairs of systems held at a time."""


def find_coarser_columns(counts: Counts, units: SwapUnits) -> dict[str, Integers]:
    """Return the group of each unit in columns whose groups contain whole units, fewer than there are units."""
    columns = {}
    for column in counts.groups:
        group = counts.group(column)
        group_of_unit, ranks = np.zeros(units.n_units, np.int64), group.ranks
        group_of_unit[units.index] = ranks
        is_whole = (group_of_unit[units.index] == ranks).all()
        if column != counts.unit and is_whole and 2 <= len(group.levels) < units.n_units:
            columns[column] = group_of_unit
    return columns


DEPENDENCE = ("icc", "design_effect", "p_value")
"""Numbers about how differences correlate within groups, NaN where they are undefined."""


def compute_unit_correlations(comparisons: Comparisons) -> dict[str, Columns]:
    """Return, for each coarser column, how units' differences correlate within its groups; only for scores of sums."""
    n, n_units = len(comparisons), comparisons.units.n_units
    levels = find_coarser_columns(comparisons.counts, comparisons.units)
    found: dict[str, Columns] = {}
    for group in iter_matched(comparisons) if levels else ():
        if not isinstance(group.metric, BoundMetric):
            continue
        step = int(np.clip(MAX_UNIT_SUMS // (2 * n_units * len(group.metric.fields)), 1, MAX_PAIRS))
        for start in range(0, len(group.rows), step):
            tile = replace(group, rows=group.rows[start : start + step])
            for column, n_groups, dependence in _test_levels(tile, group.metric, levels):
                full = found.setdefault(
                    column, {"n_groups": np.zeros(n, np.int64), **{name: np.full(n, np.nan) for name in DEPENDENCE}}
                )
                full["n_groups"][tile.rows[~np.isnan(dependence[-1])]] = n_groups
                for name, values in zip(DEPENDENCE, dependence, strict=True):
                    full[name][tile.rows] = values
    return found


def _test_levels(
    group: MatchedComparisons, metric: BoundMetric, levels: Mapping[str, Integers]
) -> Iterator[tuple[str, int, tuple[Floats, Floats, Floats]]]:
    """Yield each coarser column, its number of groups, and how differences correlate within them."""
    counts, (i, j) = group.comparisons.counts, group.sides
    unit_ids, index = np.unique(group.comparisons.units.index[group.items], return_inverse=True)
    sums = sum_units(counts, metric, group.systems, group.items, index)  # (n_units, n_systems, n_fields)
    totals = sums.sum(axis=0)
    slopes = compute_gradients(metric.form, (totals[i] + totals[j]) / 2)  # of one unit's contribution to the difference
    fields = np.arange(len(metric.fields))
    columns = np.concatenate([side[:, None] * len(fields) + fields for side in (i, j)], axis=1)
    weights = np.concatenate([slopes, -slopes], axis=1)
    for column, unit_groups in levels.items():
        _, groups = np.unique(unit_groups[unit_ids], return_inverse=True)
        grams = SumsOfSquares.from_values(sums.reshape(len(sums), -1), groups, np.bincount(index))
        yield column, len(grams.sizes), grams.compute_dependence(columns, weights)


def sum_units(
    counts: Counts, metric: BoundMetric, systems: NDArray[np.integer[Any]], items: Integers, index: Integers
) -> Floats:
    """Return each unit's sums of the metric's fields over its items, shape (n_units, n_systems, n_fields).

    Parameters
    ----------
    counts : Counts
        The test set.
    metric : BoundMetric
        Metric whose fields are summed.
    systems : int array, shape (n_systems,)
        Systems to sum.
    items : int64 array, shape (n_kept,)
        Items that count.
    index : int64 array, shape (n_kept,)
        The unit of each item, 0 to n_units - 1. No unit is empty.
    """
    order = np.argsort(index, kind="stable")
    starts = np.searchsorted(index[order], np.arange(index.max(initial=-1) + 1))
    sums = np.empty((len(starts), len(systems), len(metric.fields)))
    for f, name in enumerate(metric.fields):
        values = metric.get_field(name, counts)
        selected = values if values.shape[1] == 1 else values[:, systems]
        sums[:, :, f] = np.add.reduceat(selected[items[order]].astype(np.float64), starts, axis=0)
    return sums
