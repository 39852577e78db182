"""Verdicts over several test sets or subsets."""

from __future__ import annotations

from collections.abc import Sequence

from sigdask.report.layout import lay_out
from sigdask.report.tables.cells import p_cell
from sigdask.results.comparisons import ComparisonResults, ResultAcrossSets
from sigdask.statistics.rounding import p_equals, signed
from sigdask.text import count_noun

SHOWN = 40
"""Verdicts that are shown unless all are asked for."""


def text(results: ComparisonResults, width: int | None, *, everything: bool) -> list[str]:
    """Return the verdicts over all sets; nothing where there are none."""
    if not results.together:
        return []
    verdicts: Sequence[ResultAcrossSets] = results.together
    if len(verdicts) > SHOWN and not everything:
        verdicts = sorted(verdicts, key=lambda v: (v.p_adjusted or 0.0, v.p_value))[:SHOWN]
    adjusted = any(v.p_adjusted is not None for v in results.together)
    alpha = results.alpha
    p = ["unadjusted p", "adjusted p"] if adjusted else ["p"]
    rows = [
        [
            v.a, v.b, v.metric, signed(v.difference), p_cell(v.p_value, alpha),
            *([p_cell(v.p_adjusted, alpha)] if adjusted else []),
            _replicated(v.greater_in, v.n_sets, v.p_greater), _replicated(v.less_in, v.n_sets, v.p_less),
            "exact" if v.method == "exact" else count_noun(v.n_trials, "trial"),
        ]
        for v in verdicts
    ]  # fmt: skip
    level = alpha / 2 if results[0].alternative == "two-sided" else alpha
    title = (
        f"over all sets: the mean difference, and in at least how many sets A scores above B, and below, each shown at "
        f"{level:g} for the pair alone"
    )
    names = ["A", "B", "metric", "mean A - B", *p, "A above B in", "below in", "method"]
    parts = [f"{title}\n{lay_out(names, rows, width)}"]
    if len(verdicts) < len(results.together):
        parts.append(f"the {SHOWN} smallest p of {len(results.together):,} (--all shows all, --json FILE keeps them)")
    return parts


def _replicated(n: int, n_sets: int, p: float) -> str:
    return f"{n} of {n_sets}" + (f" ({p_equals(p)})" if n else "")
