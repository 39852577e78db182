"""What a prompt shows of results: a short table, and a line of a single one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sigdask.comparison.found.assumptions import short_doubt
from sigdask.statistics.rounding import limits_text, p_equals, p_text, score_text, signed

if TYPE_CHECKING:
    from sigdask.comparison.found.result import Result

SHOWN = 10
"""Comparisons of a table; of more the first, and how many there are."""

LEFT = frozenset({"test set", "subset", "A", "B", "metric", ""})
"""Headers of columns that stand to the left."""


def table_text(found: Sequence[Result], alpha: float, n_results: int, scope: Sequence[str] = ()) -> str:
    """Return a short table of comparisons.

    Parameters
    ----------
    found : sequence of Result
        The first of them.
    alpha : float
        Level of the verdicts.
    n_results : int
        How many there are.
    scope : sequence of str
        What is scored and what is not, which stands first.
    """
    title = f"Results: {n_results:,} {'comparison' if n_results == 1 else 'comparisons'}, alpha {alpha:g}"
    if not found:
        return title
    columns = {name: column for name, column in _columns(found, alpha).items() if any(column)}
    widths = {name: max(len(name), *map(len, column)) for name, column in columns.items()}
    rows = [[*columns], *zip(*columns.values(), strict=True)]
    lines = ["  ".join(map(_filled, row, columns, widths.values())).rstrip() for row in rows]
    more = [f"and {n_results - len(found):,} more"] if n_results > len(found) else []
    return "\n".join([*map(_plain, scope), title, *lines, *more])


def line_text(r: Result) -> str:
    """Return a line that tells a comparison.

    Parameters
    ----------
    r : Result
        The comparison.
    """
    where = [_plain(part) for part in (r.test_set, _subset(r)) if part]
    p = f"p in {limits_text(*r.p_interval)}" if math.isnan(r.p_value) else p_equals(r.p_value)
    adjusted = [] if r.p_adjusted is None or math.isnan(r.p_adjusted) else [f"adjusted {p_equals(r.p_adjusted)}"]
    scores = f"{_plain(r.metric)} {_score(r.score_a)} - {_score(r.score_b)} = {_score(r.difference, '+')}"
    doubt = [text] if (text := _doubt(r)) else []
    return f"Result({', '.join([*where, f'{_plain(r.a)} - {_plain(r.b)}', scores, p, *adjusted, *doubt])})"


def _doubt(r: Result) -> str:
    return _plain(short_doubt(r.assumptions, r.n_units, r.unit))


def _columns(found: Sequence[Result], alpha: float) -> dict[str, list[str]]:
    adjusted = any(r.p_adjusted is not None for r in found)
    return {
        "test set": [_plain(r.test_set) for r in found],
        "subset": [_plain(_subset(r)) for r in found],
        "A": [_plain(r.a) for r in found],
        "B": [_plain(r.b) for r in found],
        "metric": [_plain(r.metric) for r in found],
        "score A": [_score(r.score_a) for r in found],
        "score B": [_score(r.score_b) for r in found],
        "A - B": [_score(r.difference, "+") for r in found],
        "unadjusted p" if adjusted else "p": [_p(r.p_value, alpha) for r in found],
        "adjusted p": [_p(r.p_adjusted, alpha) for r in found],
        "": [", but ".join(filter(None, [r.verdict(alpha), _doubt(r)])) for r in found],
    }


def _score(score: float, sign: str = "") -> str:
    return signed(score) if sign else score_text(score)


def _p(p: float | None, alpha: float) -> str:
    return "" if p is None or math.isnan(p) else p_text(p, alpha)


def _subset(r: Result) -> str:
    return r.subset["value"] if r.subset else ""


def _plain(text: str) -> str:
    """Return a user's word without what a terminal takes as a command."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _filled(cell: str, name: str, width: int) -> str:
    return cell.ljust(width) if name in LEFT else cell.rjust(width)
