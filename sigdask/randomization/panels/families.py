"""Families: hypotheses that are judged together on shared shuffles; arrays alone.

A hypothesis is a weighted sum of differences of scores: one pair by one metric on one test set or
subset, or the mean of a pair's differences over several sets. Each is divided by its own standard
deviation under swaps, which no swap can change, so that none hides another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import TIE
from sigdask.identity import known_as
from sigdask.metrics.forms import Formula
from sigdask.randomization.deviations import contributions, resolution, swap_deviations
from sigdask.randomization.panels.sums import ENUMERATED_UNITS, Panel
from sigdask.randomization.tallies import FAMILY_TAILS, Manner

SIDES = {"two-sided": 0, "greater": 1, "less": -1}
"""What a family's statistic is: |T|, T or -T."""

MOST_ARRANGEMENTS = 2**ENUMERATED_UNITS

ORDERED_BITS = 40
"""Bits by which statistics are told apart when they are put in order: others are ties, on every machine."""

MEASURED = 1e-9
"""Relative accuracy of a deviation whose slopes are measured by steps of 1e-4, where two are equal."""

MOST_NUMBERS = 2**21
"""Contributions of several parts that are added up at a time."""


@known_as("Member", "panel metric weight")
@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One metric of one panel, and what a unit of its score is worth in the family."""

    panel: Panel
    metric: int
    weight: float = 1.0


@known_as("Family", "members parts side enumerated", added="studentised")
@dataclass(frozen=True, eq=False)
class Family:
    """Hypotheses under max-T (Westfall & Young 1993): swaps shared by all of them.

    Attributes
    ----------
    members : tuple of Member
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

    members: tuple[Member, ...]
    parts: NDArray[np.int64]
    side: int = 0
    enumerated: bool = False
    studentised: bool = False

    manner: ClassVar[Manner] = Manner(n_tails=len(FAMILY_TAILS))

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
        mantissa, exponent = np.frexp(self.statistics)
        return np.argsort(np.ldexp(np.round(np.ldexp(mantissa, ORDERED_BITS)), exponent), kind="stable")

    @property
    def n_arrangements(self) -> int:
        """Distinct arrangements of the kept units of all test sets."""
        return 1 << len(self._places)

    @property
    def can_enumerate(self) -> bool:
        """Whether all arrangements are few enough to count."""
        return len(self._places) <= ENUMERATED_UNITS

    @cached_property
    def _places(self) -> dict[tuple[tuple[int, int], int], int]:
        """Place of each kept unit, (key of its stream, address), among those of all panels."""
        found = {(panel.key, int(a)): None for panel in self.panels for a in panel.addresses}
        return {unit: k for k, unit in enumerate(sorted(found))}

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


@known_as("Relabelling", "members rows enumerated")
@dataclass(frozen=True, eq=False)
class Relabelling:
    """The randomised Tukey HSD (Carterette 2012): all systems relabelled within each unit.

    The statistic of a trial is the largest range of scores, max - min over the systems, of any
    member; it tests full exchangeability, so unequal variances can reject equal means.

    Attributes
    ----------
    members : tuple of Member
        Each with all systems on one lattice.
    rows : int64 array, shape (n_hypotheses, 2)
        (member, row of its panel's pairs).
    enumerated : bool
        Trials are all relabellings of the kept units.
    """

    members: tuple[Member, ...]
    rows: NDArray[np.int64]
    enumerated: bool = False

    manner: ClassVar[Manner] = Manner(n_tails=1, timed=256)

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


def chunks(order: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    """Yield runs of hypotheses in order, `size` at a time."""
    for start in range(0, len(order), size):
        yield order[start : start + size]
