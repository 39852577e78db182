"""Candidate rankings, tests of independence and power: functions of the API, and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, cast

from numpy.typing import NDArray

from sigdask.analysis.candidate_rankings import evaluate
from sigdask.analysis.candidate_rankings.spec import RankingEvaluation
from sigdask.analysis.comparison.pairs import AnyMetric
from sigdask.analysis.independence import Independence, IndependenceResults, compute_independence
from sigdask.analysis.power import PowerResults, compute_powers
from sigdask.counts import Candidates, Counts
from sigdask.formats import candidates as candidate_files
from sigdask.formats.candidates import CandidateColumns
from sigdask.options import (
    AdjustPower,
    AdjustTests,
    Alternative,
    IndependenceOptions,
    Method,
    PowerOptions,
    RankingOptions,
    list_options,
)
from sigdask.report import html, latex, markdown
from sigdask.report.document import DocumentTable
from sigdask.report.files import Texts
from sigdask.report.other_documents import (
    build_evaluation_tables,
    build_independence_table,
    build_power_table,
    render_analysis,
)
from sigdask.report.presentable import MAX_ROWS, convert_results, list_paper_texts


class PaperTables:
    """Mixin that writes results as tables for papers, for results with only one layout."""

    __slots__ = ()

    def paper_tables(self) -> list[DocumentTable]:
        """Return tables for papers as objects, which `to_latex` and `to_markdown` write as text."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return html.render_html(self.paper_tables()[0].shorten(MAX_ROWS))

    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        return "".join(markdown.iter_parts(self.paper_tables()))

    def to_latex(self) -> str:
        """Return the tables as LaTeX. The only package that they need is booktabs."""
        return "".join(latex.iter_parts(self.paper_tables()))


@dataclass(frozen=True, slots=True)
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
    sampled : tuple of SampledPrecision
        Estimated precision, instead of `precision`, if only a sample is judged.
    differences : tuple of Difference
        Comparisons of two measures by precision, for each pair and n.
    average_precision : tuple of AverageDifference
        Comparisons of two measures by average precision.
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
        return build_evaluation_tables(self)


def power(
    data: Counts | Any,
    *,
    difference: float | None = None,
    units: int | None = None,
    power: float = 0.8,
    metrics: str | Sequence[AnyMetric] | AnyMetric | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    baseline: str | None = None,
    unit: str | Sequence[str] | None = None,
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
    unit : str or sequence of str, optional
        Unit that is swapped as a whole: "item" (the default) or a grouping column, such as "document". Of several
        nested units, the coarsest is swapped.
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
    >>> found.n_extreme, found.n_trials, found.exact.guarantee
    (7, 24, 'exact')
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
    alternative: Alternative = "greater",
    method: Method = "auto",
    adjust: AdjustTests | None = None,
    trials: int | None = None,
    seed: int = 0,
    alpha: float = 0.05,
    second_run: bool = True,
    cluster: Any = "auto",
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
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
    alternative, method, adjust, trials, seed, alpha, second_run
        The test, as in `independence`; p is adjusted over all labellings and metrics.
    cluster, workers, progress
        Where permutations are counted, as in `independence`.

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
    options = _select_options(IndependenceOptions, locals())
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
    >>> found
    Evaluation: 2 measures of 8 candidates, 3 of them true
      good: average precision 0.9167
      poor: average precision 0.2869
    >>> [(row.measure, row.n, row.precision) for row in found.precision]
    [('good', 2, 1.0), ('good', 4, 0.75), ('poor', 2, 0.0), ('poor', 4, 0.0)]
    """
    options = _select_options(RankingOptions, locals())
    if isinstance(candidates, Mapping):
        if gold is None:
            raise TypeError("gold is missing: which candidates of the mapping are true?")
        candidates = Candidates.of(gold, candidates, smaller=smaller, ids=ids, name=name)
    elif isinstance(candidates, Path | str):
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
        "json": lambda: chain(analysis.json_parts(), ["\n"]),
        "text": lambda: [render_analysis(analysis, everything=True), "\n"],
    }
    if hasattr(analysis, "csv_lines"):
        texts["csv"] = analysis.csv_lines
    return texts | (list_paper_texts(analysis.paper_tables) if hasattr(analysis, "paper_tables") else {})
