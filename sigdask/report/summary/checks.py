"""What was checked, and how it came out: a line of all comparisons."""

from __future__ import annotations

import numpy as np

from sigdask.report.summary.groups import joined
from sigdask.results.table import AGREES, DISAGREES, Table

NAMES = {"second run": "second run", "sign test": "sign test", "exact value": "exact p"}
"""Checks as a line names them."""


def line(table: Table) -> str:
    """Return what was checked of these comparisons, in a line.

    Parameters
    ----------
    table : Table
        The comparisons.
    """
    found = {name: _counts(checked.verdict) for name, checked in table.checks.items()}
    wrong = int(np.count_nonzero(table.disagrees))
    if wrong:
        bad = [f"{NAMES.get(name, name)} in {n:,} of {n + m:,}" for name, (m, n) in found.items() if n]
        return f"a check DISAGREES ({', '.join(bad)}): do not use these p-values; run `sigdask verify` and report this"
    good = [_agreeing(NAMES.get(name, name), m, len(table)) for name, (m, _) in found.items() if m]
    if good:
        return f"{joined(good)} {'agree' if len(good) > 1 else 'agrees'}"
    if len(table) and table.exact.all():
        return "every p is exact, of all arrangements: there are no trials to check"
    return "nothing was checked: no second run was asked for, and no exact p is known"


def _counts(verdict: np.ndarray) -> tuple[int, int]:
    return int(np.count_nonzero(verdict == AGREES)), int(np.count_nonzero(verdict == DISAGREES))


def _agreeing(name: str, n: int, of: int) -> str:
    return name if n == of else f"{name} ({n:,} of {of:,})"
