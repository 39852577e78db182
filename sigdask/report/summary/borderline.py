"""Borderline results: comparisons whose verdict a different seed, or a few more or fewer units, could change."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sigdask.results.table import Table

FEW = 2
"""Units of usual weight that are few: two more or fewer, or one whose winner is the other system."""


def close(table: Table) -> NDArray[np.int64]:
    """Return the rows whose verdict is close, the closest first: those of the fewest units, then of the smallest p."""
    units = units_to_turn(table)
    rows = np.flatnonzero(_turned_by_seed(table) | (units <= FEW))
    return rows[np.lexsort((np.nan_to_num(table.p_value[rows], nan=1.0), units[rows]))]


SEED, UNITS = "a different seed", "two more units"
CAUSES = (SEED, UNITS, f"{SEED} or {UNITS}")


def causes(table: Table, rows: NDArray[np.int64]) -> list[str]:
    """Return what could change the verdict of some borderline rows: a seed that of no exact p."""
    some = table.take(rows)
    by_seed, by_units = _turned_by_seed(some), units_to_turn(some) <= FEW
    return [
        CAUSES[2 if seed and units else 1 - seed]
        for seed, units in zip(by_seed.tolist(), by_units.tolist(), strict=True)
    ]


def all_causes(found: Iterable[str]) -> str:
    """Return what could change the verdict of some of several results.

    Examples
    --------
    >>> all_causes(["two more units"]), all_causes(["two more units", "a different seed"])
    ('two more units', 'a different seed or two more units')
    """
    distinct = set(found)
    return distinct.pop() if len(distinct) == 1 else CAUSES[2]


def units_to_turn(table: Table) -> NDArray[np.float64]:
    """Return how many units of usual weight would bring each p to where the verdict turns, about.

    Under shuffles the difference has a variance that is the sum of its units' squares, so that one more unit of usual
    weight (their root mean square) shifts the standardised difference by 1 / sqrt(n) of n units that differ. Of an
    adjusted p the shift is held against the level that p alone has to reach, as far as its adjustment tells: alpha
    times p over adjusted p. Infinite where no unit differs, where so few units as there would be cannot reach the
    level, and where there is no p.
    """
    p = table.p_value
    sides = np.where([value == "two-sided" for value in table.alternative.values], 2.0, 1.0)[table.alternative.codes]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(np.isnan(table.p_adjusted) | (table.p_adjusted == 0), 1.0, p / table.p_adjusted)
        level = table.alpha * share
        shift = np.abs(special.ndtri(p / sides) - special.ndtri(level / sides))
    units = shift * np.sqrt(table.n_discordant)
    least = np.ldexp(sides, -np.minimum(table.n_discordant + FEW, 1000).astype(np.int32))
    known = (table.n_discordant > 0) & (least <= level)
    return np.where(known & ~np.isnan(units), units, np.inf)


def _turned_by_seed(table: Table) -> NDArray[np.bool_]:
    """Return where the interval of what endless trials would give holds alpha, of the p that the verdict is of."""
    single = (table.p_low <= table.alpha) & (table.alpha < table.p_high) & ~table.exact
    adjusted = (table.p_adjusted_low <= table.alpha) & (table.alpha < table.p_adjusted_high)
    known = np.where(np.isnan(table.p_adjusted), single, adjusted)
    return np.asarray((known | (table.decision == -1)) & (table.n_discordant > 0))
