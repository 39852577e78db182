"""Families under the studentised bootstrap: units resampled for all hypotheses alike, by the largest statistic.

Each resample gives every hypothesis the statistic (t* - t) / se*, with the standard error of that same resample.
Where differences are skewed and their means equal, nothing may be exchanged and max-T finds too much. The resamples
then keep the skewness, and the standard error follows it.

What a unit contributes to a difference is linearised at each system's own sums: exact for means over units of
equal weight. Contributions become integers whose squares sum exactly in float64, so a count depends neither on the
partition nor on the order of summation.

References
----------
Romano & Wolf 2005, "Exact and approximate stepdown methods for multiple hypothesis testing", JASA 100:94.
Westfall & Young 1993, "Resampling-based multiple testing". Efron & Tibshirani 1993, "An introduction to the
bootstrap", section 12.5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.identity import known_as
from sigdask.io.compiled_cache import compiled
from sigdask.metrics.forms import Formula, gradients, scores_or_nan
from sigdask.randomization.families.max_t import Family, in_order
from sigdask.randomization.kernels.dense import one_thread
from sigdask.randomization.panels.digests import Digests
from sigdask.randomization.panels.families import chunks, digest_of
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.sums import kinds_of
from sigdask.randomization.stream.shuffles import Key, draw
from sigdask.randomization.tallies import CountingMethod, Tally

TAILS = "single-step", "step-down"
"""The last axis of the counts: resamples whose largest statistic is at least the hypothesis's own."""

SINGLE_STEP, STEP_DOWN = range(len(TAILS))

PARTS, OCTAVES = 512, 16
"""Cells of the largest statistic: so many in each octave of 1 + statistic, so that a quantile is known to 0.2 %."""

N_CELLS = PARTS * OCTAVES
CELL_ROWS = N_CELLS // len(TAILS)
"""Rows of the counts that hold the cells, after those of the hypotheses."""

CONSTANT = 1e-9
"""Share of the mean square below which units do not vary."""

TIE = 1e-9
"""Relative distance within which two statistics of exact sums are a tie."""

EXACT_BITS = 53
"""Integers below two to this power are exact in float64."""

CHUNK, TRIALS = 64, 1024
"""Hypotheses and resamples whose sums are made at a time, so that they stay in a cache."""

MOST_NUMBERS = 2**22
"""Contributions that are kept, and weights that are drawn, at a time."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Sums = tuple[Integers, Floats, Floats]
"""Hypotheses, and their sums and variances in some resamples, shape (n_hypotheses, n_trials)."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitMoments:
    """Contributions of some hypotheses to the units of one test set, as integers.

    Attributes
    ----------
    rows : int64 array, shape (n_hypotheses,)
        Which of the hypotheses at hand these are.
    first, second : float64 array, shape (n_hypotheses, n_kinds)
        Whole numbers, and their squares.
    base : float64 array, shape (n_hypotheses,)
        Sums of the first over all units.
    """

    rows: Integers
    first: Floats
    second: Floats
    base: Floats


@dataclass(frozen=True, slots=True, eq=False)
class ResampledSet:
    """One test set whose units are resampled.

    Attributes
    ----------
    key : tuple of int
        Of its stream.
    kinds : int array, shape (n_units,)
        The kind of each unit: units of one kind contribute the same to every hypothesis.
    multiplicity : float64 array, shape (n_kinds,)
        Units of each kind.
    members : tuple of int
        The members of the family that are of this test set.
    systems : tuple of float64 array, shape (n_kinds, n_systems)
        What a unit of each kind adds to the score of each system, of each of these members.
    below : tuple of float64 array, shape (n_kinds,)
        What it adds to a mean's denominator, as a share of it. Zero where this is the same for all units, and of
        other scores.
    """

    key: Key
    kinds: NDArray[Any]
    multiplicity: Floats
    members: tuple[int, ...]
    systems: tuple[Floats, ...]
    below: tuple[Floats, ...]

    @property
    def n_units(self) -> int:
        """Units of the test set."""
        return len(self.kinds)


@known_as("StudentisedBootstrap", "family n_units")
@dataclass(frozen=True, eq=False)
class StudentisedBootstrap:
    """Hypotheses under the step-down studentised bootstrap (Romano & Wolf 2005).

    Attributes
    ----------
    family : Family
        The hypotheses. Its panels have all their units, concordant ones included.
    n_units : tuple of int
        Units of the test set of each member, those included that its panel has no items of.
    """

    family: Family
    n_units: tuple[int, ...]

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=len(TAILS), timed=64)
    is_whole: ClassVar[bool] = True
    enumerated: ClassVar[bool] = False
    can_enumerate: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows of the counts (hypotheses, then cells of the largest) and, always one, of metrics."""
        return self.n_hypotheses + CELL_ROWS, 1

    @property
    def n_hypotheses(self) -> int:
        """Hypotheses judged together."""
        return len(self.family.parts)

    @property
    def n_drawn(self) -> int:
        """Units that a resample draws, of all test sets."""
        return sum(dict(zip((m.panel.key for m in self.family.members), self.n_units, strict=True)).values())

    @property
    def nbytes(self) -> int:
        """Size of its arrays, about."""
        return self.family.nbytes

    @property
    def n_arrangements(self) -> int:
        """Resamples that are alike likely: too many to count."""
        return math.prod(n**n for n in set(self.n_units))

    @cached_property
    def sets(self) -> tuple[ResampledSet, ...]:
        """The test sets, by the keys of their streams."""
        members = self.family.members
        keys = sorted({member.panel.key for member in members})
        return tuple(self._resampled_set(key, [k for k, m in enumerate(members) if m.panel.key == key]) for key in keys)

    @cached_property
    def errors(self) -> Floats:
        """Standard error of each difference in units of the score, shape (n_hypotheses,); 0 where units do not vary."""
        return self._errors_and_slack[0]

    @cached_property
    def statistics(self) -> Floats:
        """Observed statistics as they are compared, shape (n_hypotheses,); -inf where units do not vary."""
        family = self.family
        extreme = np.abs(family.observed) if family.side == 0 else family.side * family.observed
        varies = self.errors > 0
        return np.where(varies, extreme / np.where(varies, self.errors, 1.0), -np.inf)

    @cached_property
    def order(self) -> Integers:
        """Hypotheses from the least to the most extreme."""
        return in_order(self.statistics)

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count resamples `first` to `first + n_trials - 1` of a run, all hypotheses together."""
        counts = np.zeros((self.n_hypotheses, len(TAILS)), np.int64)
        cells = np.zeros(N_CELLS, np.int64)
        varies, slack = self.errors > 0, self._errors_and_slack[1]
        extreme = np.where(varies, self.statistics, 0.0)
        own = np.where(varies, extreme - slack * np.abs(extreme), np.inf)  # which no statistic reaches
        for largest, moments in self._blocks(run, first, n_trials):
            for some, num, var in moments:
                down = np.zeros(len(some), np.int64)
                raise_largest(num, var, own[some], self.family.side, largest, down)
                counts[some, STEP_DOWN] += down
            largest.sort()
            counts[:, SINGLE_STEP] += len(largest) - np.searchsorted(largest, own, side="left")
            cells += np.bincount(cells_of(largest), minlength=N_CELLS)
        counts[~varies] = n_trials  # p = 1
        return Tally(n_trials, np.concatenate([counts, cells.reshape(CELL_ROWS, len(TAILS))])[:, None, :])

    def part(self, _rows: Sequence[int] | Integers, _columns: Sequence[int] | None = None) -> StudentisedBootstrap:
        """Return itself: it is counted as a whole."""
        return self

    def judged_by(self, method: str) -> tuple[int, Integers | None]:
        """Return which tail a method's p-values are of, and the order in which they step down."""
        return (SINGLE_STEP, None) if method == "single-step-max-t" else (STEP_DOWN, self.order)

    def digests(self) -> Digests:
        """Return what it is as a whole, by content, shape (1, 1)."""
        return digest_of(self, self.family.members)

    def enumeration(self) -> StudentisedBootstrap:
        """Return itself: resamples are never enumerated."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without what is arranged for summing, which is made where it is needed."""
        return StudentisedBootstrap, (self.family, self.n_units)

    def _resampled_set(self, key: Key, members: list[int]) -> ResampledSet:
        """Arrange the contributions of the members of one test set by kinds of units."""
        n_units, own = self.n_units[members[0]], [self.family.members[k] for k in members]
        panels = {id(member.panel): member.panel for member in own}
        kinds, first = kinds_of(n_units, [column for panel in panels.values() for column in _columns(panel, n_units)])
        added = [system_contributions(member.panel, member.metric, n_units) for member in own]
        multiplicity = np.bincount(kinds, minlength=len(first)).astype(np.float64)
        systems, below = (tuple(both[side][first] for both in added) for side in range(2))
        return ResampledSet(key, kinds, multiplicity, tuple(members), systems, below)

    @cached_property
    def _place(self) -> dict[int, tuple[int, int]]:
        """The test set of each member, and its place among the members of it."""
        return {k: (s, place) for s, own in enumerate(self.sets) for place, k in enumerate(own.members)}

    def _contributions(self, some: Integers) -> list[tuple[Integers, Floats]]:
        """Return what units of each kind add to some differences, in units of the score: of each test set.

        Returns
        -------
        list of (int64 array, float64 array)
            Which of the hypotheses take part, and their contributions, shape (n_rows, n_kinds).
        """
        parts = self.family.parts[some]
        set_of = np.zeros(len(self.family.members), np.int64)
        set_of[list(self._place)] = [s for s, _ in self._place.values()]
        found = []
        for s, own in enumerate(self.sets):
            rows = np.flatnonzero((set_of[parts[:, :, 0]] == s).any(axis=1))
            found.append((rows, np.zeros((len(rows), len(own.multiplicity)))))
        for part in range(parts.shape[1]):
            for k in np.unique(parts[:, part, 0]).tolist():
                s, place = self._place[k]
                here = np.flatnonzero(parts[:, part, 0] == k)
                rows, total = found[s]
                total[np.searchsorted(rows, here)] += self._added(k, self.sets[s], place, parts[here, part, 1])
        return found

    def _added(self, k: int, own: ResampledSet, place: int, rows: Integers) -> Floats:
        """Return what units of each kind add to the differences of some pairs of one member."""
        member, g, below = self.family.members[k], own.systems[place], own.below[place]
        panel, metric = member.panel, member.metric
        i, j = panel.pairs[rows].T
        added = np.asarray((g[:, i] - g[:, j]).T * worth_of(panel, metric))
        if below.any():
            added -= panel.differences[rows, metric][:, None] * below
        return added * member.weight

    @cached_property
    def _is_integral(self) -> bool:
        """Whether contributions are integers whose squares sum exactly."""
        if self.family.parts.shape[1] > 1:
            return False
        linear = all(member.panel.linear[member.metric] for member in self.family.members)
        plain = all(not below.any() for own in self.sets for below in own.below)
        reach = max((float(np.ptp(g)) for own in self.sets for g in own.systems if g.size), default=0.0)
        return linear and plain and reach <= 2.0**self._bits

    @cached_property
    def _worths(self) -> Floats:
        """What a step of the contributions of each member is worth in the family, shape (n_members,)."""
        return np.array([abs(m.weight) * worth_of(m.panel, m.metric) for m in self.family.members])

    @cached_property
    def _bits(self) -> int:
        """Bits of a contribution, so that the sum of the squares of all units is exact."""
        return (EXACT_BITS - math.ceil(math.log2(max(self.n_drawn, 2)))) // 2

    def _whole_numbers(self, some: Integers) -> tuple[list[UnitMoments], Floats]:
        """Return the contributions of some hypotheses as integers, of each test set, and what a step is worth."""
        several = self._contributions(some)
        if self._is_integral:
            step = self._worths[self.family.parts[some, 0, 0]]
        else:
            most = np.zeros(len(some))
            for (rows, added), own in zip(several, self.sets, strict=True):
                np.subtract(added, ((added @ own.multiplicity) / own.n_units)[:, None], out=added)  # changes no sum
                most[rows] = np.maximum(most[rows], np.abs(added).max(axis=1, initial=0.0))
            step = np.ldexp(1.0, np.frexp(np.where(most > 0, most, 1.0))[1] - self._bits)
        moments = []
        for (rows, added), own in zip(several, self.sets, strict=True):
            whole = np.rint(added / np.where(step[rows] > 0, step[rows], 1.0)[:, None])
            moments.append(UnitMoments(rows, whole, whole**2, whole @ own.multiplicity))
        return moments, step

    @cached_property
    def _errors_and_slack(self) -> tuple[Floats, float]:
        """Return standard errors, shape (n_hypotheses,), and the relative distance within which statistics tie."""
        errors = np.empty(self.n_hypotheses)
        for some in chunks(np.arange(self.n_hypotheses), self._chunk):
            moments, step = self._whole_numbers(some)
            var = np.zeros(len(some))
            for own, moment in zip(self.sets, moments, strict=True):
                square = moment.second @ own.multiplicity
                own_var = square - moment.base * (moment.base / own.n_units)
                var[moment.rows] += np.where(own_var > CONSTANT * square, own_var, 0.0)
            errors[some] = step * np.sqrt(var)
        return errors, TIE if self._is_integral else 2.0 ** (3 - self._bits)

    @property
    def _chunk(self) -> int:
        """Hypotheses whose contributions are written out at a time."""
        n_kinds = sum(len(own.multiplicity) for own in self.sets)
        return int(np.clip(MOST_NUMBERS // (2 * max(n_kinds, 1)), 1, CHUNK))

    def _blocks(self, run: int, first: int, n_trials: int) -> Iterator[tuple[Floats, Iterator[Sums]]]:
        """Yield, of some resamples at a time, room for the largest statistic and the sums of hypotheses in order."""
        n_kinds = [len(own.multiplicity) for own in self.sets]
        size = int(np.clip(MOST_NUMBERS // max(sum(n_kinds), 1), 1, min(TRIALS, n_trials)))
        listed = list(chunks(self.order, self._chunk))
        is_kept = max(n_kinds) * self.n_hypotheses <= MOST_NUMBERS
        kept = [self._whole_numbers(some)[0] for some in listed] if is_kept else None
        weights = [np.empty((size, n)) for n in n_kinds]
        for start in range(first, first + n_trials, size):
            drawn = [own[: first + n_trials - start] for own in weights]
            for own, out in zip(self.sets, drawn, strict=True):
                draw(own.key, run, start, own.kinds, out)
            yield np.full(len(drawn[0]), -np.inf), self._sums(listed, kept, drawn)

    def _sums(
        self, listed: list[Integers], kept: list[list[UnitMoments]] | None, drawn: list[Floats]
    ) -> Iterator[Sums]:
        """Yield hypotheses with the sums over drawn units, less the observed ones, and their variances."""
        for k, some in enumerate(listed):
            moments = self._whole_numbers(some)[0] if kept is None else kept[k]
            num, var = np.zeros((2, len(some), len(drawn[0])))
            for own, moment, weights in zip(self.sets, moments, drawn, strict=True):
                with one_thread():
                    above, square = moment.first @ weights.T, moment.second @ weights.T
                add_moments(moment.rows, above, square, moment.base, float(own.n_units), num, var)
            yield some, num, var


def _columns(panel: Panel, n_units: int) -> Iterator[NDArray[Any]]:
    """Yield what each system of a panel has in each field, by unit of the test set, shape (n_units,)."""
    for s in range(panel.values.shape[1]):
        for f in range(panel.values.shape[2]):
            yield _spread(panel.values[:, s, f], panel, n_units)


def _spread(values: NDArray[Any], panel: Panel, n_units: int) -> NDArray[Any]:
    """Return what units of a panel have as what all units of the test set have: 0 where the panel has none."""
    if len(panel.addresses) == n_units:
        return values
    found = np.zeros((n_units, *values.shape[1:]), values.dtype)
    found[panel.addresses] = values
    return found


def worth_of(panel: Panel, metric: int) -> float:
    """Return what a step of a contribution is worth: those of means are integers."""
    return panel.unit_of(metric) if panel.linear[metric] else 1.0


def system_contributions(panel: Panel, metric: int, n_units: int) -> tuple[Floats, Floats]:
    """Return what each unit of a test set adds to each system's score, linearised, and to a mean's denominator.

    Parameters
    ----------
    panel : Panel
        With all its units.
    metric : int
        Of the panel.
    n_units : int
        Units of the test set, some of which the panel may lack.

    Returns
    -------
    (float64 array, float64 array)
        Of shapes (n_units, n_systems), in steps of `worth_of`, and (n_units,). The second is a share of the whole
        denominator: zero where that is the same for all units, and of scores that are no means.
    """
    form, values = panel.metrics[metric].form, panel.values
    share = np.zeros(len(values))
    if panel.linear[metric]:
        fields, weights = list(panel.metrics[metric].fields), np.array(panel.ratio(metric).denominators[0])
        below = (values[:, 0][:, fields].astype(np.int64) @ weights).astype(np.float64)
        if len(below) < n_units or (below != below[:1]).any():
            share = below / float(panel.totals[0, fields] @ weights)
        found = np.asarray(panel.numerators_of(metric, values), np.float64)
    elif isinstance(form, Formula):  # it may jump, so that units are left out instead
        left = panel.sums(metric, panel.totals - values.astype(np.int64))
        found = np.nan_to_num(scores_or_nan(form, panel.sums(metric, panel.totals)) - scores_or_nan(form, left))
    else:
        slopes = gradients(form, np.asarray(panel.sums(metric, panel.totals), np.float64))
        own, found = panel.sums(metric, values), np.zeros(values.shape[:2])
        for f in range(slopes.shape[1]):
            found += own[..., f] * slopes[:, f]
    return _spread(found, panel, n_units), _spread(share, panel, n_units)


def cells_of(largest: Floats) -> Integers:
    """Return the cells that statistics lie in: the bits of 1 + statistic, which no rounding of logarithms can move."""
    bits = np.ascontiguousarray(1.0 + np.maximum(largest, 0.0)).view(np.int64)
    return np.asarray(np.minimum((bits >> (52 - 9)) - (1023 << 9), N_CELLS - 1))


def lower_edges() -> Floats:
    """Return the least statistic of each cell, shape (N_CELLS,)."""
    cells = np.arange(N_CELLS, dtype=np.int64) + (1023 << 9)
    return np.asarray((cells << (52 - 9)).view(np.float64) - 1.0)


def critical_value(tally: Tally, alpha: float) -> float:
    """Return the largest statistic that so small a share of resamples reaches; infinite where resamples are too few.

    A hypothesis whose statistic is above it has a single-step p of at most alpha.
    """
    cells = tally.counts[-CELL_ROWS:, 0].ravel()
    allowed = math.floor(alpha * (tally.n_trials + 1) + 1e-9) - 1
    reached = np.cumsum(cells[::-1])[::-1]  # resamples at or above the lower edge of each cell
    enough = np.flatnonzero(reached <= allowed)
    return float(lower_edges()[enough[0]]) if len(enough) else math.inf


@compiled()
def add_moments(rows, above, square, base, n_units, num, var):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add the sums of one test set over drawn units, less the observed ones, and their variances."""
    for k in range(rows.shape[0]):
        h = rows[k]
        for t in range(num.shape[1]):
            s, q = above[k, t], square[k, t]
            v = q - s * (s / n_units)
            num[h, t] += s - base[k]
            var[h, t] += v if v > CONSTANT * q else 0.0


@compiled()
def raise_largest(num, var, own, side, largest, counts):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Raise the largest statistic of each resample by hypotheses in ascending order, and count those at least as large.

    A resample in which units do not vary gives no statistic, as such data give none.
    """
    for h in range(num.shape[0]):
        reached = 0
        least = own[h]
        is_varying = not np.isinf(least)
        for t in range(num.shape[1]):
            top = largest[t]
            if is_varying and var[h, t] > 0.0:
                x = num[h, t] / np.sqrt(var[h, t])
                x = abs(x) if side == 0 else side * x
                top = max(top, x)
                largest[t] = top
            reached += 1 if top >= least else 0
        counts[h] = reached
