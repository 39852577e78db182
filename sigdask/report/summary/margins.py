"""Sentences on non-inferiority and equivalence: which systems are shown to differ by less than a margin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sigdask.report.summary.sentences import find_metrics_in_points
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.fields import iter_results
from sigdask.results.record import Margin, Result
from sigdask.statistics.rounding import format_p, format_p_equals
from sigdask.text import format_count

TOO_SMALL = "p may be too small"
"""End of a method's name if its p is doubtful."""

MAX_SENTENCES = 3
"""Maximum number of comparisons with a sentence each. More are counted."""


def describe_margins(results: ComparisonResults) -> Iterator[str]:
    """Yield sentences on what the tests of a margin show; none if no margin was chosen.

    Examples
    --------
    "A is not worse than B by more than 1 point on f1: p = 0.003."
    """
    table = results.table
    if table.margins is None or np.isnan(table.margins.margin).all():
        return
    points = find_metrics_in_points(table)
    rows = [(r, r.margin, format_margin(r.margin.margin, points=r.metric in points))
            for r in iter_results(table) if r.margin is not None]  # fmt: skip
    if len(rows) <= MAX_SENTENCES:
        yield from (_describe_result(r, margin, size, results.alpha) for r, margin, size in rows)
        return
    for size in dict.fromkeys(size for _, _, size in rows):
        verdicts = [margin.verdicts for _, margin, row_size in rows if row_size == size]
        n_equivalent = sum("equivalent" in shown for shown in verdicts)
        n_one_sided = sum("equivalent" not in shown and bool(shown) for shown in verdicts)
        text = f"Within {size}, {n_equivalent:,} of {format_count(len(verdicts), 'pair')} are shown to be equivalent"
        yield f"{text}{f', and one system not to be worse in {n_one_sided:,} more' * bool(n_one_sided)}."


def format_margin(margin: float, *, points: bool) -> str:
    """Return a margin as text.

    Examples
    --------
    >>> format_margin(0.01, points=True), format_margin(0.5, points=False)
    ('1 point', '0.5')
    """
    size = f"{100 * margin:g}"
    return f"{size} point{'s' * (size != '1')}" if points else f"{margin:g}"


def _describe_result(r: Result, margin: Margin, size: str, alpha: float) -> str:
    subset_text = f" in {r.subset['column']} {r.subset['value']}" if r.subset else ""
    where = f" on {r.metric}{subset_text}{f' of {r.test_set}' if r.test_set else ''}"
    p_values = margin.p_adjusted or (margin.p_not_worse, margin.p_not_better, margin.p_equivalent)
    adjusted = "adjusted " if margin.p_adjusted else ""
    doubt = f" ({margin.method.rpartition(', ')[2]})" if margin.method.endswith(TOO_SMALL) else ""
    worse, better, equivalent = (f"{adjusted}{format_p_equals(p, alpha)}{doubt}" for p in p_values)
    if "equivalent" in margin.verdicts:
        return f"{r.a} and {r.b} are equivalent within {size}{where}: {equivalent}."
    claims = [(r.a, r.b, worse, "not worse"), (r.b, r.a, better, "not better")]
    for a, b, p, claim in claims:
        if claim in margin.verdicts:
            return f"{a} is not worse than {b} by more than {size}{where}: {p}."
    return (
        f"It is not shown that {r.a} is worse than {r.b} by less than {size}{where} ({worse}), nor {r.b} than {r.a} "
        f"({better})."
    )


def describe_shown_margin(r: Result) -> str:
    """Return what the tests of a margin show of a comparison, in a word or two for a table; "" without a margin."""
    if r.margin is None:
        return ""
    return "equivalent" if "equivalent" in r.margin.verdicts else ", ".join(r.margin.verdicts) or "not shown"


def describe_margin_tests(r: Result) -> Iterator[str]:
    """Yield the p-values of the tests of a margin, with the method; nothing without a margin."""
    if (margin := r.margin) is None:
        return
    adjusted = "" if margin.p_adjusted is None else f"; adjusted {', '.join(map(format_p, margin.p_adjusted))}"
    yield (
        f"margin {margin.margin:g}: {r.a} not worse {format_p_equals(margin.p_not_worse)}, not better "
        f"{format_p_equals(margin.p_not_better)}, equivalent {format_p_equals(margin.p_equivalent)}{adjusted} "
        f"({margin.method})"
    )
