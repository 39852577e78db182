"""Families: hypotheses that are judged together on shared shuffles; arrays alone.

A hypothesis is a weighted sum of differences of scores: one pair by one metric on one test set or
subset, or the mean of a pair's differences over several sets. Statistics of different metrics and
sets are put on one scale first, by weights fixed before counting that no swap can change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.identity import known_as
from sigdask.metrics.forms import gradient
from sigdask.panels import ENUMERATED_UNITS, Panel
from sigdask.tallies import FAMILY_TAILS, Manner

SIDES = {"two-sided": 0, "greater": 1, "less": -1}
"""What a family's statistic is: |T|, T or -T."""

MOST_ARRANGEMENTS = 2**ENUMERATED_UNITS


@known_as("Member", "panel metric weight")
@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One metric of one panel, and what a unit of its score is worth in the family."""

    panel: Panel
    metric: int
    weight: float = 1.0


@known_as("Family", "members parts side enumerated")
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
    """

    members: tuple[Member, ...]
    parts: NDArray[np.int64]
    side: int = 0
    enumerated: bool = False

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
    def order(self) -> NDArray[np.int64]:
        """Hypotheses from the least to the most extreme."""
        extreme = np.abs(self.observed) if self.side == 0 else self.side * self.observed
        return np.argsort(extreme, kind="stable")

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


def swap_deviations(panel: Panel, metric: int) -> NDArray[np.float64]:
    """Return the standard deviation of each pair's difference under swaps, linearised.

    At the pooled sums of the two systems, which no swap changes, the score's gradient turns each
    unit's difference of counts into one of scores; a swap only turns its sign.

    Returns
    -------
    float64 array, shape (n_pairs,)
        In units of the score; exact for linear metrics.
    """
    form = panel.metrics[metric].form
    values, totals = panel.sums(metric, panel.values), panel.sums(metric, panel.totals)
    deviations = np.empty(len(panel.pairs))
    for p, (i, j) in enumerate(panel.pairs):
        slope = gradient(form, (totals[i] + totals[j]) / 2)
        deviations[p] = math.sqrt(float((((values[:, i] - values[:, j]) @ slope) ** 2).sum()))
    return deviations


def spread(panel: Panel, metric: int) -> float:
    """Return the root mean square deviation of differences under relabelling, linearised at the mean sums."""
    slope = gradient(panel.metrics[metric].form, panel.sums(metric, panel.totals).mean(axis=0))
    values = panel.sums(metric, panel.values) @ slope  # (n_kept, n_systems)
    n_systems = values.shape[1]
    return math.sqrt(2 * n_systems / max(n_systems - 1, 1) * float(values.var(axis=1).sum()))


def root_mean_square(deviations: NDArray[np.float64]) -> float:
    """Return the scale of a group of hypotheses; 1 where nothing varies."""
    size = math.sqrt(float((deviations**2).mean())) if len(deviations) else 0.0
    return size if math.isfinite(size) and size > 0 else 1.0


def chunks(order: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    """Yield runs of hypotheses in order, `size` at a time."""
    for start in range(0, len(order), size):
        yield order[start : start + size]
