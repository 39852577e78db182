"""Results as a table and sentences on a terminal or in a pipe.

Names come from files: they are printed as they are, never read as markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sigdask.comparison.found.ranking import Ranking
from sigdask.comparison.found.result import Beside, Result
from sigdask.comparison.results import ResultAcrossSets, Results, made_by
from sigdask.comparison.table import Table
from sigdask.randomization.shuffles import SCHEME
from sigdask.report import classical
from sigdask.report.layout import lay_out
from sigdask.report.text import printable
from sigdask.report.trials import trials_text
from sigdask.statistics.bounds import interval
from sigdask.statistics.classical.correlation import inflation
from sigdask.statistics.rounding import limits_text, p_equals, p_text

MOST_LETTERS = 20

SHOWN = 40
"""Comparisons, rankings and systems of each shown unless all are asked for."""

IN_SENTENCES = 12
"""Comparisons that are told in sentences as well, at most."""

MOST_ALARMS = 100
"""Comparisons whose cross-checks disagree that are named."""


def how(result: Result) -> str:
    """Say how p was had."""
    early = "stopped after " if result.stopped is not None and result.stopped.is_early else ""
    if result.method == "exact":
        return "exact"
    return "bounds" if is_bounded(result) else f"{early}{result.n_trials:,} trials"


def is_bounded(result: Result) -> bool:
    """Say whether p is known between limits alone, without trials."""
    return result.exact is not None and not result.n_trials


def chance(result: Result, alpha: float) -> str:
    """Say what p is and how far trials tell it, or between which limits it lies where a rule gives no more.

    Parameters
    ----------
    result : Result
        The comparison.
    alpha : float
        What its p is held against.
    """
    return f"{_p(result, alpha)} ({_known(result, alpha)})"


def confidence(result: Result) -> str:
    """Write the confidence of the interval of p: a confidence sequence's is 1 - epsilon."""
    risk = None if result.stopped is None else result.stopped.epsilon
    return f"{100 * (1 - risk):g} %" if risk is not None and math.isnan(result.p_value) else "99 %"


def _p(result: Result, alpha: float) -> str:
    label = "" if result.p_adjusted is None else "unadjusted "
    if math.isnan(result.p_value):
        return f"{label}p in {limits_text(*result.p_interval, alpha)}"
    return f"{label}{p_equals(result.p_value, alpha)}"


def _known(result: Result, alpha: float) -> str:
    if result.method == "exact":
        return "exact"
    if is_bounded(result):
        return f"exact p between {limits_text(*result.p_interval, alpha)}"
    if math.isnan(result.p_value):
        return f"{confidence(result)} interval; {how(result)}"
    return f"{confidence(result)} interval {limits_text(*result.p_interval, alpha)}; {how(result)}"


def render(results: Results, *, everything: bool = False, width: int | None = None) -> str:
    """Return the report as text.

    Parameters
    ----------
    results : Results
        What was found.
    everything : bool
        Show all comparisons; otherwise the 40 smallest p of a larger number.
    width : int, optional
        Columns of the terminal; unlimited when None (a pipe).
    """
    shown = _shown(results, everything=everything)
    lines = [_table(shown, results.alpha, width), ""]
    if len(shown) < len(results):
        lines += [
            f"{_summary(results)}; the {len(shown)} smallest p are shown (--all shows all, --json FILE keeps them)",
            "",
        ]
    lines += classical.text(shown, results.alpha, width, everything=everything)
    lines += _rankings(results, width, everything=everything)
    lines += _together(results, width, everything=everything)
    lines += [line for text in trials_text(results) for line in (text, "")]
    if len(shown) <= IN_SENTENCES:
        lines += [line for result in shown for line in _sentences(result, results.alpha)] + [""]
    lines += _alarms(results) + _signatures(results)
    lines.append(citation(results))
    return "\n".join(lines)


def _summary(results: Results) -> str:
    table = results.table
    n = np.count_nonzero(np.where(np.isnan(table.p_value), table.decision == 1, table.p_value <= results.alpha))
    text = f"{len(results):,} comparisons, {n:,} with {_aside(is_adjusted(table))}p at most {results.alpha:g}"
    if results.family is not None:
        m = np.count_nonzero(~(table.p_adjusted > results.alpha))
        text += f", {m:,} with adjusted p ({results.family.adjust})"
    return text


def is_adjusted(table: Table) -> bool:
    """Say whether some p was adjusted."""
    return not bool(np.isnan(table.p_adjusted).all())


def _unadjusted(results: Sequence[Result] | Sequence[ResultAcrossSets]) -> str:
    """Return what tells p apart where an adjusted one stands beside it."""
    return _aside(any(r.p_adjusted is not None for r in results))


def _aside(is_adjusted: bool) -> str:
    return "unadjusted " if is_adjusted else ""


def _shown(results: Results, *, everything: bool) -> Sequence[Result]:
    """Return what is shown: by default those of the smallest p, of equal ones the largest differences."""
    if everything or len(results) <= SHOWN:
        return [*results]
    table = results.table
    order = np.where(np.isnan(table.p_value), table.p_high, table.p_value)  # a rule may give an interval alone
    by = (-np.abs(table.difference), order, np.nan_to_num(table.p_adjusted, nan=0.0))
    return [*table.take(np.lexsort(by)[:SHOWN]).results()]


def _table(shown: Sequence[Result], alpha: float, width: int | None) -> str:
    with_set = len({r.test_set for r in shown}) > 1
    with_subset = any(r.subset for r in shown)
    unadjusted, sure = _unadjusted(shown), _confidence(shown)
    names = [*(["test set"] if with_set else []), *(["subset"] if with_subset else [])]
    names += ["A", "B", "metric", "score A", "score B", "A - B"]
    names += [*([sure] if sure else []), f"{unadjusted}p"]
    names += ["adjusted p"] if unadjusted else []
    rows = []
    for r in shown:
        row = [r.test_set] if with_set else []
        row += [r.subset["value"] if r.subset else ""] if with_subset else []
        row += [
            r.a,
            r.b,
            r.metric,
            score_text(r.score_a),
            score_text(r.score_b),
            f"{r.difference:+.4f}",
            *([interval_text(r)] if sure else []),
            p_cell(r.p_value, alpha),
        ]
        row += [p_cell(r.p_adjusted, alpha)] if unadjusted else []
        rows.append([*row, how(r), r.verdict(alpha) + (" !" if r.disagreements() else "")])
    return lay_out([*names, "method", ""], rows, width)


def _confidence(shown: Sequence[Result]) -> str:
    """Return the header of a column of intervals; none where sentences tell them, or there are none."""
    first = next((r.interval for r in shown if r.interval is not None), None)
    return "" if first is None or len(shown) <= IN_SENTENCES else f"{100 * first.confidence:.4g} % interval"


def p_cell(p: float | None, alpha: float) -> str:
    """Return p for a table: nothing where there is none."""
    return "" if p is None or math.isnan(p) else p_text(p, alpha)


def _rankings(results: Results, width: int | None, *, everything: bool) -> list[str]:
    found = results.rankings()
    shown = found if everything else found[:SHOWN]
    lines = [line for ranking in shown for line in _ranking(ranking, results, width)]
    more = len(found) - len(shown)
    return [*lines, f"and {more:,} more rankings (--all shows all, --json FILE keeps them)", ""] if more else lines


def _ranking(ranking: Ranking, results: Results, width: int | None) -> Iterator[str]:
    """Show systems best first; those that share a letter are not told apart."""
    where = f" ({ranking.subset['column']} {ranking.subset['value']})" if ranking.subset else ""
    name = f"{ranking.test_set}: " if ranking.test_set else ""
    rows = [[str(s.rank), s.system, score_text(s.score), _letters(s.letters)] for s in ranking.systems[:SHOWN]]
    letters = "systems that share a letter are not told apart"
    if not any(s.letters for s in ranking.systems):
        letters = "no letters, since too many groups of systems are not told apart"
    yield printable(f"{name}ranking by {ranking.metric}{where}; {letters}")
    yield from ("", lay_out(["rank", "system", "score", "groups"], rows, width), "")
    if len(ranking.systems) > SHOWN:
        yield f"and {len(ranking.systems) - SHOWN} more (--json FILE keeps them)"
    yield f"discriminative power {ranking.discriminative_power:.1%}: pairs with unadjusted p at most {results.alpha:g}"
    yield ""


def _letters(letters: Sequence[str]) -> str:
    """Write letters, not more than can be read."""
    shown = letters[:MOST_LETTERS]
    more = f" and {len(letters) - len(shown)} more" if len(letters) > len(shown) else ""
    return ("" if all(len(x) == 1 for x in shown) else " ").join(shown) + more


def _together(results: Results, width: int | None, *, everything: bool) -> list[str]:
    if not results.together:
        return []
    verdicts: Sequence[ResultAcrossSets] = results.together
    if len(verdicts) > SHOWN and not everything:
        verdicts = sorted(verdicts, key=lambda v: (v.p_adjusted or 0.0, v.p_value))[:SHOWN]
    unadjusted = _unadjusted(results.together)
    names = ["A", "B", "metric", "mean A - B", f"{unadjusted}p", *(["adjusted p"] if unadjusted else [])]
    rows = [
        [
            v.a, v.b, v.metric, f"{v.difference:+.4f}", p_cell(v.p_value, results.alpha),
            *([p_cell(v.p_adjusted, results.alpha)] if unadjusted else []),
            _replicated(v.greater_in, v.n_sets, v.p_greater), _replicated(v.less_in, v.n_sets, v.p_less),
            "exact" if v.method == "exact" else f"{v.n_trials:,} trials",
        ]
        for v in verdicts
    ]  # fmt: skip
    level = results.alpha / 2 if results[0].alternative == "two-sided" else results.alpha
    title = (
        f"over all sets: the mean difference, and in at least how many sets A scores above B, and below, each shown at "
        f"{level:g} for the pair alone"
    )
    lines = [title, lay_out([*names, "A above B in", "below in", "method"], rows, width), ""]
    if len(verdicts) < len(results.together):
        lines += [f"the {SHOWN} smallest p of {len(results.together):,} (--all shows all, --json FILE keeps them)", ""]
    return lines


def _replicated(n: int, n_sets: int, p: float) -> str:
    return f"{n} of {n_sets}" + (f" ({p_equals(p)})" if n else "")


def score_text(score: float) -> str:
    """Write a score with four decimals; a large one with six digits."""
    return f"{score:.4f}" if abs(score) < 1e6 else f"{score:.6g}"


def _sentences(r: Result, alpha: float) -> Iterator[str]:
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
        yield printable(f"    by {b.unit} ({b.n_units:,} units) instead of {r.unit}: {_beside(b, alpha)}")
    for note in r.warnings:
        yield printable(f"    note: {note}")


METHODS = {
    "bootstrap-bca": "BCa bootstrap",
    "bootstrap-percentile": "percentile bootstrap",
    "tango": "Tango's score interval",
    "inversion": "the test inverted",
    "normal": "normal, by the jackknife",
}
"""Words for how intervals are had."""


def size_text(r: Result) -> str:
    """Say how large the difference is, and how sure that is."""
    own = r.interval
    assert own is not None
    what = "trials" if own.method == "inversion" else "resamples"
    drawn = "" if own.n_resamples is None else f", {own.n_resamples:,} {what}"
    d = "" if r.paired_d is None else f"; paired d {r.paired_d:+.2f}"
    return (
        f"{r.a} - {r.b} = {_signed(r.difference)}, {100 * own.confidence:.4g} % interval {interval_text(r)} "
        f"({METHODS.get(own.method, own.method)} by {r.unit}{drawn}){d}"
    )


def interval_text(r: Result) -> str:
    """Write the ends of the difference's interval; nothing where there is none."""
    if r.interval is None:
        return ""
    low, high = r.interval.low, r.interval.high
    return "without bound" if math.isinf(low) and math.isinf(high) else f"{_signed(low)} to {_signed(high)}"


def interval_cell(r: Result) -> str:
    """Write the ends of the difference's interval and how it was had, for a table; nothing where there is none."""
    if r.interval is None:
        return ""
    return (
        f"{interval_text(r)} ({100 * r.interval.confidence:.4g} %, {METHODS.get(r.interval.method, r.interval.method)})"
    )


def _signed(score: float) -> str:
    return format(score, "+.4f" if abs(score) < 1e6 else "+.6g")


def standing(r: Result, alpha: float) -> str:
    """Say which system scores better, by what p, and what that means: of an adjusted p, where there is one."""
    better = r.better()
    if better is None:
        return f"{r.a} and {r.b} score the same, {score_text(r.score_a)}."
    other, own, against = (r.b, r.score_a, r.score_b) if better == r.a else (r.a, r.score_b, r.score_a)
    verdict = r.verdict(alpha)
    words, aside = "is better than", ""
    if not r.decision(alpha):
        words = f"scores {'higher' if r.higher_is_better else 'lower'} than"
        aside = "" if r.higher_is_better else " (lower is better)"
    sided = {"two-sided": "two-sided", "greater": "one-sided, A > B", "less": "one-sided, A < B"}[r.alternative]
    adjusted = "" if r.p_adjusted is None else f"; adjusted {p_equals(r.p_adjusted, alpha)}"
    return (
        f"{better} {words} {other}, {score_text(own)} against {score_text(against)}{aside}; {_p(r, alpha)} "
        f"({_known(r, alpha)}; {sided}; {r.n_discordant:,} of {r.n_units:,} units differ){adjusted}: "
        f"{verdict}{'' if r.decision(alpha) is None else f' at {alpha:g}'}."
    )


def _beside(b: Beside, alpha: float) -> str:
    """Say what p is with another unit."""
    if b.method == "exact":
        return f"{p_equals(b.p_value, alpha)} (exact)"
    low, high = map(float, interval(b.n_extreme, b.n_trials))
    limits = limits_text(low, high, alpha)
    return f"{p_equals(b.p_value, alpha)} (99 % interval {limits}; {b.n_trials:,} trials)"


def _alarms(results: Results) -> list[str]:
    alarming = np.flatnonzero(results.table.disagrees)
    lines = [
        printable(f"!!! CROSS-CHECK DISAGREES: {r.a} and {r.b} by {r.metric}: {check.name}: {check.detail}")
        for r in results.table.take(alarming[:MOST_ALARMS]).results()
        for check in r.disagreements()
    ]
    if len(alarming) > MOST_ALARMS:
        lines.append(f"!!! and cross-checks of {len(alarming) - MOST_ALARMS:,} more comparisons")
    return [*lines, "!!! Do not use these p-values; run `sigdask verify` and report this.", ""] if lines else []


def _signatures(results: Results) -> list[str]:
    """Say once for each metric how the scorer library counted."""
    table = results.table
    found = (table.metric.values[code] for code in np.unique(table.metric.codes).tolist())
    known = {score.name: score.signature for score in found if score.signature is not None}
    return [printable(f"{metric}: {signature}") for metric, signature in known.items()]


def citation(results: Results) -> str:
    """Say what makes the results repeatable."""
    table = results.table
    return printable(
        f"sigdask {made_by()}, scheme {SCHEME}, seed {results.seed}: stratified shuffling by {table.unit[0]}, "
        f"{table.alternative[0]}, alpha {results.alpha:g}{_family(results)}"
    )


def _family(results: Results) -> str:
    note = results.family
    if note is None:
        return ""
    counted = "" if note.n_trials is None else f", {note.n_trials:,} {'arrangements' if note.exact else 'trials'}"
    return f"; p adjusted by {ADJUSTED[note.adjust]} over {note.n_comparisons:,} comparisons{counted}"


ADJUSTED = {
    "holm": "Holm",
    "hochberg": "Hochberg",
    "bh": "Benjamini-Hochberg (false discovery rate)",
    "by": "Benjamini-Yekutieli (false discovery rate)",
    "max-t": "step-down max-T on shared swaps",
    "max-t:raw": "step-down max-T, not studentised, on shared swaps",
    "single-step-max-t": "single-step max-T on shared swaps",
    "tukey": "randomised Tukey HSD",
}
