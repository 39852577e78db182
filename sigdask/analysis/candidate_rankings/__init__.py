"""Rankings of candidates: precision of the n best, comparisons of measures, and their uncertainty.

Evert 2004, "Significance tests for the evaluation of ranking methods"; Evert & Krenn 2005.
"""

from __future__ import annotations

from typing import Any

from sigdask.analysis.candidate_rankings.evaluation import MeasureRankings, RepeatedSamples, validate
from sigdask.analysis.candidate_rankings.spec import RankingEvaluation
from sigdask.counts import Candidates
from sigdask.execution.run import count_jobs
from sigdask.options import RankingOptions, fill_options

__all__ = ["Candidates", "RepeatedSamples", "evaluate", "validate"]

EXECUTION = ("cluster", "workers", "progress")


def evaluate(candidates: Candidates, options: RankingOptions) -> RankingEvaluation:
    """Evaluate the rankings of candidates by some measures; `sigdask.rankings` describes the options."""
    settings = fill_options(RankingOptions, options)
    candidates.check_gold()
    lists = MeasureRankings(candidates, settings)
    execution: dict[str, Any] = {name: value for name, value in settings.items() if name in EXECUTION}
    return lists.build_evaluation(count_jobs(lists.jobs, **execution) if lists.jobs else [])
