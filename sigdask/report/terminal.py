"""Results as a table and sentences on a terminal or in a pipe.

Names come from files: they are printed as they are, never read as markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sigdask.comparison.found.ranking import Ranking
from sigdask.comparison.found.result import Result
from sigdask.comparison.presented.cells import how, interval_text, letters_text, p_cell, score_text
from sigdask.comparison.presented.words import beside_text, citation, is_adjusted, size_text, standing
from sigdask.comparison.results import ResultAcrossSets, Results
from sigdask.report import classical
from sigdask.report.layout import lay_out
from sigdask.report.trials import trials_text
from sigdask.statistics.classical.correlation import inflation
from sigdask.statistics.rounding import p_equals
from sigdask.writing import printable

SHOWN = 40
"""Comparisons, rankings and systems of each shown unless all are asked for."""

IN_SENTENCES = 12
"""Comparisons that are told in sentences as well, at most."""

MOST_ALARMS = 100
"""Comparisons whose cross-checks disagree that are named."""


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
    rows = [[str(s.rank), s.system, score_text(s.score), letters_text(s.letters)] for s in ranking.systems[:SHOWN]]
    letters = "systems that share a letter are not told apart"
    if not any(s.letters for s in ranking.systems):
        letters = "no letters, since too many groups of systems are not told apart"
    yield printable(f"{name}ranking by {ranking.metric}{where}; {letters}")
    yield from ("", lay_out(["rank", "system", "score", "groups"], rows, width), "")
    if len(ranking.systems) > SHOWN:
        yield f"and {len(ranking.systems) - SHOWN} more (--json FILE keeps them)"
    yield f"discriminative power {ranking.discriminative_power:.1%}: pairs with unadjusted p at most {results.alpha:g}"
    yield ""


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
        yield printable(f"    by {b.unit} ({b.n_units:,} units) instead of {r.unit}: {beside_text(b, alpha)}")
    for note in r.warnings:
        yield printable(f"    note: {note}")


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
