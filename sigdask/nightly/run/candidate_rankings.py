"""The candidate rankings of a plan: read them, watch their progress, and evaluate them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigdask.analysis.candidate_rankings.evaluation import MeasureRankings
from sigdask.execution.clusters import ClusterLike
from sigdask.execution.run import count_jobs
from sigdask.nightly.plan import Plan
from sigdask.nightly.plan.model import RankedCandidates
from sigdask.nightly.run.ledger import Ledger
from sigdask.nightly.run.progress import ProgressWatch
from sigdask.randomization.jobs import Job
from sigdask.report.presentable import Evaluation, convert_results


@dataclass(frozen=True, eq=False)
class PlanRankings:
    """One candidate list of a plan, as read from its file.

    Attributes
    ----------
    entry : RankedCandidates
        What the plan says of it.
    lists : MeasureRankings
        The candidates as each measure ranks them.
    """

    entry: RankedCandidates
    lists: MeasureRankings

    @staticmethod
    def from_entry(entry: RankedCandidates) -> PlanRankings:
        """Read the file."""
        return PlanRankings(entry, MeasureRankings(entry.read(), entry.spec))

    @property
    def jobs(self) -> list[Job]:
        """Jobs whose tallies the store keeps: trials that swap ranks between measures."""
        return self.lists.swap_jobs

    def build_watch(self, ledger: Ledger) -> ProgressWatch:
        """Return which trials in the ledger the progress of this candidate list is read from."""
        sizes = [job.panel.shape[0] for job in self.jobs]
        n = sum(sizes)
        positions = np.repeat(np.array([int(ledger.at[job][0, 0]) for job in self.jobs], np.int64), sizes)
        wanted = np.repeat(np.array([job.n_trials for job in self.jobs], np.int64), sizes)
        cells = {0: (positions, wanted, np.arange(n))} if n else {}
        return ProgressWatch(self.entry.name, n, cells, (np.zeros(n, np.int64), positions), 0)

    def evaluate(self, ledger: Ledger, cluster: ClusterLike, workers: int | None) -> Evaluation:
        """Return the evaluation from the counted trials. Its random samples are not stored but drawn anew."""
        jobs = self.lists.sample_jobs
        samples = count_jobs(jobs, cluster=cluster, workers=workers) if jobs else []
        return convert_results(
            self.lists.build_evaluation([*(ledger.build_tally(job) for job in self.jobs), *samples]), Evaluation
        )


def read_rankings(plan: Plan) -> list[PlanRankings]:
    """Read the candidate lists of a plan."""
    return [PlanRankings.from_entry(entry) for entry in plan.rankings]
