"""Paper tables of rankings, candidate rankings, tests of independence, and power."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from sigdask.report.tables.cells import describe_groups, format_groups
from sigdask.report.tables.comparisons import NO_SCORE, SIGNIFICANT, UNDECIDED, build_p_columns, format_numbers
from sigdask.report.tables.model import PaperTable, TableColumn, TableSection, build_name_columns, collect_numbers
from sigdask.report.wording import ADJUSTMENTS, find_citations
from sigdask.results.comparisons import get_version
from sigdask.statistics.ranking_letters import find_best
from sigdask.text import format_count, format_list

if TYPE_CHECKING:
    from sigdask.analysis.candidate_rankings.spec import RankingEvaluation
    from sigdask.analysis.independence import IndependenceResults
    from sigdask.analysis.power import PowerResults
    from sigdask.results.ranking import SystemRanking
    from sigdask.statistics.power import Estimate


def build_ranking_table(ranking: SystemRanking) -> PaperTable:
    """Return a table of systems by score, with their letters."""
    systems = ranking.systems
    columns = (
        *([] if ranking.grouping != "ranks" else [TableColumn("cluster", [f"{ranked.cluster}" for ranked in systems])]),
        TableColumn("rank", [f"{ranked.rank}" for ranked in systems]),
        *build_name_columns(systems, system="system"),
        TableColumn(
            ranking.metric, format_numbers(collect_numbers(systems, "score")),
            bold=collect_numbers(systems, "rank") == 1, marks=format_groups(ranking),
        ),
    )  # fmt: skip
    places = [ranking.test_set] if ranking.test_set else []
    places += [f"{ranking.subset['column']}: {ranking.subset['value']}"] if ranking.subset else []
    legend = ("Best scores in bold.", f"{describe_groups(ranking).capitalize()}.")
    title = f"Ranking by {ranking.metric}{f' on {format_list(places)}' if places else ''}."
    return PaperTable(title, (TableSection("", columns),), legend)


def build_evaluation_tables(evaluation: RankingEvaluation) -> list[PaperTable]:
    """Return a table of each measure's precision of the n best, and tables that compare average precisions."""
    rows = evaluation.precision or evaluation.sampled
    measures = sorted(evaluation.measures, key=lambda entry: -entry.average_precision)
    columns = build_name_columns(measures, measure="measure")
    average = collect_numbers(measures, "average_precision")
    if not np.isnan(average).any():
        columns.append(TableColumn("AP", format_numbers(average), bold=find_best(average)))
    precision = {(row.measure, row.n): 100 * row.precision for row in rows}
    for n in sorted({row.n for row in rows}):
        values = np.array([precision.get((name, n), math.nan) for name in columns[0].texts])
        columns.append(TableColumn(f"n = {n:,}", format_numbers(values, 1), bold=find_best(values)))
    title = (
        f"Precision in % of the n best of {evaluation.n_candidates:,} candidates, {evaluation.n_true:,} of them true."
    )
    method = (f"Ties: {evaluation.ties}. sigdask {get_version()}, seed {evaluation.seed}.",)
    tables = [
        PaperTable(title, (TableSection("", tuple(columns)),), ("Best in bold.",), method, ("evert2004", "sigdask"))
    ]
    return [*tables, _build_average_precision_table(evaluation)] if evaluation.average_precision else tables


def _build_average_precision_table(evaluation: RankingEvaluation) -> PaperTable:
    pairs, alpha = evaluation.average_precision, evaluation.alpha
    difference, p_value, p_adjusted = (collect_numbers(pairs, n) for n in ("difference", "p_value", "p_adjusted"))
    marks = [SIGNIFICANT if p <= alpha else "" for p in p_adjusted.tolist()]
    columns = (
        *build_name_columns(pairs, A="a", B="b"),
        TableColumn("AP of A", format_numbers(collect_numbers(pairs, "average_precision_a")), bold=difference > 0),
        TableColumn("AP of B", format_numbers(collect_numbers(pairs, "average_precision_b")), bold=difference < 0),
        TableColumn("A - B", format_numbers(difference, sign=True)),
        *build_p_columns(p_value, p_adjusted, alpha, marks),
    )
    trials = format_count(evaluation.n_trials, "trial")
    method = (
        f"Ranks are swapped at random, {trials}; p adjusted by step-down max-T over all pairs.",
        f"sigdask {get_version()}, seed {evaluation.seed}.",
    )
    legend = ("Better in bold.", f"{SIGNIFICANT}: significant at {alpha:g}.")
    title = "Measures compared by average precision."
    cited = ("noreen1989", "yeh2000", "westfall1993", "romano2005", "sigdask")
    return PaperTable(title, (TableSection("", columns),), legend, method, cited)


def build_independence_table(results: IndependenceResults) -> PaperTable:
    """Return a table of scores, the scores expected by chance, and p-values."""
    verdicts = [result.verdict(results.alpha) for result in results]
    marks = [SIGNIFICANT if v == "significant" else UNDECIDED if v.startswith("undecided") else "" for v in verdicts]
    p, adjusted = collect_numbers(results, "p_value"), collect_numbers(results, "p_adjusted")
    columns = (
        *build_name_columns(results, A="a", B="b", metric="metric"),
        TableColumn("score", format_numbers(collect_numbers(results, "score"))),
        TableColumn("by chance", format_numbers(collect_numbers(results, "expected") + 0.0)),
        *build_p_columns(p, adjusted, results.alpha, marks),
    )
    trials = [result.n_trials for result in results if result.method != "exact" and result.n_trials]
    sampled = f"; others by {max(trials):,} random permutations" if trials else ""
    n_exact = sum(result.method == "exact" for result in results)
    sides = " and ".join(dict.fromkeys(result.alternative for result in results))
    method = (
        f"Label permutation, {sides}; exact p of {n_exact:,} of {format_count(len(results), 'test')}{sampled}.",
        f"sigdask {get_version()}, seed {results.seed}.",
    )
    adjustment = ADJUSTMENTS.get(results.adjust)
    adjust_text = f"p adjusted by {adjustment.name}" if adjustment else "not adjusted"
    legend = (f"{SIGNIFICANT}: significant at {results.alpha:g}, {adjust_text} for the number of tests.",)
    cited = ("fisher1935", "noreen1989", *(find_citations(adjustment.sentence) if adjustment else ()), "sigdask")
    return PaperTable(
        "Labellings, with the score expected by chance.", (TableSection("", columns),), legend, method, cited
    )


def build_power_table(results: PowerResults) -> PaperTable:
    """Return a table of the units needed to detect differences, and of the differences that units detect."""
    columns = [
        *build_name_columns(results, A="a", B="b", metric="metric"),
        TableColumn("A - B", format_numbers(collect_numbers(results, "difference"), sign=True)),
    ]
    if differences := _list_distinct(result.wanted_difference for result in results):
        name = f"units for {differences[0]:g}" if len(differences) == 1 else "units needed"
        columns.append(TableColumn(name, [_format_estimate(result.needed, ",.0f") for result in results]))
    units = _list_distinct(result.n_asked for result in results)
    name = f"found by {units[0]:,}" if len(units) == 1 else "found by those asked about"
    columns.append(TableColumn(name, [_format_estimate(result.detectable, ".3g") for result in results]))
    powers = " and ".join(f"{100 * power:g} %" for power in sorted({result.power for result in results}))
    levels = " and ".join(f"{level:.3g}" for level in sorted({result.level for result in results}))
    title = "Units needed to detect differences, and differences that these units detect."
    notes = _list_distinct(getattr(result, "note", None) or None for result in results)
    legend = (f"{NO_SCORE}: none.", *(f"{note}." for note in notes))
    method = (
        f"With power {powers} at {levels}; pairs of units are drawn from those observed, reweighted to the difference.",
        f"sigdask {get_version()}, seed {results.seed}.",
    )
    return PaperTable(title, (TableSection("", tuple(columns)),), legend, method, ("noreen1989", "yeh2000", "sigdask"))


def _format_estimate(estimate: Estimate | None, form: str) -> str:
    return NO_SCORE if estimate is None or not math.isfinite(estimate.value) else format(estimate.value, form)


def _list_distinct(values: Iterable[Any]) -> list[Any]:
    return [value for value in dict.fromkeys(values) if value is not None]
