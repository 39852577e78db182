"""Candidate rankings, tests of independence and power: functions of the API, their results, and what is told of them.

Stored results of any command are read here too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from statistics import median
from typing import Any, TypeVar, Unpack, cast

import numpy as np
import orjson
from numpy.typing import NDArray

from sigdask.analysis.candidate_rankings import (
    AcceptanceSet,
    Difference,
    Precision,
    RankingEvaluation,
    RepeatedSamples,
    evaluate,
)
from sigdask.analysis.comparison.pairs import AnyMetric
from sigdask.analysis.independence import Independence, IndependenceResults, compute_independence
from sigdask.analysis.power import EXACT, FEW_EFFECTIVE, SIMULATED, Power, PowerAt, PowerResults, compute_powers
from sigdask.analysis.reproduce import check_results, find_other_command, load_document
from sigdask.counts import Candidates, Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats import candidates as candidate_files
from sigdask.formats.candidates import CandidateColumns
from sigdask.options import (
    AdjustPower,
    Alternative,
    IndependenceOptions,
    Method,
    PowerOptions,
    RankingOptions,
    list_options,
)
from sigdask.report import html, latex, markdown
from sigdask.report.comparisons import NO_SCORE, SIGNIFICANT, UNDECIDED, build_p_columns, format_p_cell
from sigdask.report.document import Block, Cells, Column, DocumentTable, build_columns
from sigdask.report.files import Texts
from sigdask.report.presentable import Results, convert_results, list_paper_texts
from sigdask.report.screen import list_alarms
from sigdask.report.sentences import ADJUSTMENTS
from sigdask.report.text import render_blocks
from sigdask.results.comparisons import get_version
from sigdask.results.fields import build_table
from sigdask.statistics.power import Estimate
from sigdask.statistics.ranking_letters import find_best
from sigdask.statistics.rounding import format_p_equals, format_score
from sigdask.text import format_count, iter_json


class PaperTables:
    """Mixin that writes results as tables for papers, for results with only one layout."""

    __slots__ = ()

    def paper_tables(self) -> list[DocumentTable]:
        """Return tables for papers as objects, which `to_latex` and `to_markdown` write as text."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return render_analysis(cast("Analysis", self))

    def _repr_html_(self) -> str:
        return html.render_html(self.paper_tables()[0].shorten(MAX_SHOWN))

    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        return "".join(markdown.iter_parts(self.paper_tables()))

    def to_latex(self) -> str:
        """Return the tables as LaTeX. The only package that they need is booktabs."""
        return "".join(latex.iter_parts(self.paper_tables()))


@dataclass(frozen=True, slots=True, repr=False)
class Independences(PaperTables, IndependenceResults):
    """All tests of independence of one call, in the order of labellings and metrics."""

    def paper_tables(self) -> list[DocumentTable]:
        """Return a table of the tests."""
        return [build_independence_table(self)]


@dataclass(frozen=True, slots=True, repr=False)
class Powers(PaperTables, PowerResults):
    """The power of all requested comparisons, with paper tables."""

    def paper_tables(self) -> list[DocumentTable]:
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
    differences : tuple of Difference
        Comparisons of two measures by precision, for each pair and n.
    ties : str
        How tied candidates were treated.
    seed, n_trials : int
        Seed of the random stream, and number of swaps of ranks.
    alpha, confidence : float
        Level of the tests, and confidence level of the intervals.
    notes : tuple of str
        Notes on how the candidates were read.
    """

    def paper_tables(self) -> list[DocumentTable]:
        """Return a table of the precision of the n best candidates, and one that compares the measures."""
        tables = [_build_precision_table(self, everything=True)]
        return [*tables, _build_pair_table(self)] if self.differences else tables


def power(
    data: Counts | Any,
    *,
    difference: float | None = None,
    units: int | None = None,
    power: float = 0.8,
    metrics: str | Sequence[AnyMetric] | AnyMetric | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    baseline: str | None = None,
    unit: str | None = None,
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
    adjust: AdjustPower = "none",
    samples: int | None = None,
    seed: int = 0,
    cluster: Any = "auto",
    workers: int | None = None,
    cache: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Powers:
    """Compute how many units are needed to detect a difference, or which difference some units detect.

    Samples are drawn from the observed units, reweighted so that the systems differ by the given amount (exponential
    tilting). Each sample is tested by the randomization test. The same data and seed give the same answer on any
    machine and cluster.

    Parameters
    ----------
    data : Counts, data frame, mapping or array
        All systems, as in `compare_all`. `read` has the options of reading a data frame.
    difference : float, optional
        Difference of scores for which the number of units is computed, on the metric's own scale: 0.01 is one point of
        accuracy. In a two-sided test the system that is ahead in the data is the better one. In a one-sided test the
        alternative decides.
    units : int, optional
        Number of units for which the detectable difference is computed, at least 2, by default that of the data. Not
        with `difference`.
    power : float
        Probability with which the difference should be detected, by default 0.8. It must be above alpha.
    metrics : str, Metric, or sequence of these, optional
        How systems are scored, by default by the metrics that fit the data.
    pairs : sequence of (str, str), optional
        Systems to compare, by default all pairs.
    baseline : str, optional
        Compare all other systems only with this one. Not with `pairs`.
    unit : str, optional
        Unit that is swapped as a whole: "item" (the default) or a grouping column, such as "document".
    alternative : {"two-sided", "greater", "less"}
        Alternative hypothesis about score_a - score_b, by default "two-sided".
    alpha : float
        Significance level, between 0 and 1, by default 0.05.
    adjust : {"none", "holm"}
        "none", the default, tests each comparison at alpha, "holm" at the level of the first step of Holm's procedure,
        alpha divided by the number of comparisons.
    samples : int, optional
        Number of samples for each power, at least 100. By default 2,000, and 500 for more than 100 comparisons.
    seed : int
        Seed of the simulated samples, at least 0, by default 0.
    cluster : str, distributed.Client or cluster object
        Where samples are tested, as in `compare_all`. By default "auto".
    workers : int, optional
        Number of threads or processes to start, by default one for each core.
    cache : bool
        Use the extraction cache, by default True.
    progress : callable, optional
        Called with the number of finished samples and the number of all samples.

    Returns
    -------
    Powers
        A sequence with one `Power` for each comparison. Its attribute `needed` is the number of units that detect the
        difference, and `detectable` the difference that `n_asked` units detect. Both have a `value` and the limits
        `low` and `high`.

    Raises
    ------
    InputError
        No comparison can be answered: the systems are alike, or no tilt of the units reaches the difference. Also if
        the metric is not computed from sums over items.
    UnfinishedError
        The cluster was lost.

    References
    ----------
    Efron 1981, "Nonparametric standard errors and confidence intervals"; Davison & Hinkley 1997, sections 4.4 and 5.3.

    Examples
    --------
    >>> right = {"new": [1] * 70 + [0] * 30, "old": [1] * 50 + [0] * 40 + [1] * 10}
    >>> [found] = power(right, difference=0.1)
    >>> found.method, found.n_units, found.needed.value, round(found.detectable.value, 3)
    ('exact', 100, 249.0, 0.164)
    """
    options = _select_options(PowerOptions, locals())
    return convert_results(compute_powers(data, options), Powers)


def independence(
    a: Sequence[Any] | NDArray[Any],
    b: Sequence[Any] | NDArray[Any],
    *,
    metric: AnyMetric = "accuracy",
    names: tuple[str, str] = ("A", "B"),
    ids: Sequence[str] | None = None,
    within: Sequence[str] | None = None,
    alternative: Alternative = "greater",
    method: Method = "auto",
    trials: int | None = None,
    seed: int = 0,
    alpha: float = 0.05,
    second_run: bool = True,
    cluster: Any = "auto",
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Independence:
    """Test whether one labelling is independent of another, both given as arrays.

    Parameters
    ----------
    a, b : sequence of str, length n_items
        The labelling, and the one with which it is compared. Precision is a share of the labels of `a`, recall of
        those of `b`.
    metric : str or Metric
        A score of labels, by default "accuracy".
    names : tuple of str
        Names of the two labellings, by default "A" and "B".
    ids : sequence of str, optional
        Item ids, by default positions.
    within : sequence of str, optional
        Group of each item. Labels are permuted only within groups.
    alternative : {"greater", "less", "two-sided"}
        Alternative hypothesis about the score, by default "greater": labels agree more than by chance. "two-sided"
        counts arrangements at least as far from the score that is expected under independence.
    method : {"auto", "randomization", "exact", "both"}
        auto, the default: the exact p if it takes seconds, else random permutations. randomization: random
        permutations. exact: the exact p. both: random permutations and the exact p.
    trials : int, optional
        Number of random permutations, by default 1,048,576.
    seed : int
        Seed of the random stream, at least 0, by default 0.
    alpha : float
        Significance level, between 0 and 1, by default 0.05.
    second_run : bool
        Check p by a second, independent run with the same number of permutations. By default True.
    cluster : str, distributed.Client or cluster object
        Where permutations are counted, as in `compare_all`. By default "auto".
    workers : int, optional
        Number of threads or processes to start, by default one for each core.
    progress : callable, optional
        Called with the number of finished permutations and the number of all permutations.

    Returns
    -------
    Independence
        One result, with the attributes `score`, `expected` (the score of independent labellings) and `p_value`.

    Raises
    ------
    InputError
        The labellings differ in length, or the metric is unknown or is not a metric of labels.

    References
    ----------
    Van Asch, "Approximate randomization"; Noreen 1989, "Computer-intensive methods for testing hypotheses".

    Examples
    --------
    An expert says what four glasses hold (Van Asch). 2 of 4 answers are right.

    >>> contents, expert = ["Polish", "Premium", "Russian", "Budget"], ["Polish", "Premium", "Budget", "Russian"]
    >>> found = independence(expert, contents)
    >>> found
    Independence(A - B, accuracy 0.5000, 0.2500 by chance, p = 0.292)
    >>> found.p_value == 7 / 24, found.exact.guarantee
    (True, 'exact')
    """
    options = _select_options(IndependenceOptions, locals())
    groups = {} if within is None else {"within": within}
    counts = Counts.from_labels(b, {names[0]: a}, ids=ids, groups=groups)
    return compute_independence(counts, [metric], names[1], None if within is None else "within", options)[0]


def independence_all(
    counts: Counts,
    *,
    metrics: str | Sequence[AnyMetric] = "accuracy",
    reference: str = "gold",
    within: str | None = None,
    **options: Unpack[IndependenceOptions],
) -> Independences:
    """Test whether labellings are independent of the gold labels, under any number of metrics.

    The gold labels are permuted over the items. All labellings and metrics share the permutations. The same data,
    seed and number of trials give the same counts on any machine and cluster.

    Parameters
    ----------
    counts : Counts
        Labelled items, from `sigdask.read` or `Counts.from_labels`.
    metrics : str, or sequence of str or Metric
        Scores of labels, by default "accuracy".
    reference : str
        Name of the gold labels in the results, by default "gold".
    within : str, optional
        A grouping column. Labels are permuted only within each of its values.
    **options
        The options of `independence` and `adjust`: p is adjusted over all labellings and metrics.

    Returns
    -------
    Independences
        One `Independence` for each labelling and metric, with `score`, `expected` and `p_value`.

    Raises
    ------
    InputError
        The data are not labels, a metric is not a metric of labels, or an exact p is too costly.
    UnfinishedError
        The cluster was lost.

    References
    ----------
    Van Asch, "Approximate randomization"; Noreen 1989, "Computer-intensive methods for testing hypotheses".

    Examples
    --------
    >>> counts = Counts.from_labels([*"xxyyy"], {"a": [*"xxyyy"], "b": [*"xyxyy"]})
    >>> [(found.a, found.p_value) for found in independence_all(counts, metrics="accuracy")]
    [('a', 0.1), ('b', 0.7)]
    """
    return convert_results(compute_independence(counts, metrics, reference, within, options), Independences)


def rankings(
    candidates: Candidates | Mapping[str, Sequence[float]] | Path | str,
    *,
    gold: Sequence[Any] | None = None,
    ids: Sequence[str] | None = None,
    smaller: Sequence[str] = (),
    name: str = "",
    n: int | Sequence[int] | str | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    baseline: str | None = None,
    trials: int = 10_000,
    seed: int = 0,
    alpha: float = 0.05,
    confidence: float = 0.95,
    cluster: Any = "auto",
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Evaluate the rankings of candidates by some measures.

    The same candidates, seed and trials give the same counts on any machine, cluster and partition.

    Parameters
    ----------
    candidates : mapping of str to sequence of float, Path or str
        Scores of each measure, one for each candidate; or a file of candidates (TSV, CSV, JSON, Parquet or
        UCS). A file with unusual columns is read by `sigdask.formats.candidates.read`, which returns Candidates.
    gold : sequence of bool, length n_candidates, optional
        Whether each candidate is true, if `candidates` is a mapping. None or NaN if it is not judged.
    ids : sequence of str, optional
        Unique ids of the candidates of a mapping, by default positions.
    smaller : sequence of str
        Measures for which a smaller score is better.
    name : str
        Name of the test set. It also determines the random stream.
    n : int, sequence of int, or str, optional
        Numbers of best candidates, such as "50,100" or a curve "50:2000:50". By default 1, 2 and 5 times powers of ten.
    pairs : sequence of (str, str), optional
        Measures to compare, by default all pairs.
    baseline : str, optional
        Compare every other measure only with this one. Not with `pairs`.
    trials : int
        Number of random swaps of ranks, by default 10,000.
    seed : int
        Seed of the random stream, at least 0, by default 0.
    alpha : float
        Significance level, between 0 and 1, by default 0.05.
    confidence : float
        Confidence level of the intervals, between 0 and 1, by default 0.95.
    cluster : str, distributed.Client or cluster object
        Where trials are counted, as in `compare_all`. By default "auto".
    workers : int, optional
        Number of threads or processes to start, by default one for each core.
    progress : callable, optional
        Called with the number of finished trials and the number of all trials.

    Returns
    -------
    Evaluation
        Precision and recall of the n best, average precision, and comparisons of measures, with tables and figures.

    Raises
    ------
    InputError
        The candidates do not allow a requested analysis. The message says which and why.

    References
    ----------
    Evert 2004, "Significance tests for the evaluation of ranking methods", COLING.

    Examples
    --------
    >>> gold = [1, 1, 0, 1, 0, 0, 0, 0]
    >>> scores = {"good": [9, 8, 7, 6, 5, 4, 3, 2], "poor": [1, 2, 3, 4, 5, 6, 7, 8]}
    >>> found = rankings(scores, gold=gold, n=[2, 4])
    >>> [(m.measure, round(m.average_precision, 4)) for m in found.measures]
    [('good', 0.9167), ('poor', 0.2869)]
    >>> [(row.measure, row.n, row.precision) for row in found.precision]
    [('good', 2, 1.0), ('good', 4, 0.75), ('poor', 2, 0.0), ('poor', 4, 0.0)]
    """
    options = _select_options(RankingOptions, locals())
    if isinstance(candidates, Mapping):
        if gold is None:
            raise TypeError("gold is missing: which candidates of the mapping are true?")
        candidates = Candidates(gold, candidates, smaller=smaller, ids=ids, name=name)
    elif not isinstance(candidates, Candidates):
        candidates = candidate_files.read(candidates, CandidateColumns(smaller=tuple(smaller)), name=name)
    return convert_results(evaluate(candidates, options), Evaluation)


Declaration = TypeVar("Declaration")


def _select_options(declaration: type[Declaration], arguments: Mapping[str, Any]) -> Declaration:
    """Return the options of a declaration among a function's arguments."""
    names = list_options(cast("Any", declaration))
    return cast("Declaration", {name: arguments[name] for name in names if name in arguments})


def list_analysis_texts(analysis: Any) -> Texts:
    """Return what files of an analysis other than comparisons hold, by format."""
    texts: Texts = {
        "json": lambda: chain(iter_json(analysis.to_dict()), ["\n"]),
        "text": lambda: [render_analysis(analysis, everything=True), "\n"],
    }
    if hasattr(analysis, "csv_lines"):
        texts["csv"] = analysis.csv_lines
    return texts | (list_paper_texts(analysis.paper_tables) if hasattr(analysis, "paper_tables") else {})


MAX_SHOWN = 40
"""Number of pairs shown by default."""

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
    first = powers[0]
    condition = f"with power {first.power:g} (test at {first.level:.3g}, {first.alternative})"
    needed = [p.needed.value for p in powers if p.needed and not p.is_needed_uncertain]
    detected = [p.detectable.value for p in powers if p.detectable and not p.is_detectable_uncertain]
    sized = [_format_range([x for x in values if math.isfinite(x)], spec, len(powers))
             for values, spec in ((needed, ",.0f"), (detected, ".3g"))]  # fmt: skip
    if first.wanted_difference is not None and sized[0]:
        wanted = f"{first.wanted_difference:g} in {first.metric} {condition}"
        yield f"To detect a difference of {wanted}, you need about {sized[0]} (unit: {first.unit})."
    if sized[1]:
        yield f"{first.n_asked:,} units ({first.unit}) can detect {sized[1]} in {first.metric} {condition}."


def _format_range(values: Sequence[float], spec: str, n: int) -> str:
    """Return the smallest, largest and median value as text, and of how many pairs they are; "" without values."""
    if not values:
        return ""
    low, high, middle = (f"{value:{spec}}" for value in (min(values), max(values), median(values)))
    of = f" ({len(values):,} of {n:,} pairs)" if n > 1 else ""
    return (low if low == high else f"{low} to {high} (median {middle})") + of


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
    noted = {power.note.partition(":")[0]: power for power in powers if power.note}  # such notes differ only in numbers
    yield from (f"note: {power.a} and {power.b}: {power.note}" for power in noted.values())
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
    number = f", {adjusted} for the number of tests" if len(results) > 1 else ""
    legend = [f"{SIGNIFICANT} significant at {alpha:g}{number}"]
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
    adjusted = "" if r.p_adjusted is None else f", adjusted {format_p_equals(r.p_adjusted, alpha)}"
    strata = "" if r.within is None else f", permuted within {r.n_strata:,} values of {r.within}"
    yield (
        f"{r.metric}: {r.a} against {r.b}, {format_score(r.score)}, where independent labels score "
        f"{_format_by_chance(r)}; {format_p_equals(r.p_value, alpha)} ({_format_method(r)}; {r.alternative}; "
        f"{format_count(r.n_items, 'item')}{strata}){adjusted}: {r.verdict(alpha)}."
    )
    yield from (f"    note: {warning}" for warning in r.warnings)


# Candidate rankings


def _build_precision_table(evaluation: RankingEvaluation, *, everything: bool) -> DocumentTable:
    measures = sorted(evaluation.measures, key=lambda m: -(m.average_precision or 0.0))
    columns = build_columns(measures, {"measure": "measure"})
    is_sampled = evaluation.n_judged < evaluation.n_candidates
    if not is_sampled:
        average = np.array([m.average_precision for m in measures], float)
        columns.append(Column("AP", [*map(format_score, average.tolist())], bold=find_best(average)))
    by_key = {(row.measure, row.n): row for row in evaluation.precision}
    shown = cutoffs = sorted({row.n for row in evaluation.precision})
    if len(cutoffs) > MAX_CUTOFFS and not everything:  # the smallest, the largest, and some between them
        shown = [cutoffs[round(k * (len(cutoffs) - 1) / (MAX_CUTOFFS - 1))] for k in range(MAX_CUTOFFS)]
    legend = [f"{len(cutoffs) - len(shown):,} more n: --all, or --json FILE"] if len(shown) < len(cutoffs) else []
    for n in shown:
        found = [by_key[m.measure, n] for m in measures]
        best = find_best(np.array([row.precision for row in found], float))
        columns.append(Column(f"n = {n:,}", [*map(_format_precision, found)], bold=best))
    source = ", extrapolated from the judged candidates" if is_sampled else ""
    title = f"n-best precision in %, with its {100 * evaluation.confidence:g} % interval{source}"
    note = (
        f"{evaluation.n_candidates:,} candidates, {evaluation.n_true:,} of them true. Ties: {evaluation.ties}. "
        f"{_describe_version(evaluation.seed)}"
    )
    return DocumentTable.of(title, columns, legend, note)


def _format_precision(row: Precision) -> str:
    """Return precision and its interval in percent; that is whole, rounded outwards."""
    if row.precision is None:
        return "none judged"
    low, high = np.floor(100 * row.low + 1e-9), np.ceil(100 * row.high - 1e-9) + 0.0
    return f"{100 * row.precision:.1f} ({low:.0f}-{high:.0f})"


def _iter_evaluation_blocks(evaluation: RankingEvaluation, *, everything: bool) -> Iterator[Block]:
    """Yield which measure is better at which n, and how certain this is."""
    judged = "" if evaluation.n_judged == evaluation.n_candidates else f", {evaluation.n_judged:,} of them judged"
    true = f"{evaluation.n_true:,} are true ({100 * evaluation.n_true / evaluation.n_judged:.1f} %)"
    measures = format_count(len(evaluation.measures), "measure")
    lines = [f"{measures} of {evaluation.n_candidates:,} candidates{judged}: {true}"]
    n = sum(row.p_adjusted <= evaluation.alpha for row in evaluation.differences)
    if evaluation.differences:
        count = format_count(len(evaluation.differences), "difference")
        lines.append(f"{n:,} of {count} of precision significant at {evaluation.alpha:g} over all pairs and n together")
    yield "\n".join(lines)
    yield _build_precision_table(evaluation, everything=everything)
    if evaluation.differences:
        yield _cut(_build_pair_table(evaluation), everything=everything)
        trials = f"{format_count(evaluation.n_trials, 'trial')}, seed {evaluation.seed}"
        yield f"test: ranks are swapped for all n at once; step-down max-T, {trials}; ties: {evaluation.ties}"


def _build_pair_table(evaluation: RankingEvaluation) -> DocumentTable:
    """Return a table of pairs of measures with the values of n at which one is significantly better."""
    by_pair: dict[tuple[str, str], list[Difference]] = {}
    for row in evaluation.differences:
        by_pair.setdefault((row.a, row.b), []).append(row)
    better = [[_list_better(rows, sign, evaluation.alpha) for rows in by_pair.values()] for sign in (1, -1)]
    columns = [Column(name, [pair[k] for pair in by_pair], is_name=True) for k, name in enumerate("AB")]
    columns += [Column(f"{n} better at n", texts, is_name=True) for n, texts in zip("AB", better, strict=True)]
    title = f"which measure is better, at {evaluation.alpha:g} over all pairs and n together"
    return DocumentTable.of(title, columns)


def _list_better(rows: Sequence[Difference], sign: int, alpha: float) -> str:
    """Return the values of n at which A (or B) is significantly better."""
    better = [f"{row.n:,}" for row in rows if row.p_adjusted <= alpha and sign * row.difference > 0]
    return "all" if len(better) == len(rows) > 1 else ", ".join(better) or NO_SCORE


def _iter_sample_blocks(samples: RepeatedSamples) -> Iterator[Block]:
    """Yield the validation by repeated samples: observed and predicted variation."""
    for validated in samples.found:
        yield "\n".join(_describe_samples(validated, samples.confidence))
    yield "model: T of N accepted candidates is Bin(N, p), with one p for all samples, the precision of all together"


def _describe_samples(validated: AcceptanceSet, confidence: float) -> Iterator[str]:
    d = validated.dispersion
    varies = "vary as the model says"
    if d.p_value < 0.05:
        varies = f"vary more than the model says, by {d.factor:.2f} in variance"
    samples = f"{d.n_samples:,} samples accept {d.accepted:.1f} candidates on average"
    yield f"{validated.measure}, cutoff {validated.cutoff:g}: {samples}"
    yield f"precision of all together: {d.precision:.4f}"
    yield f"standard deviation of precision: {d.deviation:.4f}, predicted {d.predicted:.4f}, ratio {d.ratio:.3f}"
    yield f"chi2 = {d.chi2:.1f} with {d.df} degrees of freedom, {format_p_equals(d.p_value)}: precisions {varies}"
    missed = validated.intervals
    yield (
        f"{100 * confidence:g} % intervals that miss it: {missed.n_outside} of {missed.n_samples} "
        f"({missed.expected:.1f} expected), {format_p_equals(missed.p_value)} (exact binomial)"
    )


Stored = TypeVar("Stored", Evaluation, Independences, Powers)
AnyResults = Results | Evaluation | Independences | Powers


def load_results(path: str | Path) -> AnyResults:
    """Return the results in a JSON file that a command or `write` wrote.

    Parameters
    ----------
    path : str or Path
        JSON of `sigdask compare`, `meta`, `run`, `report`, `rankings`, `independence` or `power`.

    Returns
    -------
    Results, Evaluation, Independences or Powers
        As the function that computed them returned them. They lack the data, so they have no scores of units.

    Raises
    ------
    InputError
        The file holds no results, or contradicts the signatures in it.

    Examples
    --------
    >>> import tempfile
    >>> from sigdask import compare_all
    >>> results = compare_all({"new": [4, 5, 4], "old": [1, 1, 2]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results.write(f"{folder}/results.json")
    ...     load_results(f"{folder}/results.json") == results
    True
    """
    path = Path(path)
    document = dict(load_document(path))
    command = find_other_command(document)
    if command:
        try:
            orjson.loads(json.dumps(document))  # which refuses what Python reads: NaN, infinity, 10**400
        except ValueError:
            raise InputError("holds NaN, or an infinite or too large number", file=path, remedy="write null") from None
    match command:
        case "rankings":
            evaluation = _load_analysis(path, "rankings", Evaluation, document)
            rows = {(row.measure, row.n) for row in evaluation.precision}
            complete = {*product((m.measure for m in evaluation.measures), {n for _, n in rows})}
            if rows != complete or evaluation.n_judged < max(evaluation.n_true, 1):
                problem = "lacks the precision of a measure at some n, or has fewer judged candidates than true ones"
                raise InputError(problem, file=path, remedy="compute it again")
            return evaluation
        case "independence":
            return _load_analysis(path, "independence", Independences, document | {"found": document.get("results")})
        case "power":
            return _load_analysis(path, "power", Powers, document | {"found": _list_powers(document.get("power"))})
    recorded = check_results(path, document)
    table = build_table([entry.values for entry in recorded.results], document["alpha"])
    return Results.from_document(table, recorded.document)


def _load_analysis(path: Path, command: str, kind: type[Stored], document: Mapping[str, Any]) -> Stored:
    """Return the results of another command in a JSON document, whose values must have their types."""
    import pydantic  # the results of comparisons do without it

    try:
        analysis = pydantic.TypeAdapter(kind).validate_json(json.dumps(document), strict=True)  # "nan" is no number
    except pydantic.ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise InputError(f"not results of `sigdask {command} --json`: {place}: {fault['msg']}", file=path) from None
    if not getattr(analysis, "found", True):
        raise InputError(f"holds no results of `sigdask {command}`", file=path)
    return analysis


def _list_powers(entries: Any) -> Any:
    """Return the entries of a power analysis. A value that is null is infinite."""
    for entry in entries if isinstance(entries, list) else ():
        for value in entry.values() if isinstance(entry, dict) else ():
            if isinstance(value, dict) and value.get("value", 0) is None:
                value["value"] = math.inf
    return entries
