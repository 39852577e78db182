"""Candidate rankings, tests of independence and power: functions of the API, their results, tables and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sigdask.analysis import candidate_rankings
from sigdask.analysis import independence as independence_tests
from sigdask.analysis import power as power_analysis
from sigdask.analysis.candidate_rankings.spec import RankingEvaluation
from sigdask.analysis.independence import IndependenceResults
from sigdask.analysis.power import PowerResults
from sigdask.report import notebook
from sigdask.report.plots import results as result_figures
from sigdask.report.plots.results import FigureSpec
from sigdask.report.presentable import wrap_analysis
from sigdask.report.tables import latex, markdown
from sigdask.report.tables.comparisons import NO_SCORE, SIGNIFICANT, UNDECIDED, build_p_columns, format_numbers
from sigdask.report.tables.model import PaperTable, TableColumn, TableSection, build_name_columns, collect_numbers
from sigdask.report.wording import ADJUSTMENTS, find_citations
from sigdask.results.comparisons import get_version
from sigdask.statistics.ranking_letters import find_best
from sigdask.text import format_count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sigdask.statistics.power import Estimate


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


def iter_ranking_pictures(evaluations: Mapping[str, object]) -> Iterator[FigureSpec]:
    """Yield the pictures that fit evaluations of candidate rankings; skip other objects."""
    for name, evaluation in evaluations.items():
        if isinstance(evaluation, RankingEvaluation):
            scores = ("precision", "recall") if evaluation.precision else ("precision",) if evaluation.sampled else ()
            for score in scores:
                yield FigureSpec(score, (name,) if name else (), partial(result_figures.plot_n_best, evaluation, score))


class PaperTables:
    """Mixin that writes results as tables for papers, for results with only one layout."""

    __slots__ = ()

    def paper_tables(self) -> list[PaperTable]:
        """Return tables for papers as objects, which `to_latex` and `to_markdown` write as text."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return notebook.as_html(notebook.shorten_table(self.paper_tables()[0]))

    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        return "".join(markdown.iter_document_parts(self.paper_tables()))

    def to_latex(self) -> str:
        """Return the tables as LaTeX. The only package that they need is booktabs."""
        return "".join(latex.iter_document_parts(self.paper_tables()))


@dataclass(frozen=True, slots=True)
class Independences(PaperTables, IndependenceResults):
    """All tests of independence of one call, in the order of labellings and metrics."""

    def paper_tables(self) -> list[PaperTable]:
        """Return a table of the tests."""
        return [build_independence_table(self)]


@dataclass(frozen=True, slots=True, repr=False)
class Powers(PaperTables, PowerResults):
    """The power of all requested comparisons, with paper tables."""

    def paper_tables(self) -> list[PaperTable]:
        """Return a table of the comparisons."""
        return [build_power_table(self)]


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation(PaperTables, RankingEvaluation):
    """Results of evaluating rankings of candidates by measures.

    Attributes
    ----------
    name : str
        Name of the test set.
    n_candidates, n_judged, n_true : int
        Number of candidates, of judged ones, and of true ones.
    measures : tuple of Measure
        The measures, with their average precision.
    precision : tuple of Precision
        Precision and recall of the n best, for each measure and n.
    sampled : tuple of SampledPrecision
        Estimated precision, instead of `precision`, if only a sample is judged. If several samples were drawn, it is
        that of the first.
    differences : tuple of Difference
        Comparisons of two measures by precision, for each pair and n.
    average_precision : tuple of AverageDifference
        Comparisons of two measures by average precision.
    validation : tuple of Validation
        Validations by repeated samples.
    ties : str
        How tied candidates were treated.
    seed, n_trials : int
        Seed of the random stream, and number of swaps of ranks.
    n_samples, sample_size : int
        Number and size of the random samples, 0 if there are none.
    alpha, confidence : float
        Level of the tests, and confidence level of the intervals.
    notes : tuple of str
        Notes on how the candidates were read.
    """

    def paper_tables(self) -> list[PaperTable]:
        """Return a table of the precision of the n best candidates, and one that compares the measures."""
        return build_evaluation_tables(self)

    def plot_curves(self, score: Literal["precision", "recall"] = "precision") -> Figure:
        """Draw the curve of each measure: the precision or recall of its n best, for each n, with intervals.

        The curves of Evert & Krenn 2001 ("Methods for the qualitative evaluation of lexical association measures",
        ACL), with the intervals of the table. With more than `MAX_CURVES` measures, only the best by average precision
        are drawn. If only a sample is judged, there is no recall.

        Parameters
        ----------
        score : {"precision", "recall"}
            The score to draw.

        Returns
        -------
        matplotlib.figure.Figure
            `sigdask.report.plots.save` writes it as SVG, PDF or PNG.

        Raises
        ------
        InputError
            There is nothing to draw, or matplotlib (`sigdask[report]`) is not installed.
        """
        return result_figures.plot_n_best(self, score)


evaluate = wrap_analysis(candidate_rankings.evaluate, Evaluation)
independence = independence_tests.independence
independence_all = wrap_analysis(independence_tests.independence_all, Independences)
power = wrap_analysis(power_analysis.power, Powers)
