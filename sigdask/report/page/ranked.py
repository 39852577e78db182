"""Rankings: systems by score with their letters, each beside its difference from the best, drawn as a forest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.report.tables.cells import letters_text, p_cell
from sigdask.results.adjusted import intervals_to_show
from sigdask.results.ranking import SystemRanking, ranked, ranking_of
from sigdask.results.table import Table
from sigdask.results.views import result_views
from sigdask.statistics.letters import RankedSystem
from sigdask.statistics.rounding import score_text, signed

MOST_IN_MATRIX = 150
"""Systems up to which every pair is drawn."""

MOST_IN_RANKINGS = 5000
"""Systems listed in all rankings together, but for the first."""

WIDTH, PAD = 340, 14
"""Of the drawing of differences, and what stays free at its sides."""


@dataclass(frozen=True, slots=True)
class DifferenceMark:
    """Where a difference and the ends of its interval, if it has one, stand in the drawing."""

    at: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One system of a ranking.

    Attributes
    ----------
    rank : int
        1 for the best.
    system, score, letters : str
        As they are printed.
    difference, interval, p : str
        Of its score and that of the best, as they are printed; empty for the best.
    verdict : str
        Of the comparison with the best.
    mark : DifferenceMark or None
        Its place in the drawing.
    """

    rank: int
    system: str
    score: str
    letters: str
    difference: str = ""
    interval: str = ""
    p: str = ""
    verdict: str = ""
    mark: DifferenceMark | None = None


@dataclass(frozen=True, slots=True)
class RankingSection:
    """A ranking as the page shows it.

    Attributes
    ----------
    ranking : SystemRanking
        As found.
    places : sequence of RankedRow
        The best first.
    zero : float
        Where no difference stands in the drawing.
    ticks : sequence of (float, str)
        Of its axis.
    has_matrix : bool
        Whether the script draws every pair.
    confidence : str
        Of the intervals; empty without them.
    """

    ranking: SystemRanking
    places: Sequence[RankedRow]
    zero: float
    ticks: Sequence[tuple[float, str]]
    has_matrix: bool
    confidence: str

    @property
    def title(self) -> str:
        """What is ranked by what."""
        subset = self.ranking.subset
        return self.ranking.metric + (f" ({subset['column']} {subset['value']})" if subset else "")


def sections(table: Table, n_left: int, *, is_first: bool, all_listed: bool) -> tuple[list[RankingSection], int]:
    """Return the rankings of a test set that the page has room for, and how many it leaves out.

    Parameters
    ----------
    table : Table
        Of the test set.
    n_left : int
        Systems that there is room for.
    is_first : bool
        Whether no ranking stands before them: the first has room always.
    all_listed : bool
        Whether the page has every comparison, of which matrices are drawn.
    """
    found: list[RankingSection] = []
    n_left_out = 0
    for own in ranked(table):
        ranking = ranking_of(own)
        if n_left < len(ranking.systems) and not is_first:
            n_left_out += 1
        else:
            found.append(_section(own, ranking, all_listed=all_listed))
            n_left -= len(ranking.systems)
        is_first = False
    return found, n_left_out


def _section(table: Table, ranking: SystemRanking, *, all_listed: bool) -> RankingSection:
    """Draw each system's difference from the best."""
    found = _BestAgainstOthers.best(table, ranking.systems[0].system)
    scale = _DrawingScale.of(np.concatenate([found.difference, found.low, found.high]))
    places = [_place(own, found, scale, table.alpha) for own in ranking.systems]
    fits = all_listed and len(places) <= MOST_IN_MATRIX
    return RankingSection(ranking, places, scale.at(0.0), scale.ticks(), fits, found.confidence)


@dataclass(frozen=True, slots=True, eq=False)
class _BestAgainstOthers:
    """The comparisons of a ranking's best system with the others, each difference that of the other's score from its.

    Attributes
    ----------
    rows : mapping of str to int
        By the other system, its place in the arrays.
    difference, low, high, p : float64 array
        The ends of intervals are NaN where there is none, or no bound.
    verdicts : sequence of str
        In words.
    confidence : str
        Of the intervals; empty without them.
    """

    rows: Mapping[str, int]
    difference: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    p: NDArray[np.float64]
    verdicts: Sequence[str]
    confidence: str

    @staticmethod
    def best(table: Table, best: str) -> _BestAgainstOthers:
        """Find the comparisons with the best."""
        a, b = (np.array([name == best for name in c.values], np.bool_)[c.codes] for c in (table.a, table.b))
        own = table.take(np.flatnonzero(a | b))
        is_a = a[a | b]
        others = [own.b[k] if first else own.a[k] for k, first in enumerate(is_a.tolist())]
        low, high, confidence = _ends(own)
        return _BestAgainstOthers(
            {name: k for k, name in enumerate(others)},
            np.where(is_a, -own.difference, own.difference),
            np.where(is_a, -high, low),
            np.where(is_a, -low, high),
            np.where(np.isnan(own.p_adjusted), own.p_value, own.p_adjusted),
            [r.verdict(table.alpha) for r in result_views(own)],
            confidence,
        )


def _ends(table: Table) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    """Return the ends of intervals that have both, and how sure they are."""
    sure, kind = intervals_to_show(table)
    if sure is None:
        nothing = np.full(len(table), np.nan)
        return nothing, nothing, ""
    has = np.isfinite(sure.low) & np.isfinite(sure.high)
    found = np.unique(sure.confidence[has])
    confidence = f"{kind}{100 * found[0]:.4g} %" if len(found) else ""
    return np.where(has, sure.low, np.nan), np.where(has, sure.high, np.nan), confidence


def _place(own: RankedSystem, found: _BestAgainstOthers, scale: _DrawingScale, alpha: float) -> RankedRow:
    named = (own.rank, own.system, score_text(own.score), letters_text(own.letters))
    k = found.rows.get(own.system)
    if k is None:
        return RankedRow(*named, mark=DifferenceMark(scale.at(0.0)))
    difference, low, high = (float(column[k]) for column in (found.difference, found.low, found.high))
    has = not math.isnan(low)
    interval = f"[{signed(low)}, {signed(high)}]" if has else ""
    mark = DifferenceMark(scale.at(difference), *(map(scale.at, (low, high)) if has else ()))
    return RankedRow(*named, signed(difference), interval, p_cell(found.p[k], alpha), found.verdicts[k], mark)


@dataclass(frozen=True, slots=True)
class _DrawingScale:
    """Differences to places in the drawing."""

    low: float
    high: float

    @staticmethod
    def of(values: NDArray[np.float64]) -> _DrawingScale:
        """Make a scale that holds all of them and zero."""
        finite = np.append(values[np.isfinite(values)], 0.0)
        low, high = float(finite.min()), float(finite.max())
        return _DrawingScale(low, high) if high > low else _DrawingScale(-1.0, 1.0)

    def at(self, value: float) -> float:
        """Return a place."""
        return round(PAD + (WIDTH - 2 * PAD) * (value - self.low) / (self.high - self.low), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Return about four places of round differences, and what stands there."""
        step = _round_step((self.high - self.low) / 4)
        first, last = int(np.ceil(self.low / step)), int(np.floor(self.high / step))
        return [(self.at(k * step), f"{k * step:+.6g}" if k else "0") for k in range(first, last + 1)]


def _round_step(width: float) -> float:
    """Return 1, 2 or 5 times a power of ten, no less than a width."""
    power = 10.0 ** np.floor(np.log10(width))
    return float(next(power * k for k in (1, 2, 5, 10) if power * k >= width))
