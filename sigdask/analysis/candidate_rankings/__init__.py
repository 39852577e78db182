"""Rankings of candidates: precision of the n best, comparisons of measures, and their uncertainty.

Evert 2004, "Significance tests for the evaluation of ranking methods"; Evert & Krenn 2005.
"""

from __future__ import annotations

from typing import Any

from sigdask.analysis.candidate_rankings.evaluation import MeasureRankings, RepeatedSamples, validate
from sigdask.analysis.candidate_rankings.spec import RankingEvaluation, RankingSpec
from sigdask.counts.candidates import Candidates
from sigdask.execution.run import count_jobs
from sigdask.options import RankingOptions

__all__ = ["Candidates", "RepeatedSamples", "evaluate", "validate"]


def evaluate(candidates: Candidates, options: RankingOptions) -> RankingEvaluation:
    """Evaluate the rankings of candidates by some measures; `sigdask.rankings` describes the options."""
    execution: dict[str, Any] = {"cluster": "auto", "workers": None, "progress": None}
    settings: dict[str, Any] = {**options}
    execution |= {name: settings.pop(name) for name in execution if settings.get(name) is not None}
    settings = {name: value for name, value in settings.items() if name not in execution}
    candidates.check_gold()
    lists = MeasureRankings(candidates, RankingSpec.from_options(**settings))
    jobs = lists.jobs
    return lists.build_evaluation(count_jobs(jobs, **execution) if jobs else [])
