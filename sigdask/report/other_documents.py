"""Documents of power, tests of independence and candidate rankings: the answer first, then tables and the method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from sigdask.analysis.candidate_rankings.evaluation import AcceptanceSet, RepeatedSamples
from sigdask.analysis.candidate_rankings.spec import (
    Difference,
    Precision,
    RankingEvaluation,
    SampledPrecision,
)
from sigdask.analysis.independence import Independence, IndependenceResults
from sigdask.analysis.power import EXACT, FEW_EFFECTIVE, SIMULATED, Power, PowerAt, PowerResults
from sigdask.counts.texts import ScopeNote
from sigdask.report.comparisons import NO_SCORE, SIGNIFICANT, UNDECIDED, build_p_columns, format_p_cell
from sigdask.report.document import Block, Cells, Column, DocumentTable, build_columns
from sigdask.report.screen import list_alarms
from sigdask.report.text import render_blocks
from sigdask.report.wording import ADJUSTMENTS
from sigdask.results.comparisons import get_version
from sigdask.statistics.candidates import IntervalCoverage
from sigdask.statistics.power import Estimate
from sigdask.statistics.ranking_letters import find_best
from sigdask.statistics.rounding import format_p, format_p_equals, format_score
from sigdask.text import format_count, format_list

MAX_SHOWN = 40
"""Number of pairs shown by default."""

MAX_NOTED = 3
"""Maximum number of pairs with the same note that are named."""

MAX_SENTENCES = 12
"""Maximum number of tests of independence that are each described in a sentence."""

MAX_CUTOFFS = 7
"""Number of cutoffs of a curve shown by default."""


Analysis = PowerResults | IndependenceResults | RankingEvaluation | RepeatedSamples


def _describe_version(seed: int) -> str:
    return f"sigdask {get_version()}, seed {seed}."


def _cut(table: DocumentTable, *, everything: bool) -> DocumentTable:
    """Return a table, or its first rows with a note where all are."""
    n_left = len(table.sections[0]) - MAX_SHOWN
    if everything or n_left <= 0:
        return table
    return replace(table.shorten(MAX_SHOWN), legend=(*table.legend, f"{n_left:,} more pairs: --all, or --json FILE"))


def render_analysis(analysis: Analysis, *, everything: bool = False, width: int | None = None) -> str:
    """Return an analysis other than comparisons as text for a terminal of so many columns, in full or in short."""
    match analysis:
        case PowerResults():
            blocks = _iter_power_blocks(analysis, everything=everything)
        case IndependenceResults():
            blocks = _iter_independence_blocks(analysis)
        case RankingEvaluation():
            blocks = _iter_evaluation_blocks(analysis, everything=everything)
        case _:
            blocks = _iter_sample_blocks(analysis)
    return render_blocks(blocks, width)


# Power


def build_power_table(powers: PowerResults) -> DocumentTable:
    """Return a table of the units needed to detect differences, and of the differences that units detect."""
    first = powers[0]
    cells: Cells = {"A": "a", "B": "b", "metric": "metric", "A - B": lambda p: f"{p.difference:+.4g}"}
    if first.wanted_difference is not None:
        cells |= {
            f"units for {first.wanted_difference:g}": lambda p: _format_interval(
                p.needed, ",.0f", p.is_needed_uncertain
            ),
            f"power of {first.n_units:,}": lambda p: _format_power(p.at_wanted),
        }
    cells[f"detectable by {first.n_asked:,}"] = lambda p: _format_interval(
        p.detectable, ".3g", p.is_detectable_uncertain
    )
    columns = build_columns(powers, cells)
    columns.append(Column("how", [p.method if p.reachable is not None else "alike" for p in powers], is_name=True))
    levels = " and ".join(f"{level:.3g}" for level in sorted({p.level for p in powers}))
    shares = " and ".join(f"{100 * power:g} %" for power in sorted({p.power for p in powers}))
    legend = [f"{NO_SCORE}: none"] * any(NO_SCORE in column.texts for column in columns)
    legend += ["~ rests on few units"] * any(p.is_needed_uncertain or p.is_detectable_uncertain for p in powers)
    note = f"With power {shares} at {levels}. {_describe_version(powers.seed)}"
    return DocumentTable.of("units needed, and differences that units detect", columns, legend, note)


def _format_interval(estimate: Estimate | None, spec: str, is_few: bool) -> str:
    if estimate is None or math.isinf(estimate.value):
        return NO_SCORE
    text = f"{'~' * is_few}{estimate.value:{spec}}"
    low, high = f"{estimate.low:{spec}}", f"{estimate.high:{spec}}"
    return text if low == high or is_few else f"{text} ({low} to {high})"


def _format_power(point: PowerAt | None) -> str:
    """Return a power as text, with its simulation error if it was simulated."""
    if point is None:
        return NO_SCORE
    return f"{point.power:.3f}" if not point.error else f"{point.power:.2f} ± {1.96 * point.error:.2f}"


def _iter_power_blocks(powers: PowerResults, *, everything: bool) -> Iterator[Block]:
    """Yield the power of comparisons: the answer first as a sentence, then each pair, then the methods."""
    yield "\n".join(f"warning: {note}" for note in powers.notes if isinstance(note, ScopeNote))
    for metric in dict.fromkeys(power.metric for power in powers):
        yield " ".join(_describe_powers([power for power in powers if power.metric == metric]))
    yield _cut(build_power_table(powers), everything=everything)
    yield "\n".join(_describe_power_methods(powers))


def _describe_powers(powers: Sequence[Power]) -> Iterator[str]:
    """Yield sentences on the estimates that are finite and do not rest on few units."""
    first, n = powers[0], len(powers)
    unit = f"{first.unit}s" if first.unit.isalpha() and first.unit[-1] not in "sxzyh" else f"units ({first.unit})"
    condition = f"with power {first.power:g} (test at {first.level:.3g}, {first.alternative})"
    needed = [p.needed.value for p in powers if p.needed and not p.is_needed_uncertain]
    detected = [p.detectable.value for p in powers if p.detectable and not p.is_detectable_uncertain]
    needed, detected = ([x for x in values if math.isfinite(x)] for values in (needed, detected))
    shares = [f" ({len(values):,} of {n:,} pairs)" if n > 1 else "" for values in (needed, detected)]
    if first.wanted_difference is not None and needed:
        about = " about" * any(p.method != EXACT for p in powers)
        yield (
            f"To detect a difference of {first.wanted_difference:g} in {first.metric} {condition}, you need{about} "
            f"{_format_range(needed, ',.0f')} {unit}{shares[0]}."
        )
        condition = "with this power"
    if detected:
        size = f"{first.n_asked:,} {unit} can detect a difference of {_format_range(detected, '.3g')}"
        yield f"{size} in {first.metric} {condition}{shares[1]}."


def _format_range(values: Sequence[float], spec: str) -> str:
    """Return the smallest, largest and median value as text."""
    low, high, middle = (f"{value:{spec}}" for value in (min(values), max(values), median(values)))
    return low if low == high else f"{low} to {high} (median {middle})"


def _describe_power_methods(powers: PowerResults) -> Iterator[str]:
    """Yield the methods used, and their limitations."""
    methods = {power.method for power in powers if power.reachable is not None}
    if SIMULATED in methods:
        n = max(power.n_samples for power in powers)
        yield (
            f"simulated: {n:,} samples (seed {powers.seed}) of the units, reweighted to the difference (exponential "
            "tilting); ± and intervals are 95 %, of the simulation alone"
        )
    if EXACT in methods:
        yield "exact: for scores of 0 or 1 (or two values), the power of a sign test"
    if any(power.is_needed_uncertain or power.is_detectable_uncertain for power in powers):
        yield f"note: ~: after reweighting, like fewer than {FEW_EFFECTIVE:g} units. Use a larger sample"
    by_text: dict[str, list[Power]] = {}
    for power in powers:
        if power.note is not None:
            by_text.setdefault(power.note.partition(":")[0], []).append(power)  # such notes differ only in numbers
    for text, noted in by_text.items():
        pairs = format_list([f"{power.a} and {power.b}" for power in noted], MAX_NOTED, "; ")
        yield f"note: {pairs}: {noted[0].note if len(noted) == 1 else text}"
    yield from (f"note: {note}" for note in powers.notes if not isinstance(note, ScopeNote))


# Tests of independence


def build_independence_table(results: IndependenceResults) -> DocumentTable:
    """Return a table of scores, the scores expected by chance, and p-values."""
    alpha = results.alpha
    verdicts = [r.verdict(alpha) for r in results]
    marks = [SIGNIFICANT if v == "significant" else UNDECIDED if v.startswith("undecided") else "" for v in verdicts]
    columns = [
        *build_columns(results, {
            "A": "a", "B": "b", "metric": "metric",
            "score": lambda r: format_score(r.score), "by chance": _format_by_chance,
        }),
        *build_p_columns(
            [format_p_cell(r.p_value, alpha) for r in results],
            [format_p_cell(r.p_adjusted, alpha) for r in results],
            marks,
        ),
        Column("method", [_format_method(r) for r in results], is_name=True),
    ]  # fmt: skip
    adjustment = ADJUSTMENTS.get(results.adjust)
    adjusted = f"p adjusted by {adjustment.label}" if adjustment else "not adjusted"
    legend = [f"{SIGNIFICANT} significant at {alpha:g}, {adjusted} for the number of tests"]
    legend += [f"{UNDECIDED} undecided at {alpha:g}"] if UNDECIDED in marks else []
    note = f"Label permutation, {results[0].alternative}. {_describe_version(results.seed)}"
    return DocumentTable.of("labellings, with the score expected by chance", columns, legend, note)


def _format_by_chance(r: Independence) -> str:
    """Return the score by chance as text; rounding errors of a score around 0 are written as 0."""
    return format_score(round(r.expected, 12) + 0.0)


def _format_method(r: Independence) -> str:
    return "exact" if r.method == "exact" else format_count(r.n_trials or 0, "trial")


def _iter_independence_blocks(results: IndependenceResults) -> Iterator[Block]:
    """Yield tests of independence: a sentence for each, the table, and the test."""
    if len(results) <= MAX_SENTENCES:
        yield "\n".join(line for r in results for line in _describe_independence(r, results.alpha))
    table = build_independence_table(results)
    yield table
    yield "\n".join([*list_alarms(results), *table.note])


def _describe_independence(r: Independence, alpha: float) -> Iterator[str]:
    verdict = r.verdict(alpha)
    level = "" if verdict.startswith("undecided") else f" at {alpha:g}"
    adjusted = "" if r.p_adjusted is None else f", adjusted {format_p_equals(r.p_adjusted, alpha)}"
    strata = "" if r.within is None else f", permuted within {r.n_strata:,} values of {r.within}"
    yield (
        f"{r.metric}: {r.a} against {r.b}, {format_score(r.score)}, where independent labels score "
        f"{_format_by_chance(r)}; {format_p_equals(r.p_value, alpha)} ({_format_method(r)}; {r.alternative}; "
        f"{format_count(r.n_items, 'item')}{strata}){adjusted}: {verdict}{level}."
    )
    yield from (f"    note: {warning}" for warning in r.warnings)


# Candidate rankings


def build_evaluation_tables(evaluation: RankingEvaluation) -> list[DocumentTable]:
    """Return a table of each measure's precision of the n best, and one that compares average precisions."""
    tables = [_build_precision_table(evaluation, everything=True)]
    return [*tables, _build_average_table(evaluation)] if evaluation.average_precision else tables


def _build_precision_table(evaluation: RankingEvaluation, *, everything: bool) -> DocumentTable:
    rows = evaluation.precision or evaluation.sampled
    measures = sorted(evaluation.measures, key=lambda m: -np.nan_to_num(m.average_precision))
    columns = build_columns(measures, {"measure": "measure"})
    average = np.array([m.average_precision for m in measures])
    if not np.isnan(average).any():
        columns.append(Column("AP", [*map(format_score, average.tolist())], bold=find_best(average)))
    by_key = {(row.measure, row.n): row for row in rows}
    for n in _select_cutoffs(rows, everything=everything):
        found = [by_key.get((m.measure, n)) for m in measures]
        best = find_best(np.array([row.precision if row else math.nan for row in found]))
        columns.append(Column(f"n = {n:,}", [*map(_format_precision, found)], bold=best))
    source = ", extrapolated from the judged candidates" if evaluation.sampled else ""
    title = f"n-best precision in %, with its {100 * evaluation.confidence:g} % interval{source}"
    note = (
        f"{evaluation.n_candidates:,} candidates, {evaluation.n_true:,} of them true. Ties: {evaluation.ties}. "
        f"{_describe_version(evaluation.seed)}"
    )
    return DocumentTable.of(title, columns, note=note)


def _format_precision(row: Precision | SampledPrecision | None) -> str:
    """Return precision and its interval in percent; that is whole, rounded outwards."""
    if row is None:
        return NO_SCORE
    if isinstance(row, SampledPrecision) and not row.n_judged:
        return "none judged"
    return f"{100 * row.precision:.1f} ({math.floor(100 * row.low + 1e-9)}-{math.ceil(100 * row.high - 1e-9)})"


def _select_cutoffs(rows: Sequence[Precision | SampledPrecision], *, everything: bool) -> list[int]:
    """Return the values of n to show: all, or a few of many that include the smallest and the largest."""
    cutoffs = sorted({row.n for row in rows})
    if everything or len(cutoffs) <= MAX_CUTOFFS:
        return cutoffs
    return [cutoffs[round(k * (len(cutoffs) - 1) / (MAX_CUTOFFS - 1))] for k in range(MAX_CUTOFFS)]


def _build_average_table(evaluation: RankingEvaluation) -> DocumentTable:
    pairs, alpha = evaluation.average_precision, evaluation.alpha
    difference = np.array([row.difference for row in pairs])
    scores = build_columns(pairs, {
        "A": "a", "B": "b", "AP of A": lambda row: format_score(row.average_precision_a),
        "AP of B": lambda row: format_score(row.average_precision_b), "A - B": lambda row: f"{row.difference:+.4f}",
    })  # fmt: skip
    columns = [
        *scores[:2],
        replace(scores[2], bold=difference > 0),
        replace(scores[3], bold=difference < 0),
        scores[4],
        *build_p_columns(
            [format_p(row.p_value, alpha) for row in pairs],
            [format_p(row.p_adjusted, alpha) for row in pairs],
            [SIGNIFICANT * (row.p_adjusted <= alpha) for row in pairs],
        ),
    ]
    trials = format_count(evaluation.n_trials, "trial")
    note = f"Ranks are swapped at random, {trials}; p adjusted by step-down max-T. {_describe_version(evaluation.seed)}"
    legend = [f"{SIGNIFICANT} significant at {alpha:g}"]
    return DocumentTable.of("measures compared by average precision", columns, legend, note)


def _iter_evaluation_blocks(evaluation: RankingEvaluation, *, everything: bool) -> Iterator[Block]:
    """Yield which measure is better at which n, and how certain this is."""
    judged = "" if evaluation.n_judged == evaluation.n_candidates else f", {evaluation.n_judged:,} of them judged"
    true = f"{evaluation.n_true:,} are true ({100 * evaluation.n_true / evaluation.n_judged:.1f} %)"
    measures = format_count(len(evaluation.measures), "measure")
    lines = [f"{measures} of {evaluation.n_candidates:,} candidates{judged}: {true}"]
    known = [m for m in evaluation.measures if not math.isnan(m.average_precision)]
    if known:
        names = [f"{m.measure} {m.average_precision:.4f}" for m in sorted(known, key=lambda m: -m.average_precision)]
        lines.append(f"best by average precision: {format_list(names, limit=3)}")
    lines += [_describe_significance(evaluation)] if evaluation.differences else []
    yield "\n".join(lines)
    yield _build_precision_table(evaluation, everything=everything)
    if evaluation.differences:
        yield _cut(_build_pair_table(evaluation), everything=everything)
        trials = f"{format_count(evaluation.n_trials, 'trial')}, seed {evaluation.seed}"
        yield f"test: ranks are swapped for all n at once; step-down max-T, {trials}; ties: {evaluation.ties}"


def _describe_significance(evaluation: RankingEvaluation) -> str:
    n, level = len(evaluation.differences), f"{evaluation.alpha:g}"
    n_adjusted = sum(row.p_adjusted <= evaluation.alpha for row in evaluation.differences)
    n_single = sum(row.p_fisher <= evaluation.alpha for row in evaluation.differences)
    return (
        f"{n_adjusted:,} of {format_count(n, 'difference')} of precision {'is' if n_adjusted == 1 else 'are'} "
        f"significant at {level} over all pairs and n together ({n_single:,} by Fisher's test of each one separately)"
    )


def _build_pair_table(evaluation: RankingEvaluation) -> DocumentTable:
    """Return a table of pairs of measures with the values of n at which one is significantly better."""
    by_pair: dict[tuple[str, str], list[Difference]] = {}
    for row in evaluation.differences:
        by_pair.setdefault((row.a, row.b), []).append(row)
    average = {(row.a, row.b): row for row in evaluation.average_precision}
    better = [[_list_better(rows, sign, evaluation.alpha) for rows in by_pair.values()] for sign in (1, -1)]
    columns = [Column(name, [pair[k] for pair in by_pair], is_name=True) for k, name in enumerate("AB")]
    columns += [Column(f"{n} better at n", texts, is_name=True) for n, texts in zip("AB", better, strict=True)]
    if average:
        rows = [average[pair] for pair in by_pair]
        columns.append(Column("AP: A - B", [f"{row.difference:+.4f}" for row in rows]))
        columns.append(Column("adjusted p", [format_p(row.p_adjusted, evaluation.alpha) for row in rows]))
    title = f"which measure is better, at {evaluation.alpha:g} over all pairs and n together"
    return DocumentTable.of(title, columns)


def _list_better(rows: Sequence[Difference], sign: int, alpha: float) -> str:
    """Return the values of n at which A (or B) is significantly better; three or more in a row become a range."""
    is_better = [row.p_adjusted <= alpha and sign * row.difference > 0 for row in rows]
    if all(is_better) and len(rows) > 1:
        return "all"
    runs: list[list[int]] = []
    for k, row in enumerate(rows):
        if is_better[k]:
            if k and is_better[k - 1]:
                runs[-1].append(row.n)
            else:
                runs.append([row.n])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(parts) or NO_SCORE


def _iter_sample_blocks(samples: RepeatedSamples) -> Iterator[Block]:
    """Yield the validation by repeated samples: observed and predicted variation, and a histogram."""
    for validated in samples.found:
        yield "\n".join(_describe_samples(validated, samples.confidence))
        bars = validated.histogram
        edges = zip(bars.edges[:-1].tolist(), bars.edges[1:].tolist(), strict=True)
        columns = [
            Column("precision", [f"{low:.3f}-{high:.3f}" for low, high in edges]),
            Column("found", [str(n) for n in bars.observed.tolist()]),
            Column("expected", [f"{n:.1f}" for n in bars.expected.tolist()]),
        ]
        fit = f"fit: chi2 = {bars.chi2:.1f} with {bars.df} degrees of freedom, {format_p_equals(bars.p_value)}"
        yield DocumentTable.of("samples by precision", columns, [] if math.isnan(bars.chi2) else [fit])
    yield "model: T of N accepted candidates is Bin(N, p), with one p for all samples, the precision of all together"


def _describe_samples(validated: AcceptanceSet, confidence: float) -> Iterator[str]:
    d = validated.dispersion
    setting = f"n = {validated.n:,}" if validated.cutoff is None else f"cutoff {validated.cutoff:g}"
    varies = "vary as the model says"
    if d.p_value < 0.05:
        varies = f"vary more than the model says, by {d.factor:.2f} in variance"
    yield f"{validated.measure}, {setting}: {d.n_samples:,} samples accept {d.accepted:.1f} candidates on average"
    yield f"precision of all together: {d.precision:.4f}"
    yield f"standard deviation of precision: {d.deviation:.4f}, predicted {d.predicted:.4f}, ratio {d.ratio:.3f}"
    yield f"chi2 = {d.chi2:.1f} with {d.df} degrees of freedom, {format_p_equals(d.p_value)}: precisions {varies}"
    n_expected = validated.intervals.expected
    yield f"{_describe_outside('intervals', validated.intervals, confidence)} ({n_expected:.1f} expected)"
    if d.factor > 1:
        yield _describe_outside(f"intervals widened by {d.factor:.2f}", validated.widened, confidence)


def _describe_outside(noun: str, coverage: IntervalCoverage, confidence: float) -> str:
    return (
        f"{100 * confidence:g} % {noun} that miss it: {coverage.n_outside} of {coverage.n_samples}, "
        f"{format_p_equals(coverage.p_value)} (exact binomial)"
    )
