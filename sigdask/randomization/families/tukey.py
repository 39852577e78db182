"""Randomised Tukey HSD: relabel systems in trials, and count how often the range of scores reaches a difference."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sigdask.counts.fields import Floats, Integers
from sigdask.counts.precision import TIE
from sigdask.randomization.kernels.labels import sum_relabelled
from sigdask.randomization.panels.build import FamilyMember
from sigdask.randomization.panels.digests import WholePanel
from sigdask.randomization.panels.sums import ENUMERATED_UNITS
from sigdask.randomization.stream import RELABEL, get_run_word
from sigdask.randomization.tallies import CountingMethod, Tally

TILE_BYTES = 2**20

MAX_ARRANGEMENTS = 2**ENUMERATED_UNITS


@dataclass(frozen=True, eq=False)
class Relabelling(WholePanel):
    """The randomised Tukey HSD (Carterette 2012): all systems relabelled within each unit.

    The statistic of a trial is the largest range of scores, max - min over the systems, of any member. It tests full
    exchangeability, so unequal variances can reject equal means.

    Attributes
    ----------
    members : tuple of FamilyMember
        Members, each with all systems on one lattice.
    rows : int64 array, shape (n_hypotheses, 2)
        (member, row of its panel's pairs).
    enumerated : bool
        Whether trials are all relabellings of the kept units.
    """

    members: tuple[FamilyMember, ...]
    rows: Integers
    enumerated: bool = False

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=1, timed=256)

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "relabelling", self.members, self.rows, self.enumerated

    @property
    def shape(self) -> tuple[int, int]:
        """Number of hypotheses, and of metrics, always 1."""
        return len(self.rows), 1

    @cached_property
    def observed(self) -> Floats:
        """Observed |difference|, shape (n_hypotheses,)."""
        per_member = [np.abs(m.panel.differences[:, m.metric]) * m.weight for m in self.members]
        return np.array([per_member[member][row] for member, row in self.rows])

    @property
    def n_arrangements(self) -> int:
        """Number of distinct relabellings of the kept units, if all members share them."""
        panel = self.members[0].panel
        return int(math.factorial(len(panel.totals)) ** len(panel.addresses))

    @property
    def can_enumerate(self) -> bool:
        """Whether all relabellings are few enough to count."""
        panel = self.members[0].panel
        is_small = len(panel.addresses) <= ENUMERATED_UNITS and len(panel.totals) <= ENUMERATED_UNITS
        return is_small and len(self.members) == 1 and self.n_arrangements <= MAX_ARRANGEMENTS

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count, for each hypothesis, the trials whose largest range of scores is at least its |difference|.

        References
        ----------
        Carterette 2012, "Multiple testing in statistical analysis of systems-based information
        retrieval experiments", section 4.3; Smucker, Allan & Carterette 2007.
        """
        ranges = np.zeros(n_trials)
        for member in self.members:
            panel, m = member.panel, member.metric
            size = max(1, TILE_BYTES // (panel.totals.nbytes or 1))
            values = np.ascontiguousarray(panel.values)
            fixed = panel.totals - values.sum(axis=0)
            sums = np.empty((min(size, n_trials), *panel.totals.shape), np.int64)
            key, word = np.array(panel.key, np.uint32), get_run_word(run, RELABEL)
            for start in range(0, n_trials, size):
                block = sums[: n_trials - start]
                sum_relabelled(key, word, first + start, panel.addresses, values, fixed, self.enumerated, block)
                scores = panel.metrics[m].form.score(panel.to_arguments(m, block))
                slack = _compute_slack(member, block)
                high, low = scores.max(axis=1), scores.min(axis=1)
                reach = (high - low + 2 * TIE * (np.abs(high) + np.abs(low)) + slack) * member.weight
                block_ranges = ranges[start : start + len(block)]
                np.maximum(block_ranges, reach, out=block_ranges)
        ranges.sort()
        extreme = n_trials - np.searchsorted(ranges, self.observed, side="left")
        return Tally(n_trials, extreme.astype(np.int64)[:, None, None])

    joint_tail: ClassVar[int] = 0
    """Tail of the exceedances that give the adjusted p-values."""

    step_down_order: ClassVar[None] = None
    """None, because the test is not step-down."""

    def build_enumeration(self) -> Relabelling:
        """Return the family whose trials are all relabellings of the kept units."""
        return replace(self, enumerated=True)


def _compute_slack(member: FamilyMember, sums: Integers) -> Any:
    """Return the slack of a range of scores, in score units: one number, or one for each trial."""
    panel, m = member.panel, member.metric
    if panel.is_approximate(m):
        return 2 * panel.compute_error_bounds(m, sums).max(axis=1) + panel.observed_error_bounds[:, m].max()
    if not panel.linear[m] or all(panel.lattices[f].slack == 0 for f in panel.list_compared_fields(m)):
        return 0.0
    return 2 * panel.count_slack_steps(m) * float(panel.sizes.sum()) * panel.compute_step_value(m)
