"""Classical tests of all comparisons of a test set, with the reason where a test does not fit a score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sigdask.analysis.comparison.classical import samples
from sigdask.analysis.comparison.classical.agreement import MatchedComparisons
from sigdask.analysis.comparison.classical.matched import TESTS, MatchedSums
from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.counts.grouping import group_rows, number_rows
from sigdask.results.columns.coded import CodedColumn
from sigdask.results.table import ClassicalColumn, join_parts, take_part_rows

NO_RATIO = "does not fit: the score is no mean or share of items"
NOT_A_MEAN = "does not fit: the denominator depends on the system, so that the score is no sum over units"
NOT_RIGHT_OR_WRONG = "does not fit: the score is no share of single items, each right or wrong"


def run_tests(comparisons: Comparisons, names: Sequence[str], alternative: str) -> tuple[ClassicalColumn, ...]:
    """Return the results of some classical tests of all comparisons.

    Parameters
    ----------
    comparisons : Comparisons
        Of one test set, by exchange of the unit asked for.
    names : sequence of str
        The tests, in their order.
    alternative : {"two-sided", "greater", "less"}
        Of score_a - score_b.
    """
    if not names or not len(comparisons):
        return ()
    groups = group_rows(number_rows(comparisons.panel, comparisons.metric, comparisons.subset.codes))
    results = [_run_group(MatchedComparisons(comparisons, group), names, alternative) for group in groups]
    if len(results) == 1:
        return tuple(results[0])
    inverse = np.argsort(np.concatenate(groups))
    return tuple(take_part_rows(join_parts(columns), inverse) for columns in zip(*results, strict=True))


def _run_group(group: MatchedComparisons, names: Sequence[str], alternative: str) -> list[ClassicalColumn]:
    """Return the results of the tests for comparisons that share panel, metric and items."""
    is_mean = group.ratio is not None and group.mean is not None
    sums = MatchedSums.from_comparisons(group, names, alternative) if is_mean and {*names} & TESTS.keys() else None
    return [_run_test(group, sums, name, alternative) for name in names]


def _run_test(group: MatchedComparisons, sums: MatchedSums | None, name: str, alternative: str) -> ClassicalColumn:
    if (reason := _find_misfit(group, name)) is not None:
        return build_misfit(name, reason, len(group.rows))
    if name == "two-sample-t":
        return samples.two_sample_t(group, alternative)
    if name in samples.SHARE_TESTS:
        return _mask_unfit(group, samples.SHARE_TESTS[name](group, alternative))
    assert sums is not None
    result = TESTS[name](sums, name, alternative)
    return _mask_unfit(group, result) if name == "mcnemar" else result


def _find_misfit(group: MatchedComparisons, name: str) -> str | None:
    """Return why a test fits none of the comparisons, or None if it fits some."""
    if group.ratio is None:
        return NO_RATIO
    if name in {"mcnemar", *samples.SHARE_TESTS} and group.unit != "item":
        return f"does not fit: it takes single items, which depend on each other within a {group.unit}"
    return NOT_A_MEAN if name not in samples.SHARE_TESTS and group.mean is None else None


def _mask_unfit(group: MatchedComparisons, result: ClassicalColumn) -> ClassicalColumn:
    """Return test results in which comparisons of items that are not right or wrong have a misfit with its reason."""
    fits = np.logical_and(*group.shares.fits[group.sides])
    if fits.all():
        return result
    candidates = join_parts([result, build_misfit(result.name, NOT_RIGHT_OR_WRONG, len(fits))])
    return take_part_rows(candidates, np.arange(len(fits)) + np.where(fits, 0, len(fits)))


def build_misfit(name: str, reason: str, n: int) -> ClassicalColumn:
    """Return the column of a test that does not fit any of `n` comparisons: NaN, with the reason."""
    nans, zeros = np.full(n, np.nan), np.zeros(n, np.int64)
    return ClassicalColumn(name, nans, nans, zeros, zeros, CodedColumn.from_constant(reason, n))
