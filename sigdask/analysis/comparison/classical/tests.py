"""The classical tests of all comparisons of a test set, and why one does not fit a score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sigdask.analysis.comparison.classical import samples
from sigdask.analysis.comparison.classical.agreement import MatchedComparisons
from sigdask.analysis.comparison.classical.matched import RULES, MatchedSums
from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.counts.grouping import numbered, rows_of
from sigdask.results.columns.coded import Coded
from sigdask.results.table import ClassicalColumn, columns_joined, columns_taken

NO_RATIO = "does not fit: the score is no mean or share of items"
NOT_A_MEAN = "does not fit: the denominator depends on the system, so that the score is no sum over units"
NOT_RIGHT_OR_WRONG = "does not fit: the score is no share of single items, each right or wrong"


def tested(asked: Comparisons, names: Sequence[str], alternative: str) -> tuple[ClassicalColumn, ...]:
    """Return what some classical tests find of comparisons.

    Parameters
    ----------
    asked : Comparisons
        Of one test set, by exchange of the unit asked for.
    names : sequence of str
        The tests, in their order.
    alternative : {"two-sided", "greater", "less"}
        Of score_a - score_b.
    """
    if not names or not len(asked):
        return ()
    groups = rows_of(numbered(asked.panel, asked.metric, asked.subset.codes))
    found = [_of_group(MatchedComparisons(asked, own), names, alternative) for own in groups]
    if len(found) == 1:
        return tuple(found[0])
    back = np.argsort(np.concatenate(groups))
    return tuple(columns_taken(columns_joined(parts), back) for parts in zip(*found, strict=True))


def _of_group(alike: MatchedComparisons, names: Sequence[str], alternative: str) -> list[ClassicalColumn]:
    """Return what the tests find of comparisons that are alike."""
    is_mean = alike.ratio is not None and alike.mean is not None
    matched = (
        MatchedSums.of(alike, names, alternative) if is_mean and {*names} & {"t", "sign", "mcnemar", *RULES} else None
    )
    return [_one(alike, matched, name, alternative) for name in names]


def _one(alike: MatchedComparisons, matched: MatchedSums | None, name: str, alternative: str) -> ClassicalColumn:
    if (why := _misfit(alike, name)) is not None:
        return misfit(name, why, len(alike.rows))
    if name == "two-sample-t":
        return samples.t(alike, alternative)
    if name in samples.OF_SHARES:
        return _where_right_or_wrong(alike, samples.OF_SHARES[name](alike, alternative))
    assert matched is not None
    if name == "t":
        return matched.t(alternative)
    if name in RULES:
        return matched.wilcoxon(name)
    found = matched.sign(name, alternative)
    return found if name == "sign" else _where_right_or_wrong(alike, found)


def _misfit(alike: MatchedComparisons, name: str) -> str | None:
    """Say why a test fits none of the comparisons."""
    if alike.ratio is None:
        return NO_RATIO
    if name in {"mcnemar", *samples.OF_SHARES} and alike.unit != "item":
        return f"does not fit: it takes single items, which depend on each other within a {alike.unit}"
    return NOT_A_MEAN if name not in samples.OF_SHARES and alike.mean is None else None


def _where_right_or_wrong(alike: MatchedComparisons, found: ClassicalColumn) -> ClassicalColumn:
    """Keep what is found of systems whose items are right or wrong."""
    fits = np.logical_and(*alike.shares.fits[alike.sides])
    if fits.all():
        return found
    both = columns_joined([found, misfit(found.name, NOT_RIGHT_OR_WRONG, len(fits))])
    return columns_taken(both, np.arange(len(fits)) + np.where(fits, 0, len(fits)))


def misfit(name: str, why: str, n: int) -> ClassicalColumn:
    """Say of comparisons why a test does not fit."""
    nothing, none = np.full(n, np.nan), np.zeros(n, np.int64)
    return ClassicalColumn(name, nothing, nothing, none, none, Coded.same(why, n))
