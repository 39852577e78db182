"""What each verdict stands on, told of few comparisons: runs, checks, dependence, other units, all notes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sigdask.report.summary.sentences import beside_text, size_text, standing
from sigdask.results.record import Result
from sigdask.statistics.classical.correlation import inflation
from sigdask.statistics.rounding import p_equals
from sigdask.text import count_noun, printable


def text(told: Sequence[Result], alpha: float) -> list[str]:
    """Return the details of some comparisons as one part; nothing of none."""
    return ["\n".join(line for result in told for line in _lines(result, alpha))] if told else []


def _lines(r: Result, alpha: float) -> Iterator[str]:
    where = f" ({r.subset['column']} {r.subset['value']})" if r.subset else ""
    yield printable(f"{r.metric}{where}: {standing(r, alpha)}")
    if r.interval is not None:
        yield printable(f"    {size_text(r)}")
    for check in r.checks:
        if check.verdict != "not applicable":
            yield printable(f"    {check.name} {check.verdict}: {check.detail}")
    if r.r12 is not None:
        cost = inflation(round(r.r12, 3))
        times = "without bound" if math.isinf(cost) else f"{inflation(r.r12):.2f} times"
        yield f"    r12 = {r.r12:.3f}: a test that takes the systems for independent has intervals {times} as wide"
    for d in r.dependence:
        yield printable(
            f"    within {d.column}: ICC {round(d.icc, 3) + 0.0:.3f}, design effect {d.design_effect:.2f} "
            f"(F test {p_equals(d.p_value)})"
        )
    for b in r.beside:
        yield printable(
            f"    by {b.unit} ({count_noun(b.n_units, 'unit')}) instead of {r.unit}: {beside_text(b, alpha)}"
        )
    for doubt in r.assumptions:
        yield printable(f"    {doubt.severity}: {doubt.detail}")
    for note in r.warnings:
        yield printable(f"    note: {note}")
    if r.test_signature is not None:
        yield f"    signature: {r.test_signature}"
