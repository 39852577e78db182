"""Paper tables of rankings, candidate rankings, tests of independence, and power."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sigdask.report.tables.cells import format_letters
from sigdask.report.tables.comparisons import NO_SCORE, SIGNIFICANT, UNDECIDED, format_numbers, format_p_values
from sigdask.report.tables.model import PaperTable, TableColumn, TableSection
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
        TableColumn("rank", [f"{ranked.rank}" for ranked in systems]),
        TableColumn("system", [ranked.system for ranked in systems], is_name=True),
        TableColumn(
            ranking.metric, format_numbers(np.array([ranked.score for ranked in systems]), None),
            bold=np.array([ranked.rank == 1 for ranked in systems], np.bool_),
            marks=[format_letters(ranked.letters) for ranked in systems],
        ),
    )  # fmt: skip
    places = [ranking.test_set] if ranking.test_set else []
    places += [f"{ranking.subset['column']}: {ranking.subset['value']}"] if ranking.subset else []
    legend = ("Best scores in bold.", "Systems that share a letter are not significantly different.")
    title = f"Ranking by {ranking.metric}{f' on {format_list(places)}' if places else ''}."
    return PaperTable(title, (TableSection("", columns),), legend)


def build_evaluation_tables(evaluation: RankingEvaluation) -> list[PaperTable]:
    """Return a table of each measure's precision of the n best, and tables that compare average precisions."""
    rows = evaluation.precision or evaluation.sampled
    measures = sorted(evaluation.measures, key=lambda entry: -entry.average_precision)
    names = [entry.measure for entry in measures]
    columns = [TableColumn("measure", names, is_name=True)]
    average = np.array([entry.average_precision for entry in measures])
    if not np.isnan(average).any():
        columns.append(TableColumn("AP", format_numbers(average, None), bold=find_best(average)))
    precision = {(row.measure, row.n): 100 * row.precision for row in rows}
    for n in sorted({row.n for row in rows}):
        values = np.array([precision.get((name, n), math.nan) for name in names])
        columns.append(TableColumn(f"n = {n:,}", format_numbers(values, 1), bold=find_best(values)))
    title = (
        f"Precision in % of the n best of {evaluation.n_candidates:,} candidates, {evaluation.n_true:,} of them true."
    )
    method = (f"Ties: {evaluation.ties}. sigdask {get_version()}, seed {evaluation.seed}.",)
    tables = [
        PaperTable(title, (TableSection("", tuple(columns)),), ("Best in bold.",), method, ("evert2004", "sigdask"))
    ]
    return [*tables, *_build_average_precision_tables(evaluation)]


def _build_average_precision_tables(evaluation: RankingEvaluation) -> Iterator[PaperTable]:
    pairs = evaluation.average_precision
    if not pairs:
        return
    values = {
        name: np.array([getattr(pair, name) for pair in pairs], np.float64)
        for name in ("average_precision_a", "average_precision_b", "difference", "p_value", "p_adjusted")
    }
    columns = (
        TableColumn("A", [pair.a for pair in pairs], is_name=True),
        TableColumn("B", [pair.b for pair in pairs], is_name=True),
        TableColumn("AP of A", format_numbers(values["average_precision_a"], None), bold=values["difference"] > 0),
        TableColumn("AP of B", format_numbers(values["average_precision_b"], None), bold=values["difference"] < 0),
        TableColumn("A - B", format_numbers(values["difference"], None, sign=True)),
        TableColumn("p", format_p_values(values["p_value"], evaluation.alpha), is_p=True),
        TableColumn(
            "adjusted p", format_p_values(values["p_adjusted"], evaluation.alpha), is_p=True,
            marks=[SIGNIFICANT if pair.p_adjusted <= evaluation.alpha else "" for pair in pairs],
        ),
    )  # fmt: skip
    method = (
        (
            f"Ranks are exchanged at random, {format_count(evaluation.n_trials, 'trial')}; p adjusted by step-down "
            "max-T over "
            "all pairs."
        ),
        f"sigdask {get_version()}, seed {evaluation.seed}.",
    )
    legend = ("Better in bold.", f"{SIGNIFICANT}: significant at {evaluation.alpha:g}.")
    title = "Measures compared by average precision."
    cited = ("noreen1989", "yeh2000", "westfall1993", "romano2005", "sigdask")
    yield PaperTable(title, (TableSection("", columns),), legend, method, cited)


def build_independence_table(results: IndependenceResults) -> PaperTable:
    """Return a table with a row per test of independence."""
    verdicts = [result.verdict(results.alpha) for result in results]
    marks = [SIGNIFICANT if v == "significant" else UNDECIDED if v.startswith("undecided") else "" for v in verdicts]
    p_marks = marks if results.adjust == "none" else None
    columns: tuple[TableColumn, ...] = (
        TableColumn("A", [result.a for result in results], is_name=True),
        TableColumn("B", [result.b for result in results], is_name=True),
        TableColumn("metric", [result.metric for result in results], is_name=True),
        TableColumn("score", format_numbers(np.array([result.score for result in results], np.float64), None)),
        TableColumn(
            "by chance", format_numbers(np.array([result.expected + 0.0 for result in results], np.float64), None)
        ),
        TableColumn(
            "p",
            format_p_values(np.array([result.p_value for result in results], np.float64), results.alpha),
            marks=p_marks,
            is_p=True,
        ),
    )
    if results.adjust != "none":
        adjusted = np.array([result.p_adjusted for result in results], np.float64)
        columns = (
            *columns,
            TableColumn("adjusted p", format_p_values(adjusted, results.alpha), marks=marks, is_p=True),
        )
    trials = [result.n_trials for result in results if result.method != "exact" and result.n_trials]
    sampled = f"; others by {max(trials):,} random permutations" if trials else ""
    n_exact = sum(result.method == "exact" for result in results)
    sides = " and ".join(dict.fromkeys(result.alternative for result in results))
    method = (
        f"Label permutation, {sides}; exact p of {n_exact:,} of {format_count(len(results), 'test')}{sampled}.",
        f"sigdask {get_version()}, seed {results.seed}.",
    )
    adjust_text = f"p adjusted by {ADJUSTMENTS[results.adjust].name}" if results.adjust != "none" else "not adjusted"
    legend = (f"{SIGNIFICANT}: significant at {results.alpha:g}, {adjust_text} for the number of tests.",)
    adjust_sources = find_citations(ADJUSTMENTS[results.adjust].sentence) if results.adjust != "none" else ()
    cited = ("fisher1935", "noreen1989", *adjust_sources, "sigdask")
    return PaperTable("Labellings beside what chance gives.", (TableSection("", columns),), legend, method, cited)


def build_power_table(results: PowerResults) -> PaperTable:
    """Return a table with a row per comparison: units needed, and the detectable difference."""
    differences = list(
        dict.fromkeys(result.wanted_difference for result in results if result.wanted_difference is not None)
    )
    columns = [
        TableColumn("A", [result.a for result in results], is_name=True),
        TableColumn("B", [result.b for result in results], is_name=True),
        TableColumn("metric", [result.metric for result in results], is_name=True),
        TableColumn(
            "A - B", format_numbers(np.array([result.difference for result in results], np.float64), None, sign=True)
        ),
    ]
    if differences:
        name = f"units for {differences[0]:g}" if len(differences) == 1 else "units needed"
        columns.append(TableColumn(name, [_format_estimate(result.needed, ",.0f") for result in results]))
    units = sorted({result.n_asked for result in results})
    name = f"found by {units[0]:,}" if len(units) == 1 else "found by those asked about"
    columns.append(TableColumn(name, [_format_estimate(result.detectable, ".3g") for result in results]))
    powers = _format_percentages(result.power for result in results)
    levels = " and ".join(f"{level:.3g}" for level in sorted({result.level for result in results}))
    title = "Units that differences need, and differences that units find."
    legend = (f"{NO_SCORE}: none.", *(_list_notes(results)))
    method = (
        f"With power {powers} at {levels}; pairs of units are drawn from those observed, tilted by the difference.",
        f"sigdask {get_version()}, seed {results.seed}.",
    )
    return PaperTable(title, (TableSection("", tuple(columns)),), legend, method, ("noreen1989", "yeh2000", "sigdask"))


def _format_estimate(estimate: Estimate | None, form: str) -> str:
    return NO_SCORE if estimate is None or not math.isfinite(estimate.value) else format(estimate.value, form)


def _format_percentages(shares: Iterator[float]) -> str:
    return " and ".join(f"{100 * share:g} %" for share in sorted(set(shares)))


def _list_notes(results: Sequence[object]) -> list[str]:
    return [f"{note}." for note in dict.fromkeys(getattr(result, "note", None) for result in results) if note]
