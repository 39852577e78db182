"""Repeated samples of candidates on a terminal: how precisions vary, beside what the model says, and as bars."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sigdask.analysis.candidate_rankings.validation import RepeatedSamples, ValidatedAcceptance
from sigdask.report.layout import lay_out
from sigdask.statistics.candidates.repeated import IntervalCoverage, PrecisionHistogram
from sigdask.statistics.rounding import p_equals
from sigdask.text import printable

ODD = 0.05
"""p below which samples are said to vary more than the model says."""

BAR = 30
"""Most characters of a bar."""


def render(found: RepeatedSamples, *, width: int | None = None) -> str:
    """Return what a terminal shows of repeated samples.

    Parameters
    ----------
    found : RepeatedSamples
        What was found.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    """
    parts = [text for one in found.found for text in _repeated(one, found.confidence, width)]
    how = (
        "model: T of N accepted candidates is Bin(N, p), with one p in all samples, that of all together; "
        "widened: Clopper-Pearson of counts divided by the overdispersion, which was taken from the same samples"
    )
    return "\n\n".join([*parts, how])


def _repeated(one: ValidatedAcceptance, confidence: float, width: int | None) -> Iterator[str]:
    d, sets = one.dispersion, one.sets
    which = f"n = {sets.n:,}" if sets.cutoff is None else f"cutoff {sets.cutoff:g}"
    varies = f"vary more than the model says, by {d.factor:.2f} in variance" if d.p_value < ODD else "vary as it says"
    lines = (
        f"{printable(sets.measure)}, {which}: {d.n_samples:,} samples accept {d.accepted:.1f} candidates on average",
        f"precision of all together: {d.precision:.4f}",
        f"standard deviation of precision: {d.deviation:.4f}, predicted {d.predicted:.4f}, ratio {d.ratio:.3f}",
        f"chi2 = {d.chi2:.1f} with {d.df} degrees of freedom, {p_equals(d.p_value)}: precisions {varies}",
        f"{_outside('intervals', one.intervals, confidence)} ({one.intervals.expected:.1f} expected)",
        *([_outside(f"intervals widened by {d.factor:.2f}", one.widened, confidence)] if d.factor > 1 else []),
    )
    yield "\n".join(lines)
    yield _bars(one.bars, width)


def _outside(what: str, found: IntervalCoverage, confidence: float) -> str:
    return (
        f"{100 * confidence:g} % {what} that miss it: {found.n_outside} of {found.n_samples}, "
        f"{p_equals(found.p_value)} (exact binomial)"
    )


def _bars(bars: PrecisionHistogram, width: int | None) -> str:
    """Draw samples as bars, with a mark where the model expects them to end."""
    room = max(5, min(BAR, (width or 80) - 40))
    unit = max(bars.observed.max(), bars.expected.max()) / room
    names = ["precision", "samples (#), expected (|)", "found", "expected"]
    rows = []
    for k, (seen, due) in enumerate(zip(bars.observed.tolist(), bars.expected.tolist(), strict=True)):
        drawn = list("#" * round(seen / unit)) + ["."] * (room + 1 - round(seen / unit))
        drawn[min(round(due / unit), room)] = "|"
        rows.append(
            [f"{bars.edges[k]:.3f}-{bars.edges[k + 1]:.3f}", "".join(drawn).rstrip("."), f"{seen}", f"{due:.1f}"]
        )
    fit = "" if math.isnan(bars.chi2) else (
        f"\nfit of the bars: chi2 = {bars.chi2:.1f} with {bars.df} degrees of freedom, {p_equals(bars.p_value)}"
    )  # fmt: skip
    return lay_out(names, rows, width) + fit
