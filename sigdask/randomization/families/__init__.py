"""Families of hypotheses that are tested together by their largest statistic.

Under max-T they share swaps. Each difference is divided by its own standard deviation under swaps, which no swap can
change. So a comparison of large variance does not dominate the maximum (Westfall & Young 1993, "Resampling-based
multiple testing").

Randomised Tukey HSD: relabel systems in trials, and count how often the range of scores reaches a difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from sigdask.counts.fields import Floats, Integers
from sigdask.metrics.forms import Formula
from sigdask.randomization.kernels.labels import sum_relabelled
from sigdask.randomization.kernels.scored import raise_maxima, raise_scaled
from sigdask.randomization.panels.build import FamilyMember, iter_chunks
from sigdask.randomization.panels.digests import WholePanel
from sigdask.randomization.panels.scored_sums import compute_contributions, compute_resolution, compute_swap_deviations
from sigdask.randomization.panels.sums import ENUMERATED_UNITS, Panel
from sigdask.randomization.slabs import TrialSlab, compute_slab_size, iter_slabs
from sigdask.randomization.stream import RELABEL, get_run_word
from sigdask.randomization.tallies import FAMILY_TAILS, CountingMethod, Tally
from sigdask.statistics.lattice import TIE

CHUNK = 32
"""Hypotheses whose differences are computed at a time. (With 64, which no longer fit the caches, F1 of 190 pairs took
1.1 times as long. With 16, 435 pairs on five panels took 1.2 times as long.)"""

MIN_TRIALS = 1024
"""Least number of trials of a slab; the slabs of all panels of a family are in memory together."""

ORDERED_BITS = 40
"""Bits that decide the order of statistics. Statistics with equal bits are tied, on every machine."""

MEASURED = 1e-9
"""Relative accuracy within which deviations are equal, if slopes are measured by steps of 1e-4."""

MAX_NUMBERS = 2**21
"""Maximum number of unit sums of several parts that are added at a time."""


@dataclass(frozen=True, eq=False)
class MaxTFamily(WholePanel):
    """Hypotheses under max-T (Westfall & Young 1993), which all share the same swaps.

    Attributes
    ----------
    members : tuple of FamilyMember
        Members whose differences are combined. Panels of one test set share their swaps.
    parts : int64 array, shape (n_hypotheses, n_parts, 2)
        (member, row of its panel's pairs) of the differences that a hypothesis sums.
    side : int
        0 compares |T|, 1 compares T, -1 compares -T.
    enumerated : bool
        Whether trials are all arrangements of the kept units instead of random ones.
    """

    members: tuple[FamilyMember, ...]
    parts: Integers
    side: int = 0
    enumerated: bool = False

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=len(FAMILY_TAILS))

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "family", self.members, self.parts, self.side, self.enumerated

    @property
    def shape(self) -> tuple[int, int]:
        """Number of hypotheses, and of metrics, always 1."""
        return len(self.parts), 1

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """The distinct panels of its members."""
        return tuple({id(member.panel): member.panel for member in self.members}.values())

    @cached_property
    def observed(self) -> Floats:
        """Observed weighted sum of differences of each hypothesis, signed, shape (n_hypotheses,)."""
        return self._add_parts(lambda member, rows: member.panel.differences[rows, member.metric] * member.weight)

    @property
    def extreme(self) -> Floats:
        """Observed sums, signed so that larger is more extreme, shape (n_hypotheses,)."""
        return np.abs(self.observed) if self.side == 0 else self.side * self.observed

    def _add_parts(self, compute: Callable[[FamilyMember, Integers], Floats]) -> Floats:
        """Return the sum over the parts of each hypothesis of what `compute` returns for rows of a member."""
        total = np.zeros(len(self.parts))
        for k, member in enumerate(self.members):
            for part in range(self.parts.shape[1]):
                selected = np.flatnonzero(self.parts[:, part, 0] == k)
                total[selected] += compute(member, self.parts[selected, part, 1])
        return total

    @cached_property
    def is_linear(self) -> bool:
        """Whether each hypothesis is one difference of integer totals, whose denominators no swap changes."""
        return self.parts.shape[1] == 1 and all(member.panel.linear[member.metric] for member in self.members)

    @cached_property
    def scales(self) -> Floats:
        """Factor from each hypothesis's difference to its statistic, (n_hypotheses,): 1 / its deviation under swaps.

        0 if no swap changes it. Such a hypothesis does not raise the maximum and has p = 1.
        """
        deviations = self._deviations
        varies = deviations > np.maximum(self._resolution, np.finfo(np.float64).tiny)
        return np.where(varies, 1.0, 0.0) / np.where(varies, deviations, 1.0)

    @property
    def rounding(self) -> float:
        """Relative distance within which two statistics tie; it is larger where slopes of formulas are measured."""
        forms = (member.panel.metrics[member.metric].form for member in self.members)
        return MEASURED if any(isinstance(form, Formula) for form in forms) else TIE

    @property
    def _deviations(self) -> Floats:
        """Standard deviation of each hypothesis under swaps, shape (n_hypotheses,)."""
        if self.parts.shape[1] == 1:
            return self._add_parts(
                lambda member, rows: abs(member.weight) * compute_swap_deviations(member.panel, member.metric, rows)
            )
        size = max(1, MAX_NUMBERS // max(len(self._unit_positions), 1))
        batches = iter_chunks(np.arange(len(self.parts)), size)
        return np.concatenate([self._compute_joint_deviations(batch) for batch in batches])

    def _compute_joint_deviations(self, hypotheses: Integers) -> Floats:
        """Return standard deviations under swaps of hypotheses that sum several differences, which may share units."""
        positions, parts = self._unit_positions, self.parts[hypotheses]
        total = np.zeros((len(hypotheses), len(positions)))
        for part in range(parts.shape[1]):
            for k in np.unique(parts[:, part, 0]):
                member, selected = self.members[k], np.flatnonzero(parts[:, part, 0] == k)
                columns = np.array([positions[member.panel.key, int(a)] for a in member.panel.addresses], np.int64)
                moved = compute_contributions(member.panel, member.metric, parts[selected, part, 1].tolist())
                total[np.ix_(selected, columns)] += member.weight * moved
        return np.asarray(np.sqrt((total**2).sum(axis=1)))

    @property
    def _resolution(self) -> Floats:
        """Standard deviation that rounding alone may give each hypothesis, shape (n_hypotheses,)."""
        return self._add_parts(
            lambda member, rows: abs(member.weight) * compute_resolution(member.panel, member.metric, rows)
        )

    @cached_property
    def statistics(self) -> Floats:
        """Observed statistics, signed so that larger is more extreme, (n_hypotheses,); -inf if no swap changes one."""
        return np.where(self.scales > 0, self.extreme * self.scales, -np.inf)

    @cached_property
    def order(self) -> Integers:
        """Indices of the hypotheses, from the least to the most extreme."""
        return sort_statistics(self.statistics)

    def list_integers(self) -> tuple[Integers, Integers, Integers, Floats, Floats]:
        """Return what the integer kernel compares, of each hypothesis in `order`, if all are linear.

        Pairs of rows of the members' systems one after another, shape (n_hypotheses, 2), observed differences and their
        slack in steps, the statistic of a step, and the threshold of the statistic, shape (n_hypotheses,).
        """
        pairs, (observed, slack) = np.empty((len(self.parts), 2), np.int64), np.empty((2, len(self.parts)), np.int64)
        steps, n_before = np.empty(len(self.parts)), 0
        for k, member in enumerate(self.members):
            panel, rows = member.panel, np.flatnonzero(self.parts[:, 0, 0] == k)
            own, totals = self.parts[rows, 0, 1], panel.compute_numerators(member.metric, panel.totals)
            pairs[rows], slack[rows] = panel.pairs[own] + n_before, panel.slack[own, member.metric]
            observed[rows] = totals[panel.pairs[own, 0]] - totals[panel.pairs[own, 1]]
            steps[rows] = abs(member.weight) * panel.compute_step_value(member.metric)
            n_before += len(totals)
        extreme, scales = np.abs(observed) if self.side == 0 else self.side * observed, self.scales * steps
        columns = (pairs, observed, slack, scales, _lower_by_rounding(extreme * scales, scales))
        return tuple(column[self.order] for column in columns)  # type: ignore[return-value]

    @property
    def n_arrangements(self) -> int:
        """Number of distinct arrangements of the kept units of all test sets."""
        return 1 << len(self._unit_positions)

    @property
    def can_enumerate(self) -> bool:
        """Whether all arrangements are few enough to count."""
        largest = max(len(panel.addresses) for panel in self.panels)
        return largest <= ENUMERATED_UNITS and len(self._unit_positions) <= ENUMERATED_UNITS

    @cached_property
    def _unit_positions(self) -> dict[tuple[tuple[int, int], int], int]:
        """Position of each kept unit, given as (stream key, address), among the kept units of all panels."""
        units = {(panel.key, int(a)): None for panel in self.panels for a in panel.addresses}
        return {unit: k for k, unit in enumerate(sorted(units))}

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count marginal and step-down exceedances of the family in trials of a run.

        Parameters
        ----------
        run, first, n_trials : int
            As in `Panel.tally`.

        Returns
        -------
        Tally
            counts of shape (n_hypotheses, 1, 4), tails as in `FAMILY_TAILS`.

        References
        ----------
        Westfall & Young 1993, "Resampling-based multiple testing", algorithm 2.8.
        """
        panels, counts = self.panels, np.zeros((len(self.parts), len(FAMILY_TAILS)), np.int64)
        size = min(n_trials, *(max(compute_slab_size(panel) // len(panels), MIN_TRIALS) for panel in panels))
        streams = [iter_slabs(panel, run=run, first=first, n_trials=n_trials, size=size) for panel in panels]
        index_of = {id(panel): k for k, panel in enumerate(panels)}
        # made again for each range of trials: results of many pairs need the memory
        if self.is_linear:
            add = partial(_add_integers, self, self.list_integers())
        else:
            add = partial(_add_floats, self, np.empty((3, CHUNK, size)))
        for row in zip(*streams, strict=True):
            add([row[index_of[id(member.panel)]] for member in self.members], counts)
        return Tally(n_trials, counts[:, None, :])

    joint_tail: ClassVar[int] = FAMILY_TAILS.index("step-down")
    """Tail of the exceedances that give the adjusted p-values."""

    @property
    def step_down_order(self) -> Integers:
        """Order of the hypotheses in which p-values are made monotone."""
        return self.order

    def build_enumeration(self) -> MaxTFamily:
        """Return the family whose trials are all arrangements of the kept units."""
        positions = self._unit_positions
        moved = {
            id(panel): replace(
                panel,
                addresses=np.array([positions[panel.key, int(a)] for a in panel.addresses], np.int64),
                enumerated=True,
            )
            for panel in self.panels
        }
        members = tuple(replace(member, panel=moved[id(member.panel)]) for member in self.members)
        return replace(self, members=members, enumerated=True)


def sort_statistics(statistics: Floats) -> Integers:
    """Return the indices that sort statistics in ascending order, the same on every machine."""
    mantissa, exponent = np.frexp(statistics)
    return np.argsort(np.ldexp(np.round(np.ldexp(mantissa, ORDERED_BITS)), exponent), kind="stable")


def _add_integers(family: MaxTFamily, integers: tuple[Any, ...], by_member: list[TrialSlab], counts: Integers) -> None:
    """Add the exceedances in one slab to `counts`, for a family whose differences are integers."""
    largest, slab_counts = np.full(by_member[0].n_trials, -np.inf), np.zeros(counts.shape, np.int64)
    moved = [slab.get_prepared(m.metric)[0][0] for slab, m in zip(by_member, family.members, strict=True)]
    joined = moved[0] if len(moved) == 1 else np.concatenate(moved)
    raise_scaled(joined, *integers, family.side, largest, slab_counts)
    counts[family.order] += slab_counts


def _add_floats(family: MaxTFamily, room: Floats, by_member: list[TrialSlab], counts: Integers) -> None:
    """Add the exceedances in one slab to `counts`, computing the differences of a few hypotheses at a time."""
    observed, scales, n_trials = family.observed, family.scales, by_member[0].n_trials
    thresholds = _lower_by_rounding(family.statistics, scales, family.rounding)
    largest = room[2, 0, :n_trials]
    largest[:] = -np.inf
    for batch in iter_chunks(family.order, CHUNK):
        batch_room = room[:2, : len(batch), :n_trials]
        _write_differences(family, by_member, batch, batch_room)
        batch_counts = np.zeros((len(batch), len(FAMILY_TAILS)), np.int64)
        raise_maxima(*batch_room, observed[batch], scales[batch], thresholds[batch], family.side, largest, batch_counts)
        counts[batch] += batch_counts


def _lower_by_rounding(statistics: Floats, scales: Floats, rounding: float = TIE) -> Floats:
    """Return statistics lowered by their rounding error, so that ties count; -inf, always reached, for a scale of 0."""
    return np.where(scales > 0, statistics - rounding * np.abs(statistics), -np.inf)


def _write_differences(family: MaxTFamily, by_member: list[TrialSlab], hypotheses: Integers, room: Floats) -> None:
    """Write differences of some hypotheses in each trial, and their slack, to `room`, shape (2, n_some, n_trials)."""
    parts = family.parts[hypotheses]
    for part in range(parts.shape[1]):
        members = parts[:, part, 0]
        for k in np.unique(members):
            member, selected = family.members[k], np.flatnonzero(members == k)
            is_direct = part == 0 and len(selected) == len(hypotheses)  # adding to zeros takes 1.2 times as long
            written = room if is_direct else np.empty((2, len(selected), room.shape[2]))
            slab = by_member[k]
            slab.kernels[member.metric].write(slab, parts[selected, part, 1], member.weight, *written)
            if not is_direct:
                room[:, selected] = written if part == 0 else room[:, selected] + written


TILE_BYTES = 2**20


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
        return is_small and len(self.members) == 1 and self.n_arrangements <= 2**ENUMERATED_UNITS

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
