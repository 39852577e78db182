"""Families under max-T: hypotheses judged together on shared shuffles, by the largest statistic of all.

Each hypothesis is divided by its own standard deviation under swaps, which no swap can change, so that
none hides another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import TIE
from sigdask.identity import known_as
from sigdask.metrics.forms import Formula
from sigdask.randomization.families.deviations import contributions, resolution, swap_deviations
from sigdask.randomization.kernels.differences import raise_linear, raise_maxima, raise_scaled
from sigdask.randomization.kernels.layouts import layout
from sigdask.randomization.panels.digests import Digests
from sigdask.randomization.panels.families import FamilyMember, chunks, digest_of
from sigdask.randomization.panels.sums import ENUMERATED_UNITS, Panel
from sigdask.randomization.slabs import TrialSlab, slab_size, slabs
from sigdask.randomization.tallies import FAMILY_TAILS, CountingMethod, Tally

CHUNK = 16
"""Hypotheses whose differences are written out at a time, so that they stay in the L2 cache."""

ROOMS_BYTES = 2**27
"""What the slabs of all panels of a family may take: one each is held at a time."""
WORD_BYTES, SUM_BYTES = 16, 8
"""What a trial takes of them: the swap word, and a sum a column."""


ORDERED_BITS = 40
"""Bits by which statistics are told apart when they are put in order: others are ties, on every machine."""

MEASURED = 1e-9
"""Relative accuracy of a deviation whose slopes are measured by steps of 1e-4, where two are equal."""

MOST_NUMBERS = 2**21
"""Contributions of several parts that are added up at a time."""


@known_as("Family", "members parts side enumerated", added="studentised")
@dataclass(frozen=True, eq=False)
class Family:
    """Hypotheses under max-T (Westfall & Young 1993): swaps shared by all of them.

    Attributes
    ----------
    members : tuple of FamilyMember
        Whose differences are combined; panels of one test set share their swaps.
    parts : int64 array, shape (n_hypotheses, n_parts, 2)
        (member, row of its panel's pairs) of the differences that a hypothesis sums.
    side : int
        0 compares |T|, 1 compares T, -1 compares -T.
    enumerated : bool
        Trials are all arrangements of the kept units instead of random ones.
    studentised : bool
        Each hypothesis is divided by its own standard deviation under swaps; one that nothing varies
        raises no maximum and has p = 1.
    """

    members: tuple[FamilyMember, ...]
    parts: NDArray[np.int64]
    side: int = 0
    enumerated: bool = False
    studentised: bool = False

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=len(FAMILY_TAILS))
    is_whole: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of hypotheses and, always one, of metrics."""
        return len(self.parts), 1

    @property
    def nbytes(self) -> int:
        """Size of its arrays, about."""
        return sum(panel.nbytes for panel in self.panels)

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """The distinct panels of its members."""
        return tuple({id(member.panel): member.panel for member in self.members}.values())

    @cached_property
    def observed(self) -> NDArray[np.float64]:
        """Observed statistics, signed, shape (n_hypotheses,)."""
        total = np.zeros(len(self.parts))
        for k, member in enumerate(self.members):
            differences = member.panel.differences[:, member.metric] * member.weight
            for part in range(self.parts.shape[1]):
                here = self.parts[:, part, 0] == k
                total[here] += differences[self.parts[here, part, 1]]
        return total

    @cached_property
    def is_integral(self) -> bool:
        """Whether its statistics are differences of integer totals of one member."""
        panel, m = self.members[0].panel, self.members[0].metric
        single = len(self.members) == 1 and self.parts.shape[1] == 1
        return single and panel.linear[m] and not panel.slack[:, m].any()

    @cached_property
    def scales(self) -> NDArray[np.float64]:
        """What a unit of each hypothesis's difference is worth, shape (n_hypotheses,); 0 where nothing varies."""
        if not self.studentised:
            return np.ones(len(self.parts))
        deviations = self._deviations
        varies = deviations > np.maximum(self._resolution, np.finfo(np.float64).tiny)
        return np.where(varies, 1.0, 0.0) / np.where(varies, deviations, 1.0)

    @property
    def rounding(self) -> float:
        """Relative distance within which two statistics may be a tie: slopes of formulas are measured."""
        forms = (member.panel.metrics[member.metric].form for member in self.members)
        return MEASURED if any(isinstance(form, Formula) for form in forms) else TIE

    @cached_property
    def _deviations(self) -> NDArray[np.float64]:
        """Standard deviation of each hypothesis under swaps, shape (n_hypotheses,)."""
        found = np.empty(len(self.parts))
        if self.parts.shape[1] > 1:
            for some in chunks(np.arange(len(found)), max(1, MOST_NUMBERS // max(len(self._places), 1))):
                found[some] = self._summed(some)
            return found
        for k, member in enumerate(self.members):
            here = np.flatnonzero(self.parts[:, 0, 0] == k)
            rows = self.parts[here, 0, 1]
            found[here] = abs(member.weight) * swap_deviations(member.panel, member.metric, rows.tolist())
        return found

    def _summed(self, some: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return deviations of hypotheses of several parts, whose units may be the same (subsets of documents)."""
        places, parts = self._places, self.parts[some]
        total = np.zeros((len(some), len(places)))
        for part in range(parts.shape[1]):
            for k in np.unique(parts[:, part, 0]):
                member, which = self.members[k], np.flatnonzero(parts[:, part, 0] == k)
                at = np.array([places[member.panel.key, int(a)] for a in member.panel.addresses], np.int64)
                moved = contributions(member.panel, member.metric, parts[which, part, 1].tolist())
                total[np.ix_(which, at)] += member.weight * moved
        return np.asarray(np.sqrt((total**2).sum(axis=1)))

    @property
    def _resolution(self) -> NDArray[np.float64]:
        """Deviation of each hypothesis that rounding alone may make, shape (n_hypotheses,)."""
        found = np.zeros(len(self.parts))
        for k, member in enumerate(self.members):
            for part in range(self.parts.shape[1]):
                here = np.flatnonzero(self.parts[:, part, 0] == k)
                rows = self.parts[here, part, 1].tolist()
                found[here] += abs(member.weight) * resolution(member.panel, member.metric, rows)
        return found

    @cached_property
    def statistics(self) -> NDArray[np.float64]:
        """Observed statistics as they are compared, shape (n_hypotheses,); -inf where nothing varies."""
        extreme = np.abs(self.observed) if self.side == 0 else self.side * self.observed
        return np.where(self.scales > 0, extreme * self.scales, -np.inf)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Hypotheses from the least to the most extreme."""
        if not self.studentised:
            return np.argsort(self.statistics, kind="stable")
        return in_order(self.statistics)

    @property
    def n_arrangements(self) -> int:
        """Distinct arrangements of the kept units of all test sets."""
        return 1 << len(self._places)

    @property
    def can_enumerate(self) -> bool:
        """Whether all arrangements are few enough to count."""
        most = max(len(panel.addresses) for panel in self.panels)
        return most <= ENUMERATED_UNITS and len(self._places) <= ENUMERATED_UNITS

    @cached_property
    def _places(self) -> dict[tuple[tuple[int, int], int], int]:
        """Place of each kept unit, (key of its stream, address), among those of all panels."""
        found = {(panel.key, int(a)): None for panel in self.panels for a in panel.addresses}
        return {unit: k for k, unit in enumerate(sorted(found))}

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count the family as a whole."""
        return family_tally(self, run=run, first=first, n_trials=n_trials)

    def part(self, _rows: Sequence[int] | NDArray[np.int64], _columns: Sequence[int] | None = None) -> Family:
        """Return itself: it is counted as a whole."""
        return self

    def judged_by(self, method: str) -> tuple[int, NDArray[np.int64] | None]:
        """Return which tail a method's p-values are of, and the order in which they step down."""
        if method == "single-step-max-t":
            return FAMILY_TAILS.index("single-step"), None
        return FAMILY_TAILS.index("step-down"), self.order

    def digests(self) -> Digests:
        """Return what it is as a whole, by content, shape (1, 1)."""
        return digest_of(self, self.members)

    def enumeration(self) -> Family:
        """Return the family of all arrangements of the kept units."""
        places = self._places
        moved = {
            id(panel): replace(
                panel,
                addresses=np.array([places[panel.key, int(a)] for a in panel.addresses], np.int64),
                enumerated=True,
            )
            for panel in self.panels
        }
        members = tuple(replace(member, panel=moved[id(member.panel)]) for member in self.members)
        return replace(self, members=members, enumerated=True)


def in_order(statistics: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the places of statistics from the least to the largest, the same on every machine."""
    mantissa, exponent = np.frexp(statistics)
    return np.argsort(np.ldexp(np.round(np.ldexp(mantissa, ORDERED_BITS)), exponent), kind="stable")


def family_tally(family: Family, *, run: int, first: int, n_trials: int) -> Tally:
    """Count a family: marginal tails, single-step and step-down, in trials of a run.

    Parameters
    ----------
    family : Family
        The hypotheses.
    run, first, n_trials : int
        As in `Panel.tally`.

    Returns
    -------
    Tally
        counts of shape (n_hypotheses, 1, 5), tails as in `FAMILY_TAILS`.

    References
    ----------
    Westfall & Young 1993, "Resampling-based multiple testing", algorithms 2.5 and 2.8.
    """
    counts = np.zeros((len(family.parts), Family.manner.n_tails), np.int64)
    size = min(n_trials, _together(family), *(slab_size(panel) for panel in family.panels))
    streams = [slabs(panel, run=run, first=first, n_trials=n_trials, size=size) for panel in family.panels]
    place = {id(panel): k for k, panel in enumerate(family.panels)}
    add = _add_integers if family.is_integral else _add_floats
    room = np.empty((3, CHUNK, size))
    for row in zip(*streams, strict=True):
        add(family, [row[place[id(member.panel)]] for member in family.members], room, counts)
    return Tally(n_trials, counts[:, None, :])


def _together(family: Family) -> int:
    """Return how many trials a slab may have, that those of all panels fit in memory together."""
    a_trial = sum(WORD_BYTES + layout(panel).n_columns * SUM_BYTES + panel.totals.nbytes for panel in family.panels)
    return max(ROOMS_BYTES // a_trial // 256 * 256, 1024)


def _add_integers(
    family: Family, by_member: list[TrialSlab], _room: NDArray[np.float64], counts: NDArray[np.int64]
) -> None:
    """Add the counts of one slab where the statistics are integers."""
    slab, order, member = by_member[0], family.order, family.members[0]
    moved, totals = slab.prepared(member.metric)
    pairs = slab.panel.pairs[family.parts[:, 0, 1]]
    observed = totals[pairs[:, 0]] - totals[pairs[:, 1]]
    own = np.abs(observed) if family.side == 0 else family.side * observed
    found = np.zeros((len(order), 4), np.int64)
    if family.studentised:
        scales = family.scales * (abs(member.weight) * slab.panel.unit_of(member.metric))
        own = _within_rounding(own * scales, scales)
        largest = np.full(slab.n_trials, -np.inf)
        raise_scaled(moved, pairs[order], observed[order], scales[order], own[order], family.side, largest, found)
    else:
        largest = np.full(slab.n_trials, np.iinfo(moved.dtype).min, moved.dtype)
        raise_linear(moved, pairs[order], observed[order], family.side, largest, found)
    counts[order, :3] += found[:, :3]
    counts[order, 4] += found[:, 3]
    _single_step(largest, own, counts)


def _add_floats(
    family: Family, by_member: list[TrialSlab], room: NDArray[np.float64], counts: NDArray[np.int64]
) -> None:
    """Add the counts of one slab, a chunk of hypotheses at a time."""
    observed, scales, here = family.observed, family.scales, by_member[0].n_trials
    own = _within_rounding(family.statistics, scales, family.rounding) if family.studentised else family.statistics
    largest = room[2, 0, :here]
    largest[:] = -np.inf
    for some in chunks(family.order, CHUNK):
        out, tie = room[0, : len(some), :here], room[1, : len(some), :here]
        _differences(family, by_member, some, out, tie)
        found = np.zeros((len(some), 4), np.int64)
        raise_maxima(out, tie, observed[some], scales[some], own[some], family.side, largest, found)
        counts[some, :3] += found[:, :3]
        counts[some, 4] += found[:, 3]
    _single_step(largest, own, counts)


def _within_rounding(
    statistics: NDArray[np.float64], scales: NDArray[np.float64], rounding: float = TIE
) -> NDArray[np.float64]:
    """Return what a maximum must reach: a tie of two scales counts; all reach that of a hypothesis without one."""
    return np.where(scales > 0, statistics - rounding * np.abs(statistics), -np.inf)


def _single_step(largest: NDArray[Any], own: NDArray[Any], counts: NDArray[np.int64]) -> None:
    """Add the trials whose largest statistic of all is at least each one's own."""
    largest.sort()
    counts[:, 3] += len(largest) - np.searchsorted(largest, own.astype(largest.dtype), side="left")


def _differences(
    family: Family,
    by_member: list[TrialSlab],
    some: NDArray[np.int64],
    out: NDArray[np.float64],
    tie: NDArray[np.float64],
) -> None:
    """Write the statistics of some hypotheses, shape (n_some, n_trials), and their slack."""
    out[:], tie[:] = 0.0, 0.0
    parts = family.parts[some]
    for part in range(parts.shape[1]):
        members = parts[:, part, 0]
        for k in np.unique(members):
            member, which = family.members[k], np.flatnonzero(members == k)
            rows = parts[which, part, 1]
            if len(which) == len(some):
                by_member[k].add(member.metric, rows, member.weight, out, tie)
                continue
            own = np.zeros((2, len(which), out.shape[1]))
            by_member[k].add(member.metric, rows, member.weight, own[0], own[1])
            out[which] += own[0]
            tie[which] += own[1]
