"""Rankings: systems by score with their letters, each beside its difference from the best, drawn as a forest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.found.ranking import Ranking, ranked, ranking_of
from sigdask.comparison.presented.cells import letters_text, p_cell, score_text, signed
from sigdask.comparison.table import Table

MOST_IN_MATRIX = 150
"""Systems up to which every pair is drawn."""

MOST_IN_RANKINGS = 5000
"""Systems listed in all rankings together, but for the first."""

WIDTH, PAD = 240, 6
"""Of the drawing of differences, and what stays free at its sides."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a difference and the ends of its interval stand in the drawing; an arrow where an end is beyond it."""

    at: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Place:
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
    mark : Mark or None
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
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A ranking as the page shows it.

    Attributes
    ----------
    ranking : Ranking
        As found.
    places : sequence of Place
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

    ranking: Ranking
    places: Sequence[Place]
    zero: float
    ticks: Sequence[tuple[float, str]]
    has_matrix: bool
    confidence: str

    @property
    def title(self) -> str:
        """What is ranked by what."""
        subset = self.ranking.subset
        return self.ranking.metric + (f" ({subset['column']} {subset['value']})" if subset else "")


def sections(table: Table, n_left: int, *, all_listed: bool) -> tuple[list[Section], int]:
    """Return the rankings of a test set that the page has room for, and how many it leaves out.

    Parameters
    ----------
    table : Table
        Of the test set.
    n_left : int
        Systems that there is room for.
    all_listed : bool
        Whether the page has every comparison, of which matrices are drawn.
    """
    found: list[Section] = []
    n_left_out = 0
    for own in ranked(table):
        ranking = ranking_of(own)
        n_left -= len(ranking.systems)
        if n_left < 0 and found:
            n_left_out += 1
        else:
            found.append(_section(own, ranking, all_listed=all_listed))
    return found, n_left_out


def _section(table: Table, ranking: Ranking, *, all_listed: bool) -> Section:
    """Draw each system's difference from the best."""
    best = ranking.systems[0].system
    rows, signs = _against(table, best)
    difference = signs * table.difference[rows]
    low, high = _ends(table, rows, signs)
    scale = _Scale.of(np.concatenate([difference, low, high]))
    verdicts = [r.verdict(table.alpha) for r in table.take(rows).results()]
    p = np.where(np.isnan(table.p_adjusted), table.p_value, table.p_adjusted)[rows].tolist()
    others = {table.b[row] if table.a[row] == best else table.a[row]: k for k, row in enumerate(rows.tolist())}
    places = []
    for own in ranking.systems:
        k = others.get(own.system)
        named = (own.rank, own.system, score_text(own.score), letters_text(own.letters))
        if k is None:
            places.append(Place(*named, mark=Mark(scale.at(0.0), None, None)))
            continue
        has = bool(np.isfinite(low[k]) and np.isfinite(high[k]))
        places.append(
            Place(
                *named,
                signed(float(difference[k])),
                f"[{signed(float(low[k]))}, {signed(float(high[k]))}]" if has else "",
                p_cell(p[k], table.alpha),
                verdicts[k],
                Mark(
                    scale.at(float(difference[k])),
                    scale.at(float(low[k])) if has else None,
                    scale.at(float(high[k])) if has else None,
                ),
            )
        )
    sure = table.intervals
    confidence = f"{100 * sure.confidence[rows[0]]:.4g} %" if sure is not None and len(rows) else ""
    fits = all_listed and len(places) <= MOST_IN_MATRIX
    return Section(ranking, places, scale.at(0.0), scale.ticks(), fits, confidence)


def _against(table: Table, best: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the rows of a system's comparisons, and the sign that makes of A - B the other's score less its own."""
    is_a = np.array([name == best for name in table.a.values], np.bool_)[table.a.codes]
    is_b = np.array([name == best for name in table.b.values], np.bool_)[table.b.codes]
    rows = np.flatnonzero(is_a | is_b)
    return rows, np.where(is_a[rows], -1.0, 1.0)


def _ends(
    table: Table, rows: NDArray[np.int64], signs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the intervals of these differences."""
    sure = table.intervals
    if sure is None:
        nothing = np.full(len(rows), np.nan)
        return nothing, nothing
    low, high = sure.low[rows], sure.high[rows]
    return np.where(signs < 0, -high, low), np.where(signs < 0, -low, high)


@dataclass(frozen=True, slots=True)
class _Scale:
    """Differences to places in the drawing."""

    low: float
    high: float

    @staticmethod
    def of(values: NDArray[np.float64]) -> _Scale:
        """Make a scale that holds all of them and zero."""
        finite = np.append(values[np.isfinite(values)], 0.0)
        low, high = float(finite.min()), float(finite.max())
        return _Scale(low, high) if high > low else _Scale(-1.0, 1.0)

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
