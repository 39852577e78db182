"""The outcome of the checks on all comparisons, in one line."""

from __future__ import annotations

import numpy as np

from sigdask.report.summary.groups import join_phrases
from sigdask.results.table import AGREES, DISAGREES, Table

NAMES = {"second run": "second run", "sign test": "sign test", "exact value": "exact p"}
"""Checks as a line names them."""


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
        return "every p is exact, of all arrangements: there are no trials to check"
    return "nothing was checked: no second run was asked for, and no exact p is known"


def _count_outcomes(verdict: np.ndarray) -> tuple[int, int]:
    return int(np.count_nonzero(verdict == AGREES)), int(np.count_nonzero(verdict == DISAGREES))


def _describe_agreement(name: str, n: int, total: int) -> str:
    return name if n == total else f"{name} ({n:,} of {total:,})"
