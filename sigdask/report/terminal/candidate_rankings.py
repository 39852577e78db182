"""Candidate rankings and repeated samples as plain text.

The text says which measure is better at which n, and how certain this is. For repeated samples it has the observed and
the predicted variation, and a histogram.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sigdask.analysis.candidate_rankings.evaluation import RepeatedSamples, ValidatedAcceptance
from sigdask.analysis.candidate_rankings.spec import (
    Difference,
    Precision,
    RankingEvaluation,
    SampledPrecision,
    Validation,
)
from sigdask.report.layout import format_table
from sigdask.statistics.candidates import IntervalCoverage, PrecisionHistogram
from sigdask.statistics.rounding import format_p, format_p_equals
from sigdask.text import format_count, format_list, make_printable

MAX_CUTOFFS = 7
"""Number of cutoffs of a curve shown by default."""

MAX_PAIRS = 40
"""Number of pairs shown by default."""


def render(evaluation: RankingEvaluation, *, everything: bool = False, width: int | None = None) -> str:
    """Return an evaluation of rankings as text.

    Parameters
    ----------
    evaluation : RankingEvaluation
        The results.
    everything : bool
        Show every n and every difference.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    """
    judged_text = "" if evaluation.n_judged == evaluation.n_candidates else f", {evaluation.n_judged:,} of them judged"
    measures = format_count(len(evaluation.measures), "measure")
    true_text = f"{evaluation.n_true:,} are true ({100 * evaluation.n_true / evaluation.n_judged:.1f} %)"
    lines = [f"{measures} of {evaluation.n_candidates:,} candidates{judged_text}: {true_text}"]
    known = [m for m in evaluation.measures if not math.isnan(m.average_precision)]
    if known:
        ranked = sorted(known, key=lambda m: -m.average_precision)
        names = [f"{make_printable(m.measure)} {m.average_precision:.4f}" for m in ranked]
        lines.append(f"best by average precision: {format_list(names, limit=3)}")
    if evaluation.differences:
        lines.append(_describe_significance(evaluation))
    parts = ["\n".join(lines)]
    if evaluation.precision:
        parts += _format_lists(evaluation, everything=everything, width=width)
    if evaluation.sampled:
        parts += _format_sampled(evaluation, everything=everything, width=width)
    if evaluation.differences:
        parts += _format_pairs(evaluation, everything=everything, width=width)
    if everything and evaluation.differences:
        parts += _format_differences(evaluation, width)
    if evaluation.validation:
        parts += _format_validation(evaluation, everything=everything, width=width)
    parts.append("\n".join(_describe_models(evaluation)))
    return "\n\n".join(parts)


def _describe_significance(evaluation: RankingEvaluation) -> str:
    n_adjusted = sum(row.p_adjusted <= evaluation.alpha for row in evaluation.differences)
    n_single = sum(row.p_fisher <= evaluation.alpha for row in evaluation.differences)
    n = len(evaluation.differences)
    if n == 1:
        words = ("significant" if n_adjusted else "not significant", "significant" if n_single else "not")
        level = f"{evaluation.alpha:g}"
        return f"the difference of precision is {words[0]} at {level} by swapping ({words[1]} by Fisher's test)"
    return (
        f"{n_adjusted:,} of {n:,} differences of precision {'is' if n_adjusted == 1 else 'are'} significant at "
        f"{evaluation.alpha:g} over all pairs and n together ({n_single:,} by Fisher's test of each one separately)"
    )


def _format_lists(evaluation: RankingEvaluation, *, everything: bool, width: int | None) -> list[str]:
    """Return tables of precision and recall with a row per measure and a column per n."""
    by_key = {(row.measure, row.n): row for row in evaluation.precision}
    cutoffs = _select_cutoffs(evaluation.precision, everything=everything)
    ranked = sorted(evaluation.measures, key=lambda m: -m.average_precision)
    title = f"n-best precision in %, with its {100 * evaluation.confidence:g} % interval"
    rows = [
        [m.measure, f"{m.average_precision:.4f}", *(_format_precision(by_key[m.measure, n]) for n in cutoffs)]
        for m in ranked
    ]
    recall = [[m.measure, *(f"{100 * by_key[m.measure, n].recall:.1f}" for n in cutoffs)] for m in ranked]
    names = [f"n = {n:,}" for n in cutoffs]
    return [
        f"{title}\n{format_table(['measure', 'AP', *names], rows, width)}",
        f"recall in %\n{format_table(['measure', *names], recall, width)}",
    ]


def _format_precision(row: Precision | SampledPrecision) -> str:
    """Return precision and its interval in percent; that is whole, rounded outwards."""
    if isinstance(row, SampledPrecision) and not row.n_judged:
        return "none judged"
    return f"{100 * row.precision:.1f} ({math.floor(100 * row.low + 1e-9)}-{math.ceil(100 * row.high - 1e-9)})"


def _format_sampled(evaluation: RankingEvaluation, *, everything: bool, width: int | None) -> list[str]:
    by_key = {(row.measure, row.n): row for row in evaluation.sampled}
    cutoffs = _select_cutoffs(evaluation.sampled, everything=everything)
    rows = [[m.measure, *(_format_precision(by_key[m.measure, n]) for n in cutoffs)] for m in evaluation.measures]
    source = f"one sample of {evaluation.sample_size:,} candidates" if evaluation.n_samples else "the judged candidates"
    interval = f"the {100 * evaluation.confidence:g} % interval of the list's own"
    title = f"n-best precision in %, extrapolated from {source}, with {interval}"
    return [f"{title}\n{format_table(['measure', *(f'n = {n:,}' for n in cutoffs)], rows, width)}"]


def _format_pairs(evaluation: RankingEvaluation, *, everything: bool, width: int | None) -> list[str]:
    """Return a table of pairs of measures with the values of n at which one is significantly better."""
    by_pair: dict[tuple[str, str], list[Difference]] = {}
    for row in evaluation.differences:
        by_pair.setdefault((row.a, row.b), []).append(row)
    average = {(row.a, row.b): row for row in evaluation.average_precision}
    rows = []
    for (a, b), pair_rows in by_pair.items():
        significant = [row for row in pair_rows if row.p_adjusted <= evaluation.alpha]
        better = [
            _format_cutoffs([row.n for row in significant if sign * row.difference > 0], pair_rows) for sign in (1, -1)
        ]
        ap = average.get((a, b))
        cells = [] if ap is None else [f"{ap.difference:+.4f}", format_p(ap.p_adjusted, evaluation.alpha)]
        rows.append([a, b, *better, *cells])
    shown = rows if everything else rows[:MAX_PAIRS]
    names = ["A", "B", "A better at n", "B better at n", *(["AP: A - B", "adjusted p"] if average else [])]
    more_text = f"\n{len(rows) - len(shown):,} more pairs: --all" if len(shown) < len(rows) else ""
    title = f"which measure is better, at {evaluation.alpha:g} over all pairs and n together"
    return [f"{title}\n{format_table(names, shown, width)}{more_text}"]


def _format_cutoffs(cutoffs: Sequence[int], pair_rows: Sequence[Difference]) -> str:
    """Return values of n as text; three or more that follow each other in `pair_rows` become a range."""
    all_cutoffs = [row.n for row in pair_rows]
    if not cutoffs:
        return "-"
    if len(cutoffs) == len(all_cutoffs) > 1:
        return "all"
    runs: list[list[int]] = []
    for n in cutoffs:
        if runs and all_cutoffs.index(n) == all_cutoffs.index(runs[-1][-1]) + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(
        part for run in runs for part in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(n) for n in run])
    )


def _format_differences(evaluation: RankingEvaluation, width: int | None) -> list[str]:
    names = ["A", "B", "n", "score A", "score B", "A - B", "only A", "only B", "Fisher", "swap", "adjusted p"]
    rows = [
        [
            row.a, row.b, f"{row.n:,}", f"{row.precision_a:.4f}", f"{row.precision_b:.4f}", f"{row.difference:+.4f}",
            f"{row.only_a_true}/{row.only_a_true + row.only_a_false}",
            f"{row.only_b_true}/{row.only_b_true + row.only_b_false}",
            *(format_p(p, evaluation.alpha) for p in (row.p_fisher, row.p_exchange, row.p_adjusted)),
        ]
        for row in evaluation.differences
    ]  # fmt: skip
    title = "differences of precision; only A, only B: true ones among the candidates that only this list has"
    return [f"{title}\n{format_table(names, rows, width)}"]


def _format_validation(evaluation: RankingEvaluation, *, everything: bool, width: int | None) -> list[str]:
    cutoffs = _select_cutoffs(evaluation.validation, everything=everything)
    rows = [_format_validated(row) for row in evaluation.validation if row.n in {*cutoffs}]
    names = ["measure", "n", "in a sample", "precision", "sd", "predicted", "ratio", "outside", "p", "widened"]
    title = (
        f"{evaluation.n_samples:,} random samples of {evaluation.sample_size:,} candidates: how precisions vary, and "
        f"how many {100 * evaluation.confidence:g} % intervals miss the list's precision"
    )
    return [f"{title}\n{format_table(names, rows, width)}"]


def _format_validated(row: Validation) -> list[str]:
    d, c = row.dispersion, row.intervals
    ratio = "-" if math.isnan(d.ratio) else f"{d.ratio:.2f}"
    return [
        row.measure, f"{row.n:,}", f"{d.accepted:.1f}", f"{d.precision:.4f}", f"{d.deviation:.4f}",
        f"{d.predicted:.4f}", ratio, f"{c.n_outside} of {c.n_samples}", format_p(c.p_value),
        f"{row.widened.n_outside} ({d.factor:.2f})",
    ]  # fmt: skip


def _describe_models(evaluation: RankingEvaluation) -> Iterator[str]:
    """Yield lines on the statistical models that intervals and p-values rest on."""
    yield f"ties: {evaluation.ties}"
    if evaluation.precision:
        yield (
            "intervals: Clopper-Pearson, of the number of true candidates among n. If ties make it a mean, the "
            "interval covers those of the whole numbers below and above it"
        )
    if evaluation.sampled:
        yield "extrapolated: judged candidates are a random sample of each list, drawn without replacement; exact"
    if evaluation.differences:
        yield (
            "together: the two ranks of a candidate are swapped for all n at once, so a list can have more or fewer "
            f"than n candidates; max-T, step-down, {format_count(evaluation.n_trials, 'trial')}, seed "
            f"{evaluation.seed}"
        )
        yield (
            "Fisher: compares the candidates that only one of the two lists has, separately for each n. Both lists "
            "keep n candidates"
        )
    if evaluation.validation:
        yield (
            "validation: sd compared with that of draws without replacement; p of the number of misses is exact "
            "binomial (exact intervals miss fewer); widened: by the overdispersion in brackets"
        )


def _select_cutoffs(rows: Sequence[Precision | SampledPrecision | Validation], *, everything: bool) -> list[int]:
    """Return the values of n to show: all, or a few of many that include the smallest and the largest."""
    cutoffs = sorted({row.n for row in rows})
    if everything or len(cutoffs) <= MAX_CUTOFFS:
        return cutoffs
    return [cutoffs[round(k * (len(cutoffs) - 1) / (MAX_CUTOFFS - 1))] for k in range(MAX_CUTOFFS)]


DISPERSION_LEVEL = 0.05
"""Level at which samples are reported to vary more than the model predicts."""

MAX_BAR = 30


def render_repeated_samples(samples: RepeatedSamples, *, width: int | None = None) -> str:
    """Return the validation by repeated samples as text.

    Parameters
    ----------
    samples : RepeatedSamples
        The results.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    """
    parts = [text for validated in samples.found for text in _describe_samples(validated, samples.confidence, width)]
    model_text = (
        "model: T of N accepted candidates is Bin(N, p), with one p for all samples, the precision of all together; "
        "widened: Clopper-Pearson of counts divided by the overdispersion, which is estimated from the same samples"
    )
    return "\n\n".join([*parts, model_text])


def _describe_samples(validated: ValidatedAcceptance, confidence: float, width: int | None) -> Iterator[str]:
    d, sets, n_expected = validated.dispersion, validated.sets, validated.intervals.expected
    setting = f"n = {sets.n:,}" if sets.cutoff is None else f"cutoff {sets.cutoff:g}"
    varies = (
        f"vary more than the model says, by {d.factor:.2f} in variance"
        if d.p_value < DISPERSION_LEVEL
        else "vary as the model says"
    )
    name = f"{make_printable(sets.measure)}, {setting}"
    lines = [
        f"{name}: {d.n_samples:,} samples accept {d.accepted:.1f} candidates on average",
        f"precision of all together: {d.precision:.4f}",
        f"standard deviation of precision: {d.deviation:.4f}, predicted {d.predicted:.4f}, ratio {d.ratio:.3f}",
        f"chi2 = {d.chi2:.1f} with {d.df} degrees of freedom, {format_p_equals(d.p_value)}: precisions {varies}",
        f"{_describe_outside('intervals', validated.intervals, confidence)} ({n_expected:.1f} expected)",
    ]
    if d.factor > 1:
        lines.append(_describe_outside(f"intervals widened by {d.factor:.2f}", validated.widened, confidence))
    yield "\n".join(lines)
    yield _format_bars(validated.bars, width)


def _describe_outside(noun: str, coverage: IntervalCoverage, confidence: float) -> str:
    return (
        f"{100 * confidence:g} % {noun} that miss it: {coverage.n_outside} of {coverage.n_samples}, "
        f"{format_p_equals(coverage.p_value)} (exact binomial)"
    )


def _format_bars(bars: PrecisionHistogram, width: int | None) -> str:
    """Return a histogram of samples by precision in characters, with marks at the numbers that the model predicts."""
    room = max(5, min(MAX_BAR, (width or 80) - 40))
    unit = max(bars.observed.max(), bars.expected.max()) / room
    names = ["precision", "samples (#), expected (|)", "found", "expected"]
    rows = []
    for k, (n_observed, n_expected) in enumerate(zip(bars.observed.tolist(), bars.expected.tolist(), strict=True)):
        bar = list("#" * round(n_observed / unit)) + ["."] * (room + 1 - round(n_observed / unit))
        bar[min(round(n_expected / unit), room)] = "|"
        edges = f"{bars.edges[k]:.3f}-{bars.edges[k + 1]:.3f}"
        rows.append([edges, "".join(bar).rstrip("."), f"{n_observed}", f"{n_expected:.1f}"])
    fit = "" if math.isnan(bars.chi2) else (
        f"\nfit of the bars: chi2 = {bars.chi2:.1f} with {bars.df} degrees of freedom, {format_p_equals(bars.p_value)}"
    )  # fmt: skip
    return format_table(names, rows, width) + fit
