"""Repeated samples of candidates as plain text: observed and predicted variation, and a histogram."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sigdask.analysis.candidate_rankings.validation import RepeatedSamples, ValidatedAcceptance
from sigdask.report.layout import format_table
from sigdask.statistics.candidates.repeated_samples import IntervalCoverage, PrecisionHistogram
from sigdask.statistics.rounding import format_p_equals
from sigdask.text import make_printable

DISPERSION_LEVEL = 0.05
"""p below which samples are said to vary more than the model says."""

MOST_BAR = 30
"""Most characters of a bar."""


def render(samples: RepeatedSamples, *, width: int | None = None) -> str:
    """Return the validation by repeated samples as text.

    Parameters
    ----------
    samples : RepeatedSamples
        What was found.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    """
    parts = [text for validated in samples.found for text in _describe_samples(validated, samples.confidence, width)]
    model_text = (
        "model: T of N accepted candidates is Bin(N, p), with one p in all samples, that of all together; "
        "widened: Clopper-Pearson of counts divided by the overdispersion, which was taken from the same samples"
    )
    return "\n\n".join([*parts, model_text])


def _describe_samples(validated: ValidatedAcceptance, confidence: float, width: int | None) -> Iterator[str]:
    d, sets = validated.dispersion, validated.sets
    setting = f"n = {sets.n:,}" if sets.cutoff is None else f"cutoff {sets.cutoff:g}"
    varies = (
        f"vary more than the model says, by {d.factor:.2f} in variance"
        if d.p_value < DISPERSION_LEVEL
        else "vary as it says"
    )
    lines = (
        (
            f"{make_printable(sets.measure)}, {setting}: {d.n_samples:,} samples accept {d.accepted:.1f} "
            "candidates on average"
        ),
        f"precision of all together: {d.precision:.4f}",
        f"standard deviation of precision: {d.deviation:.4f}, predicted {d.predicted:.4f}, ratio {d.ratio:.3f}",
        f"chi2 = {d.chi2:.1f} with {d.df} degrees of freedom, {format_p_equals(d.p_value)}: precisions {varies}",
        (
            f"{_describe_outside('intervals', validated.intervals, confidence)} "
            f"({validated.intervals.expected:.1f} expected)"
        ),
        *(
            [_describe_outside(f"intervals widened by {d.factor:.2f}", validated.widened, confidence)]
            if d.factor > 1
            else []
        ),
    )
    yield "\n".join(lines)
    yield _format_bars(validated.bars, width)


def _describe_outside(noun: str, coverage: IntervalCoverage, confidence: float) -> str:
    return (
        f"{100 * confidence:g} % {noun} that miss it: {coverage.n_outside} of {coverage.n_samples}, "
        f"{format_p_equals(coverage.p_value)} (exact binomial)"
    )


def _format_bars(bars: PrecisionHistogram, width: int | None) -> str:
    """Return a histogram of samples by precision in characters, with marks at the numbers that the model predicts."""
    room = max(5, min(MOST_BAR, (width or 80) - 40))
    unit = max(bars.observed.max(), bars.expected.max()) / room
    names = ["precision", "samples (#), expected (|)", "found", "expected"]
    rows = []
    for k, (n_observed, n_expected) in enumerate(zip(bars.observed.tolist(), bars.expected.tolist(), strict=True)):
        bar = list("#" * round(n_observed / unit)) + ["."] * (room + 1 - round(n_observed / unit))
        bar[min(round(n_expected / unit), room)] = "|"
        rows.append(
            [
                f"{bars.edges[k]:.3f}-{bars.edges[k + 1]:.3f}",
                "".join(bar).rstrip("."),
                f"{n_observed}",
                f"{n_expected:.1f}",
            ]
        )
    fit = "" if math.isnan(bars.chi2) else (
        f"\nfit of the bars: chi2 = {bars.chi2:.1f} with {bars.df} degrees of freedom, {format_p_equals(bars.p_value)}"
    )  # fmt: skip
    return format_table(names, rows, width) + fit
