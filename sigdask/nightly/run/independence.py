"""The tests of independence of a plan: read, counted beside its test sets, and kept with each run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigdask.analysis.independence.test import IndependenceTests
from sigdask.execution.clusters import Where
from sigdask.nightly.plan import Plan
from sigdask.nightly.plan.model import TestedLabels
from sigdask.nightly.run.ledger import Ledger
from sigdask.nightly.run.progress import ProgressWatch
from sigdask.randomization.jobs import Job
from sigdask.report.presentable import Independences, presented


@dataclass(frozen=True, eq=False)
class PlanIndependence:
    """One test of independence of a plan, as it was read.

    Attributes
    ----------
    asked : TestedLabels
        What the plan says of it.
    tests : IndependenceTests
        The labellings under each metric, with their exact p where that is at hand.
    """

    asked: TestedLabels
    tests: IndependenceTests

    @staticmethod
    def of(asked: TestedLabels) -> PlanIndependence:
        """Read the files."""
        return PlanIndependence(
            asked, IndependenceTests.of(asked.read(), asked.metrics, asked.reference, asked.within, asked.how)
        )

    @property
    def jobs(self) -> list[Job]:
        """What is counted and kept: random permutations, where p is not exact."""
        return self.tests.jobs

    def watch(self, ledger: Ledger) -> ProgressWatch:
        """Return what its progress is told by."""
        n = len(self.tests.scores) * len(self.tests.metrics)
        cells = {
            job.run: (ledger.at[job].ravel(), np.full(n, job.n_trials, np.int64), np.arange(n)) for job in self.jobs
        }
        of_p = cells[0][0] if cells else np.full(n, -1, np.int64)
        return ProgressWatch(self.asked.name, n, cells, (np.zeros(n, np.int64), of_p), 0)

    def evaluation(self, ledger: Ledger, _cluster: Where, _workers: int | None) -> Independences:
        """Return what is found, with the trials that are counted."""
        return presented(self.tests.judged([ledger.tally(job) for job in self.jobs]), Independences)


def read_tests(plan: Plan) -> list[PlanIndependence]:
    """Read the labellings of a plan."""
    return [PlanIndependence.of(asked) for asked in plan.independence]
