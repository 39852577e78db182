"""The outcome of the checks on all comparisons in one line, and borderline results.

A borderline result is a comparison whose verdict a different seed, or a few units more or less, could change.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy
from numpy.typing import NDArray

from sigdask.report.summary.standings import join_phrases
from sigdask.results.table import AGREES, DISAGREES, Table

NAMES = {"second run": "second run", "sign test": "sign test", "exact value": "exact p"}
"""Names of checks within a sentence."""


MEANINGS = {
    "second run": "the same test with other random numbers, whose p must agree up to chance",
    "sign test": "an exact test that equals this one if units are scored 0 or 1",
    "exact value": "p over all arrangements, without random numbers",
}
"""What each check compares the p-values with."""


def explain_checks(table: Table) -> list[str]:
    """Return a phrase for each check, on what it compares the p-values with."""
    return [
        f"{NAMES.get(name, name)}: {MEANINGS[name]}"
        for name, checked in table.checks.items()
        if name in MEANINGS and any(_count_outcomes(checked.verdict))
    ]


def describe_checks(table: Table) -> str:
    """Return a line on the checks of these comparisons: which were made, and how they came out.

    Parameters
    ----------
    table : Table
        The comparisons.
    """
    counts = {name: _count_outcomes(checked.verdict) for name, checked in table.checks.items()}
    wrong = int(np.count_nonzero(table.has_disagreement))
    if wrong:
        bad = [f"{NAMES.get(name, name)} in {n:,} of {n + m:,}" for name, (m, n) in counts.items() if n]
        return f"a check DISAGREES ({', '.join(bad)}): do not use these p-values; run `sigdask verify` and report this"
    good = [_describe_agreement(NAMES.get(name, name), m, len(table)) for name, (m, _) in counts.items() if m]
    if good:
        return f"{join_phrases(good)} {'agree' if len(good) > 1 else 'agrees'}"
    if len(table) and table.exact.all():
        return "every p is exact (over all swaps), so there are no random trials to check"
    return "nothing was checked: there was no second run, and no exact p is known"


def _count_outcomes(verdict: np.ndarray) -> tuple[int, int]:
    return int(np.count_nonzero(verdict == AGREES)), int(np.count_nonzero(verdict == DISAGREES))


def _describe_agreement(name: str, n: int, total: int) -> str:
    return name if n == total else f"{name} ({n:,} of {total:,} comparisons)"


FEW_UNITS = 2
"""A verdict that changes with so few units of typical weight is borderline: two units more or fewer, or one with the
other winner.
"""


def find_borderline(table: Table) -> NDArray[np.int64]:
    """Return the rows whose verdicts the fewest units or another seed could change, the closest first."""
    units = estimate_units_to_turn(table)
    rows = np.flatnonzero(_depends_on_seed(table) | (units <= FEW_UNITS))
    return rows[np.lexsort((np.nan_to_num(table.p_value[rows], nan=1.0), units[rows]))]


SEED, UNITS = "a different seed", "two more units"
CAUSES = (SEED, UNITS, f"{SEED} or {UNITS}")


def list_causes(table: Table, rows: NDArray[np.int64]) -> list[str]:
    """Return, for each borderline row, text on what could change its verdict: a seed, units or both."""
    selected = table.take(rows)
    by_seed, by_units = _depends_on_seed(selected), estimate_units_to_turn(selected) <= FEW_UNITS
    return [
        CAUSES[2 if seed and units else 1 - seed]
        for seed, units in zip(by_seed.tolist(), by_units.tolist(), strict=True)
    ]


def merge_causes(cause_texts: Iterable[str]) -> str:
    """Return text on what could change the verdicts of several results, given the text on each.

    Examples
    --------
    >>> merge_causes(["two more units"]), merge_causes(["two more units", "a different seed"])
    ('two more units', 'a different seed or two more units')
    """
    distinct = set(cause_texts)
    return distinct.pop() if len(distinct) == 1 else CAUSES[2]


def estimate_units_to_turn(table: Table) -> NDArray[np.float64]:
    """Return an estimate for each row of how many more units of usual size would change its verdict.

    Under swaps, the variance of the difference is the sum of its units' squares. So with n differing units, one more of
    usual weight (their root mean square) shifts the standardised difference by 1 / sqrt(n). For an adjusted p, the
    shift is compared with the level that p alone has to reach: about alpha times p over adjusted p. Infinite if no unit
    differs, if so few units cannot reach the level, or if there is no p.
    """
    p = table.p_value
    sides = np.where([value == "two-sided" for value in table.alternative.values], 2.0, 1.0)[table.alternative.codes]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(np.isnan(table.p_adjusted) | (table.p_adjusted == 0), 1.0, p / table.p_adjusted)
        level = table.alpha * share
        shift = np.abs(scipy.special.ndtri(p / sides) - scipy.special.ndtri(level / sides))
    units = shift * np.sqrt(table.n_discordant)
    min_p = np.ldexp(sides, -np.minimum(table.n_discordant + FEW_UNITS, 1000).astype(np.int32))
    is_reachable = (table.n_discordant > 0) & (min_p <= level)
    return np.where(is_reachable & ~np.isnan(units), units, np.inf)


def _depends_on_seed(table: Table) -> NDArray[np.bool_]:
    """Return a mask of the rows whose verdict another seed could change: p's Monte Carlo interval contains alpha."""
    single = (table.p_low <= table.alpha) & (table.alpha < table.p_high) & ~table.exact
    adjusted = (table.p_adjusted_low <= table.alpha) & (table.alpha < table.p_adjusted_high)
    is_open = np.where(np.isnan(table.p_adjusted), single, adjusted)
    return np.asarray((is_open | (table.decision == -1)) & (table.n_discordant > 0))
