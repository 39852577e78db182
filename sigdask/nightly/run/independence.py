"""The tests of independence of a plan: read them, watch their progress, and evaluate them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigdask.analysis.independence.test import IndependenceTests
from sigdask.execution.clusters import ClusterLike
from sigdask.nightly.plan import Plan
from sigdask.nightly.plan.model import TestedLabels
from sigdask.nightly.run.ledger import Ledger
from sigdask.nightly.run.progress import ProgressWatch
from sigdask.randomization.jobs import Job
from sigdask.report.presentable import Independences, convert_results


@dataclass(frozen=True, eq=False)
class PlanIndependence:
    """One test of independence of a plan, as read from its files.

    Attributes
    ----------
    entry : TestedLabels
        What the plan says of it.
    tests : IndependenceTests
        The labellings under each metric, with their exact p where that is at hand.
    """

    entry: TestedLabels
    tests: IndependenceTests

    @staticmethod
    def from_entry(entry: TestedLabels) -> PlanIndependence:
        """Read the files."""
        return PlanIndependence(
            entry,
            IndependenceTests.from_counts(entry.read(), entry.metrics, entry.reference, entry.within, entry.settings),
        )

    @property
    def jobs(self) -> list[Job]:
        """Jobs whose tallies the store keeps: random permutations of labels, for tests whose p is not exact."""
        return self.tests.jobs

    def build_watch(self, ledger: Ledger) -> ProgressWatch:
        """Return the ledger positions from which the progress of the tests is computed."""
        n = len(self.tests.scores) * len(self.tests.metrics)
        cells = {
            job.run: (ledger.at[job].ravel(), np.full(n, job.n_trials, np.int64), np.arange(n)) for job in self.jobs
        }
        p_positions = cells[0][0] if cells else np.full(n, -1, np.int64)
        return ProgressWatch(self.entry.name, n, cells, (np.zeros(n, np.int64), p_positions), 0)

    def evaluate(self, ledger: Ledger, _cluster: ClusterLike, _workers: int | None) -> Independences:
        """Return the results from the counted trials."""
        return convert_results(self.tests.build_results([ledger.build_tally(job) for job in self.jobs]), Independences)


def read_tests(plan: Plan) -> list[PlanIndependence]:
    """Read the labellings of a plan's tests of independence."""
    return [PlanIndependence.from_entry(entry) for entry in plan.independence]
