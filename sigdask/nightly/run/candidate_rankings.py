"""The rankings of a plan: read, counted beside its test sets, and kept with each run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigdask.analysis.candidate_rankings.evaluation import MeasureRankings
from sigdask.execution.clusters import Where
from sigdask.execution.run import count_jobs
from sigdask.nightly.plan import Plan
from sigdask.nightly.plan.model import RankedCandidates
from sigdask.nightly.run.ledger import Ledger
from sigdask.nightly.run.progress import ProgressWatch
from sigdask.randomization.jobs import Job
from sigdask.report.presentable import Evaluation, presented


@dataclass(frozen=True, eq=False)
class PlanRankings:
    """One list of candidates of a plan, as it was read.

    Attributes
    ----------
    asked : RankedCandidates
        What the plan says of it.
    lists : MeasureRankings
        The candidates as each measure ranks them.
    """

    asked: RankedCandidates
    lists: MeasureRankings

    @staticmethod
    def of(asked: RankedCandidates) -> PlanRankings:
        """Read the file."""
        return PlanRankings(asked, MeasureRankings(asked.read(), asked.asked))

    @property
    def jobs(self) -> list[Job]:
        """What is counted and kept: exchanges of ranks."""
        return self.lists.exchange_jobs

    def watch(self, ledger: Ledger) -> ProgressWatch:
        """Return what its progress is told by: every hypothesis of a job is as far as the job."""
        sizes = [job.panel.shape[0] for job in self.jobs]
        n = sum(sizes)
        places = np.repeat(np.array([int(ledger.at[job][0, 0]) for job in self.jobs], np.int64), sizes)
        wanted = np.repeat(np.array([job.n_trials for job in self.jobs], np.int64), sizes)
        cells = {0: (places, wanted, np.arange(n))} if n else {}
        return ProgressWatch(self.asked.name, n, cells, (np.zeros(n, np.int64), places), 0)

    def evaluation(self, ledger: Ledger, cluster: Where, workers: int | None) -> Evaluation:
        """Return what is found, with the trials that are counted; samples are drawn again, which is soon done."""
        jobs = self.lists.sample_jobs
        drawn = count_jobs(jobs, cluster=cluster, workers=workers) if jobs else []
        return presented(self.lists.evaluation([*(ledger.tally(job) for job in self.jobs), *drawn]), Evaluation)


def read_rankings(plan: Plan) -> list[PlanRankings]:
    """Read the lists of candidates of a plan."""
    return [PlanRankings.of(asked) for asked in plan.rankings]
