"""Relabellings, and their joint counts: how often the largest range of scores is as large as one's own difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import TIE
from sigdask.identity import known_as
from sigdask.randomization.kernels.relabel import relabelled_sums
from sigdask.randomization.panels.digests import Digests
from sigdask.randomization.panels.families import FamilyMember, digest_of
from sigdask.randomization.panels.sums import ENUMERATED_UNITS
from sigdask.randomization.stream.shuffles import relabel_word
from sigdask.randomization.tallies import CountingMethod, Tally

TILE_BYTES = 2**20

MOST_ARRANGEMENTS = 2**ENUMERATED_UNITS


@known_as("Relabelling", "members rows enumerated")
@dataclass(frozen=True, eq=False)
class Relabelling:
    """The randomised Tukey HSD (Carterette 2012): all systems relabelled within each unit.

    The statistic of a trial is the largest range of scores, max - min over the systems, of any
    member; it tests full exchangeability, so unequal variances can reject equal means.

    Attributes
    ----------
    members : tuple of FamilyMember
        Each with all systems on one lattice.
    rows : int64 array, shape (n_hypotheses, 2)
        (member, row of its panel's pairs).
    enumerated : bool
        Trials are all relabellings of the kept units.
    """

    members: tuple[FamilyMember, ...]
    rows: NDArray[np.int64]
    enumerated: bool = False

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=1, timed=256)
    is_whole: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of hypotheses and, always one, of metrics."""
        return len(self.rows), 1

    @property
    def nbytes(self) -> int:
        """Size of its arrays, about."""
        return sum(member.panel.nbytes for member in self.members)

    @cached_property
    def observed(self) -> NDArray[np.float64]:
        """Observed |difference|, shape (n_hypotheses,)."""
        per_member = [np.abs(m.panel.differences[:, m.metric]) * m.weight for m in self.members]
        return np.array([per_member[member][row] for member, row in self.rows])

    @property
    def n_arrangements(self) -> int:
        """Distinct relabellings of the kept units, where all members share them."""
        panel = self.members[0].panel
        return int(math.factorial(len(panel.totals)) ** len(panel.addresses))

    @property
    def can_enumerate(self) -> bool:
        """Whether all relabellings are few enough to count."""
        panel = self.members[0].panel
        few = len(panel.addresses) <= ENUMERATED_UNITS and len(panel.totals) <= ENUMERATED_UNITS
        return few and len(self.members) == 1 and self.n_arrangements <= MOST_ARRANGEMENTS

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count the family as a whole."""
        return relabel_tally(self, run=run, first=first, n_trials=n_trials)

    def part(self, _rows: Sequence[int] | NDArray[np.int64], _columns: Sequence[int] | None = None) -> Relabelling:
        """Return itself: it is counted as a whole."""
        return self

    def judged_by(self, _method: str) -> tuple[int, None]:
        """Return which tail p-values are of: there is one, and no order."""
        return 0, None

    def digests(self) -> Digests:
        """Return what it is as a whole, by content, shape (1, 1)."""
        return digest_of(self, self.members)

    def enumeration(self) -> Relabelling:
        """Return the family of all relabellings of the kept units."""
        return replace(self, enumerated=True)


def relabel_tally(family: Relabelling, *, run: int, first: int, n_trials: int) -> Tally:
    """Count a relabelling: trials whose largest range of scores is at least each |difference|.

    References
    ----------
    Carterette 2012, "Multiple testing in statistical analysis of systems-based information
    retrieval experiments", section 4.3; Smucker, Allan & Carterette 2007.
    """
    ranges = np.zeros(n_trials)
    for member in family.members:
        _raise_ranges(member, run, first, ranges, enumerated=family.enumerated)
    ranges.sort()
    extreme = n_trials - np.searchsorted(ranges, family.observed, side="left")
    return Tally(n_trials, extreme.astype(np.int64)[:, None, None])


def _raise_ranges(member: FamilyMember, run: int, first: int, ranges: NDArray[np.float64], *, enumerated: bool) -> None:
    panel, m = member.panel, member.metric
    size = max(1, TILE_BYTES // (panel.totals.nbytes or 1))
    values = np.ascontiguousarray(panel.values)
    fixed = panel.totals - values.sum(axis=0)
    sums = np.empty((min(size, len(ranges)), *panel.totals.shape), np.int64)
    key, word = np.array(panel.key, np.uint32), relabel_word(run)
    for start in range(0, len(ranges), size):
        here = sums[: len(ranges) - start]
        relabelled_sums(key, word, first + start, panel.addresses, values, fixed, enumerated, here)
        scores = panel.metrics[m].form.score(panel.sums(m, here))
        slack = _lattice_slack(member, here)
        high, low = scores.max(axis=1), scores.min(axis=1)
        reach = (high - low + 2 * TIE * (np.abs(high) + np.abs(low)) + slack) * member.weight
        now = ranges[start : start + len(here)]
        np.maximum(now, reach, out=now)


def _lattice_slack(member: FamilyMember, sums: NDArray[np.int64]) -> Any:
    """Return how far a range can miss a true tie, in units of the score: a number, or one a trial."""
    panel, m = member.panel, member.metric
    if panel.is_approximate(m):
        return 2 * panel.movement(m, sums).max(axis=1) + panel.observed_movement[:, m].max()
    if not panel.linear[m] or all(panel.lattices[f].slack == 0 for f in panel.compared(m)):
        return 0.0
    return 2 * panel.steps(m) * float(panel.sizes.sum()) * panel.unit_of(m)
