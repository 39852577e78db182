"""Verdicts over several test sets or subsets as text."""

from __future__ import annotations

from collections.abc import Sequence

from sigdask.report.layout import format_table
from sigdask.report.tables.cells import format_p_cell
from sigdask.results.comparisons import ComparisonResults, ResultAcrossSets
from sigdask.statistics.rounding import format_p_equals, format_signed
from sigdask.text import format_count

MOST_SHOWN = 40
"""Verdicts that are shown unless all are asked for."""


def format_families(results: ComparisonResults, width: int | None, *, everything: bool) -> list[str]:
    """Return a table of the verdicts over all test sets or subsets as one part, or nothing if there are none."""
    if not results.together:
        return []
    verdicts: Sequence[ResultAcrossSets] = results.together
    if len(verdicts) > MOST_SHOWN and not everything:
        verdicts = sorted(verdicts, key=lambda v: (v.p_adjusted or 0.0, v.p_value))[:MOST_SHOWN]
    adjusted = any(v.p_adjusted is not None for v in results.together)
    alpha = results.alpha
    p_headers = ["unadjusted p", "adjusted p"] if adjusted else ["p"]
    rows = [
        [
            v.a, v.b, v.metric, format_signed(v.difference), format_p_cell(v.p_value, alpha),
            *([format_p_cell(v.p_adjusted, alpha)] if adjusted else []),
            _format_replicated(v.greater_in, v.n_sets, v.p_greater), _format_replicated(v.less_in, v.n_sets, v.p_less),
            "exact" if v.method == "exact" else format_count(v.n_trials, "trial"),
        ]
        for v in verdicts
    ]  # fmt: skip
    level = alpha / 2 if results[0].alternative == "two-sided" else alpha
    title = (
        f"over all sets: the mean difference, and in at least how many sets A scores above B, and below, each shown at "
        f"{level:g} for the pair alone"
    )
    names = ["A", "B", "metric", "mean A - B", *p_headers, "A above B in", "below in", "method"]
    parts = [f"{title}\n{format_table(names, rows, width)}"]
    if len(verdicts) < len(results.together):
        parts.append(
            f"the {MOST_SHOWN} smallest p of {len(results.together):,} (--all shows all, --json FILE keeps them)"
        )
    return parts


def _format_replicated(n: int, n_sets: int, p: float) -> str:
    return f"{n} of {n_sets}" + (f" ({format_p_equals(p)})" if n else "")
