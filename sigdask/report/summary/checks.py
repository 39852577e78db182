"""The outcome of the checks on all comparisons in one line, and doubtful results."""

from __future__ import annotations

import numpy as np
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


def find_doubtful(table: Table) -> NDArray[np.int64]:
    """Return the rows that are contested, or whose verdict another seed could change, the smallest p first."""
    rows = np.flatnonzero(table.is_contested | _depends_on_seed(table))
    p = np.where(np.isnan(table.p_adjusted), table.p_value, table.p_adjusted)[rows]
    return rows[np.lexsort((-np.abs(table.difference[rows]), p))]


def _depends_on_seed(table: Table) -> NDArray[np.bool_]:
    """Return a mask of the rows whose verdict another seed could change: p's Monte Carlo interval contains alpha."""
    single = (table.p_low <= table.alpha) & (table.alpha < table.p_high) & ~table.exact
    adjusted = (table.p_adjusted_low <= table.alpha) & (table.alpha < table.p_adjusted_high)
    is_open = np.where(np.isnan(table.p_adjusted), single, adjusted)
    return np.asarray((is_open | (table.decision == -1)) & (table.n_discordant > 0))
