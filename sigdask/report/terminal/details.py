"""Details of each verdict for few comparisons: runs, checks, dependence, other units, and all notes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sigdask.report.summary.sentences import describe_alternative_unit, describe_size, describe_standing
from sigdask.results.record import Result
from sigdask.statistics.classical.correlation import compute_inflation
from sigdask.statistics.rounding import format_p_equals
from sigdask.text import format_count, make_printable


def format_details(results: Sequence[Result], alpha: float) -> list[str]:
    """Return the details of comparisons as one part, or nothing without comparisons."""
    return ["\n".join(line for result in results for line in _iter_lines(result, alpha))] if results else []


def _iter_lines(r: Result, alpha: float) -> Iterator[str]:
    subset_text = f" ({r.subset['column']} {r.subset['value']})" if r.subset else ""
    yield make_printable(f"{r.metric}{subset_text}: {describe_standing(r, alpha)}")
    if r.interval is not None:
        yield make_printable(f"    {describe_size(r)}")
    for check in r.checks:
        if check.verdict != "not applicable":
            yield make_printable(f"    {check.name} {check.verdict}: {check.detail}")
    if r.r12 is not None:
        cost = compute_inflation(round(r.r12, 3))
        times = "without bound" if math.isinf(cost) else f"{compute_inflation(r.r12):.2f} times"
        yield f"    r12 = {r.r12:.3f}: a test that takes the systems for independent has intervals {times} as wide"
    for d in r.dependence:
        yield make_printable(
            f"    within {d.column}: ICC {round(d.icc, 3) + 0.0:.3f}, design effect {d.design_effect:.2f} "
            f"(F test {format_p_equals(d.p_value)})"
        )
    for b in r.beside:
        yield make_printable(
            f"    by {b.unit} ({format_count(b.n_units, 'unit')}) instead of {r.unit}: "
            f"{describe_alternative_unit(b, alpha)}"
        )
    for doubt in r.assumptions:
        yield make_printable(f"    {doubt.severity}: {doubt.detail}")
    for note in r.warnings:
        yield make_printable(f"    note: {note}")
    if r.test_signature is not None:
        yield f"    signature: {r.test_signature}"
