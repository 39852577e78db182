"""Jobs: which trials of which panel to count, and the tally of each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.tallies import Tally


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Trials `first` to `first + n_trials - 1` of one run of one panel.

    Jobs are compared by identity: two jobs of the same trials are different, each with its own tally.

    Attributes
    ----------
    panel : AnyPanel
        What is counted.
    n_trials : int
        Number of trials.
    run : int
        0 for the first run, 1 for the second.
    label : str
        What is compared, for errors.
    first : int
        The first trial.
    """

    panel: AnyPanel
    n_trials: int
    run: int = 0
    label: str = ""
    first: int = 0

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons that each trial counts for: pairs times metrics, or 1 for panels counted as a whole."""
        return 1 if self.panel.is_whole else math.prod(self.panel.shape)


def sum_trials(jobs: Iterable[Job]) -> int:
    """Return the sum of trials over the comparisons of all jobs, which is the number that messages state."""
    return sum(job.n_trials * job.n_comparisons for job in jobs)


Tallies = Mapping[Job, Tally]
"""What was counted of each job."""
