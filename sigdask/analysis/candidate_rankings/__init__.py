"""Rankings of candidates: precision of the n best, comparisons of measures, and their uncertainty.

Evert 2004, "Significance tests for the evaluation of ranking methods"; Evert & Krenn 2005.
"""

from __future__ import annotations

from typing import Any, Unpack

from sigdask.analysis.candidate_rankings.evaluation import MeasureRankings, RepeatedSamples, validate
from sigdask.analysis.candidate_rankings.spec import RankingEvaluation, RankingSpec
from sigdask.counts.candidates import Candidates
from sigdask.execution.run import count_jobs
from sigdask.options import RankingOptions

__all__ = ["Candidates", "RepeatedSamples", "evaluate", "validate"]


def evaluate(candidates: Candidates, **options: Unpack[RankingOptions]) -> RankingEvaluation:
    """Evaluate the rankings of candidates by some measures.

    The same candidates, seed and trials give the same counts on any machine, cluster and partition.

    Parameters
    ----------
    candidates : Candidates
        Whether each candidate is true, and each measure's scores. `Candidates.of` makes them of columns, and
        `sigdask.formats.candidates.read` reads them from a file.
    n : int, sequence of int, or str, optional
        Numbers of best candidates, such as "50,100" or a curve "50:2000:50". By default 1, 2 and 5 times powers of ten.
    pairs : sequence of (str, str), optional
        Measures to compare, by default all pairs.
    baseline : str, optional
        Compare every other measure only with this one. Not with `pairs`.
    ties : {"expected", "random", "given"}
        Order of candidates with equal scores. expected, the default: the mean over all orders. random: one random
        order. given: the order of the list.
    trials : int
        Number of random swaps of ranks, by default 10,000.
    seed : int
        Seed of the random stream, at least 0, by default 0.
    alpha : float
        Significance level, between 0 and 1, by default 0.05.
    confidence : float
        Confidence level of the intervals, between 0 and 1, by default 0.95.
    samples, sample_size : int, optional
        Number and size of random samples of candidates, which are evaluated as if only they had been judged. Give both
        or, by default, neither.
    cluster : str, distributed.Client or cluster object
        Where trials are counted, as in `sigdask.compare_sets`. By default "auto".
    workers : int, optional
        Number of threads or processes to start, by default one for each core.
    progress : callable, optional
        Called with the number of finished trials and the number of all trials.

    Returns
    -------
    RankingEvaluation
        From `sigdask.api` it is an `Evaluation`, which also makes tables and figures.

    Raises
    ------
    InputError
        The candidates do not allow a requested analysis. The message says which and why.
    TypeError
        There is no such option.

    References
    ----------
    Evert 2004, "Significance tests for the evaluation of ranking methods", COLING.

    Examples
    --------
    >>> gold = [1, 1, 0, 1, 0, 0, 0, 0]
    >>> scores = {"good": [9, 8, 7, 6, 5, 4, 3, 2], "poor": [1, 2, 3, 4, 5, 6, 7, 8]}
    >>> found = evaluate(Candidates.of(gold, scores), n=[2, 4])
    >>> found
    Evaluation: 2 measures of 8 candidates, 3 of them true
      good: average precision 0.9167
      poor: average precision 0.2869
    >>> [(row.measure, row.n, row.precision) for row in found.precision]
    [('good', 2, 1.0), ('good', 4, 0.75), ('poor', 2, 0.0), ('poor', 4, 0.0)]
    """
    execution: dict[str, Any] = {name: options.pop(name, None) for name in ("cluster", "workers", "progress")}  # type: ignore[misc]
    candidates.check_gold()
    lists = MeasureRankings(candidates, RankingSpec.from_options(**options))
    jobs = lists.jobs
    execution["cluster"] = execution["cluster"] or "auto"
    return lists.build_evaluation(count_jobs(jobs, **execution) if jobs else [])
