"""Rankings on a terminal or in a pipe: which measure is better, at which n, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sigdask.analysis.candidate_rankings.results import (
    AverageDifference,
    Difference,
    Precision,
    RankingEvaluation,
    SampledPrecision,
    Validation,
)
from sigdask.report.layout import lay_out
from sigdask.statistics.rounding import p_text
from sigdask.text import count_noun, listed, printable

COLUMNS = 7
"""Values of n that are shown of a curve, unless all are asked for."""

SHOWN = 40
"""Pairs that are shown unless all are asked for."""


def render(found: RankingEvaluation, *, everything: bool = False, width: int | None = None) -> str:
    """Return what a terminal shows.

    Parameters
    ----------
    found : RankingEvaluation
        What was found.
    everything : bool
        Show every n and every difference.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    """
    parts = [*_answer(found)]
    if found.precision:
        parts += _lists(found, everything=everything, width=width)
    if found.sampled:
        parts += _sampled(found, everything=everything, width=width)
    if found.differences:
        parts += _pairs(found, everything=everything, width=width)
    if everything and found.differences:
        parts += _differences(found, width)
    if found.validation:
        parts += _validation(found, everything=everything, width=width)
    parts.append("\n".join(_how(found)))
    return "\n\n".join(parts)


def _answer(found: RankingEvaluation) -> Iterator[str]:
    judged = "" if found.n_judged == found.n_candidates else f", {found.n_judged:,} of them judged"
    share = found.n_true / found.n_judged
    text = (
        f"{_number(len(found.measures), 'measure')} of {found.n_candidates:,} candidates{judged}: {found.n_true:,} are "
        f"true ({100 * share:.1f} %)"
    )
    ranked = sorted(
        (m for m in found.measures if not math.isnan(m.average_precision)), key=lambda m: -m.average_precision
    )
    lines = [text]
    if ranked:
        lines.append(
            "best by average precision: "
            + listed([f"{printable(m.measure)} {m.average_precision:.4f}" for m in ranked], most=3)
        )
    if found.differences:
        lines.append(_significant(found))
    yield "\n".join(lines)


def _significant(found: RankingEvaluation) -> str:
    sure = sum(row.p_adjusted <= found.alpha for row in found.differences)
    single = sum(row.p_fisher <= found.alpha for row in found.differences)
    n = len(found.differences)
    if n == 1:
        words = ("significant" if sure else "not significant", "significant" if single else "not")
        return f"the difference of precision is {words[0]} at {found.alpha:g} by exchange ({words[1]} by Fisher's test)"
    return (
        f"{sure:,} of {n:,} differences of precision {'is' if sure == 1 else 'are'} significant at {found.alpha:g} "
        f"over all pairs and n together ({single:,} by Fisher's test of each for itself)"
    )


def _lists(found: RankingEvaluation, *, everything: bool, width: int | None) -> list[str]:
    """Precision and recall, a row a measure and a column an n."""
    of = {(row.measure, row.n): row for row in found.precision}
    cutoffs = _some(sorted({row.n for row in found.precision}), everything=everything)
    ranked = sorted(found.measures, key=lambda m: -m.average_precision)
    title = f"n-best precision in %, with its {100 * found.confidence:g} % interval"
    rows = [[m.measure, f"{m.average_precision:.4f}", *(_precision(of[m.measure, n]) for n in cutoffs)] for m in ranked]
    recall = [[m.measure, *(f"{100 * of[m.measure, n].recall:.1f}" for n in cutoffs)] for m in ranked]
    names = [f"n = {n:,}" for n in cutoffs]
    return [
        f"{title}\n{lay_out(['measure', 'AP', *names], rows, width)}",
        f"recall in %\n{lay_out(['measure', *names], recall, width)}",
    ]


def _precision(row: Precision) -> str:
    return f"{100 * row.precision:.1f} {_limits(row.low, row.high)}"


def _limits(low: float, high: float) -> str:
    """Write an interval in whole percent, outwards."""
    return f"({math.floor(100 * low + 1e-9)}-{math.ceil(100 * high - 1e-9)})"


def _sampled(found: RankingEvaluation, *, everything: bool, width: int | None) -> list[str]:
    of = {(row.measure, row.n): row for row in found.sampled}
    cutoffs = _some(sorted({row.n for row in found.sampled}), everything=everything)
    rows = [[m.measure, *(_estimate(of[m.measure, n]) for n in cutoffs)] for m in found.measures]
    whose = "the judged candidates" if not found.n_samples else f"one sample of {found.sample_size:,} candidates"
    title = (
        f"n-best precision in %, extrapolated from {whose}, with the {100 * found.confidence:g} % interval of the "
        "list's own"
    )
    return [f"{title}\n{lay_out(['measure', *(f'n = {n:,}' for n in cutoffs)], rows, width)}"]


def _estimate(row: SampledPrecision) -> str:
    return f"{100 * row.precision:.1f} {_limits(row.low, row.high)}" if row.n_judged else "none judged"


def _pairs(found: RankingEvaluation, *, everything: bool, width: int | None) -> list[str]:
    """Say of each pair at which n one is better, over all pairs and n together."""
    by_pair: dict[tuple[str, str], list[Difference]] = {}
    for row in found.differences:
        by_pair.setdefault((row.a, row.b), []).append(row)
    average = {(row.a, row.b): row for row in found.average_precision}
    rows = []
    for (a, b), own in by_pair.items():
        sure = [row for row in own if row.p_adjusted <= found.alpha]
        better = [_cutoffs([row.n for row in sure if sign * row.difference > 0], own) for sign in (1, -1)]
        rows.append([a, b, *better, *_average(average.get((a, b)), found.alpha)])
    shown = rows if everything else rows[:SHOWN]
    names = ["A", "B", "A better at n", "B better at n", *(["AP: A - B", "adjusted p"] if average else [])]
    more = f"\n{len(rows) - len(shown):,} more pairs: --all" if len(shown) < len(rows) else ""
    return [f"which is better, at {found.alpha:g} over all pairs and n together\n{lay_out(names, shown, width)}{more}"]


def _average(row: AverageDifference | None, alpha: float) -> list[str]:
    return [] if row is None else [f"{row.difference:+.4f}", p_text(row.p_adjusted, alpha)]


def _cutoffs(found: Sequence[int], own: Sequence[Difference]) -> str:
    """Name values of n, neighbours on a curve together."""
    every = [row.n for row in own]
    if not found:
        return "-"
    if len(found) == len(every) > 1:
        return "all"
    runs: list[list[int]] = []
    for n in found:
        if runs and every.index(n) == every.index(runs[-1][-1]) + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(
        part for run in runs for part in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(n) for n in run])
    )


def _differences(found: RankingEvaluation, width: int | None) -> list[str]:
    names = ["A", "B", "n", "score A", "score B", "A - B", "only A", "only B", "Fisher", "exchange", "adjusted p"]
    rows = [
        [
            row.a, row.b, f"{row.n:,}", f"{row.precision_a:.4f}", f"{row.precision_b:.4f}", f"{row.difference:+.4f}",
            f"{row.only_a_true}/{row.only_a_true + row.only_a_false}",
            f"{row.only_b_true}/{row.only_b_true + row.only_b_false}",
            *(p_text(p, found.alpha) for p in (row.p_fisher, row.p_exchange, row.p_adjusted)),
        ]
        for row in found.differences
    ]  # fmt: skip
    title = "differences of precision; only A, only B: true of those that one list alone has"
    return [f"{title}\n{lay_out(names, rows, width)}"]


def _validation(found: RankingEvaluation, *, everything: bool, width: int | None) -> list[str]:
    cutoffs = _some(sorted({row.n for row in found.validation}), everything=everything)
    rows = [_validated(row) for row in found.validation if row.n in {*cutoffs}]
    names = ["measure", "n", "in a sample", "precision", "sd", "predicted", "ratio", "outside", "p", "widened"]
    title = (
        f"{found.n_samples:,} random samples of {found.sample_size:,} candidates: how precisions vary, and how many "
        f"{100 * found.confidence:g} % intervals miss the list's precision"
    )
    return [f"{title}\n{lay_out(names, rows, width)}"]


def _validated(row: Validation) -> list[str]:
    d, c = row.dispersion, row.intervals
    ratio = "-" if math.isnan(d.ratio) else f"{d.ratio:.2f}"
    return [
        row.measure, f"{row.n:,}", f"{d.accepted:.1f}", f"{d.precision:.4f}", f"{d.deviation:.4f}",
        f"{d.predicted:.4f}", ratio, f"{c.n_outside} of {c.n_samples}", p_text(c.p_value),
        f"{row.widened.n_outside} ({d.factor:.2f})",
    ]  # fmt: skip


def _how(found: RankingEvaluation) -> Iterator[str]:
    """Say by which models all this is so."""
    yield f"ties: {found.ties}"
    if found.precision:
        yield "intervals: Clopper-Pearson, T of n binomial; about a mean over ties those of the whole numbers around it"
    if found.sampled:
        yield "extrapolated: judged candidates are a random sample of each list, drawn without replacement; exact"
    if found.differences:
        yield (
            f"together: each candidate's two ranks exchanged at all n jointly, sizes of lists vary; max-T, step-down, "
            f"{count_noun(found.n_trials, 'trial')}, seed {found.seed}"
        )
        yield "Fisher: on candidates that one list alone has, sizes of lists fixed; another model, of each n for itself"
    if found.validation:
        yield (
            "validation: sd against that of draws without replacement; p of the number outside, exact binomial, exact "
            "intervals are to miss fewer; widened: by the overdispersion in brackets"
        )


def _some(cutoffs: Sequence[int], *, everything: bool) -> list[int]:
    """Return the values of n that are shown: of a curve a few, its ends among them."""
    if everything or len(cutoffs) <= COLUMNS:
        return list(cutoffs)
    return [cutoffs[round(k * (len(cutoffs) - 1) / (COLUMNS - 1))] for k in range(COLUMNS)]


def _number(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"
