"""From counts to results: bound, interval, cross-checks and notes of each comparison."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.comparisons import Asked, Comparison
from sigdask.comparison.found.result import Exact, Result, SecondRun
from sigdask.comparison.jobs import Slots
from sigdask.comparison.notes import Note
from sigdask.counts import Counts
from sigdask.errors import InputError, SigdaskError
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.options import Alternative
from sigdask.randomization.jobs import Cell, Tallies
from sigdask.randomization.tallies import TAILS
from sigdask.statistics import crosscheck
from sigdask.statistics.bounds import bound, interval, p_value, trials_to_decide
from sigdask.statistics.classical import correlations, sign_test
from sigdask.statistics.rounding import limits_text

Failed = Callable[[str, str], object]
"""Told of a black box that gives no score: its name, and why."""


class Inference:
    """Makes results of counts: bound, interval, checks, notes.

    A black box that fails is an error; where `failed` is given it is told, and the scores are NaN.
    """

    def __init__(
        self, asked: Asked, alternative: Alternative, alpha: float, n_sampled: int, failed: Failed | None = None
    ) -> None:
        self.asked, self.failed = asked, failed
        self.alternative = alternative
        self.tail = TAILS.index(alternative)
        self.alpha = alpha
        self.n_sampled = max(n_sampled, 1)
        self._r12: dict[tuple[str, str | None], NDArray[np.float64]] = {}

    def result(self, c: Comparison, slots: Slots, tallies: Tallies) -> Result:
        """Return one comparison's result."""
        counts = self.asked.counts
        score_a, score_b = self._scores(c)
        exact = self._exact(c, slots, tallies)
        n_trials, n_extreme = self._counted(c, slots, tallies)
        p = self.p_value(c, slots, tallies)
        is_exact = slots.first is None and exact is not None
        limits = (p, p) if is_exact else interval(n_extreme, n_trials)
        again = self._second_run(slots, tallies, n_trials, n_extreme)
        result = Result(
            test_set=counts.name,
            subset=c.subset,
            unit=counts.unit,
            a=counts.systems[c.pair[0]],
            b=counts.systems[c.pair[1]],
            metric=c.metric.name,
            higher_is_better=c.metric.higher_is_better,
            score_a=score_a,
            score_b=score_b,
            difference=_difference(c, score_a, score_b),
            alternative=self.alternative,
            n_items=c.n_items,
            n_units=c.panel.extent[1],
            n_discordant=c.n_discordant,
            method="exact" if is_exact else "approximate",
            n_trials=n_trials,
            n_extreme=n_extreme,
            p_value=p,
            p_interval=(limits[0], limits[1]),
            r12=self._correlation(c),
            second_run=again,
            exact=exact,
            checks=self._checks(c, n_extreme, n_trials, again, exact, sampled=not is_exact),
            signature=c.metric.signature,
        )
        return _with_notes(result, c, self.alpha)

    def p_value(self, c: Comparison, slots: Slots, tallies: Tallies) -> float:
        """Return one comparison's p: exact where all arrangements were counted, else the bound."""
        n_trials, n_extreme = self._counted(c, slots, tallies)
        exact = slots.first is None and n_trials > 0
        return p_value(n_extreme, n_trials, exact=exact)

    def _counted(self, c: Comparison, slots: Slots, tallies: Tallies) -> tuple[int, int]:
        """Return trials and exceedances; of arrangements all, or none where some are not counted yet."""
        if slots.first is not None:
            return self._trials(tallies, slots.first)
        counted = self._trials(tallies, slots.cells[0])
        return counted if counted[0] == 2**c.n_discordant else (0, 0)

    def _trials(self, tallies: Tallies, cell: Cell) -> tuple[int, int]:
        tally = tallies[cell.job]
        return tally.trials_of(cell.row, cell.column), int(tally.counts[cell.row, cell.column, self.tail])

    def _scores(self, c: Comparison) -> tuple[float, float]:
        try:
            return c.panel.scores_of(c.row, c.column)
        except InputError as error:
            if self.failed is None or c.panel.manner.vectorised:
                raise
            self.failed(c.metric.name, str(error))
            return math.nan, math.nan

    def _exact(self, c: Comparison, slots: Slots, tallies: Tallies) -> Exact | None:
        if slots.exact is None:
            return None
        n_arrangements, n_extreme = self._trials(tallies, slots.exact)
        if n_arrangements < 2**c.n_discordant:
            return None
        if n_extreme == 0:
            raise SigdaskError(f"{c.label(self.asked.counts)}: no arrangement is as extreme as the observed one itself")
        p = n_extreme / n_arrangements
        return Exact(p, p, "enumeration", "exact")

    def _second_run(self, slots: Slots, tallies: Tallies, n_trials: int, n_extreme: int) -> SecondRun | None:
        if slots.second is None:
            return None
        n_again, again = self._trials(tallies, slots.second)
        if n_again != n_trials or n_trials == 0:  # stopped before its end: runs of unequal length are not compared
            return None
        agreement = crosscheck.runs_agree(n_extreme, again, n_trials)
        return SecondRun(n_trials, again, bound(again, n_trials), agreement)

    def _checks(
        self,
        c: Comparison,
        n_extreme: int,
        n_trials: int,
        again: SecondRun | None,
        exact: Exact | None,
        *,
        sampled: bool,
    ) -> tuple[crosscheck.Check, ...]:
        checks = []
        if again is not None:
            checks.append(
                crosscheck.second_run(n_extreme, again.n_extreme, n_trials, again.agreement_p, self.n_sampled)
            )
        else:
            why = "not asked for" if sampled else "all arrangements were counted"
            checks.append(crosscheck.Check("second run", "not applicable", None, why))
        checks.append(self._sign_test(c, n_extreme, n_trials, sampled=sampled))
        if exact is not None and sampled:
            checks.append(
                crosscheck.against_known("exact value", exact.p_lo, n_extreme, n_trials, self.n_sampled, exact=False)
            )
        return tuple(checks)

    def _sign_test(self, c: Comparison, n_extreme: int, n_trials: int, *, sampled: bool) -> crosscheck.Check:
        signs = c.panel.signs(c.row, c.column)
        if signs is None:
            return crosscheck.Check("sign test", "not applicable", None, "the score is not a mean of 0/1 item scores")
        if self.asked.counts.unit != "item":
            detail = f"{self.asked.counts.unit} is exchanged, not the item: another null hypothesis"
            return crosscheck.Check("sign test", "not applicable", None, detail)
        p = sign_test(*signs, self.alternative)
        return crosscheck.against_known("sign test", p, n_extreme, n_trials, self.n_sampled, exact=not sampled)

    def _correlation(self, c: Comparison) -> float | None:
        """Return r12 where the metric is a mean over a fixed set of items."""
        if not isinstance(c.metric, BoundMetric) or not c.panel.is_mean(c.column):
            return None
        counts = self.asked.counts
        if counts.present is not None or c.metric.held is not None:
            values = _item_scores(counts, c.metric, c.mask, list(c.pair))
            r = float(correlations(values)[0, 1])
        else:
            key = (c.metric.name, c.subset["value"] if c.subset else None)
            if key not in self._r12:
                self._r12[key] = correlations(_item_scores(counts, c.metric, c.mask, list(range(counts.n_systems))))
            r = float(self._r12[key][c.pair])
        return None if math.isnan(r) else r


def _difference(c: Comparison, a: float, b: float) -> float:
    """Return A - B; 0 where the two are a tie as the shuffled ones are ties: within rounding."""
    return 0.0 if abs(a - b) <= c.panel.tie_width(c.row, c.column, a, b) else a - b


def _item_scores(
    counts: Counts, metric: BoundMetric, mask: NDArray[np.bool_] | None, systems: list[int]
) -> NDArray[np.float64]:
    """Return numerators of the items that the denominator counts, shape (n_items, n_systems).

    Where items are of different sizes (sentences of tokens), what they have above the system's share of
    their size: else the correlation would be that of a size with itself.
    """
    form = metric.form
    assert isinstance(form, Ratios)
    rows = np.flatnonzero(counts.in_common(systems, mask, metric.held))
    above, below = np.zeros((len(rows), len(systems))), np.zeros((len(rows), len(systems)))
    for name, up, down in zip(metric.fields, form.numerators[0], form.denominators[0], strict=True):
        values = metric.field(name, counts)
        field = values[rows] if values.shape[1] == 1 else values[rows][:, systems]
        above += up * field
        below += down * field
    kept = (below > 0).all(axis=1)
    scores, sizes = above[kept], below[kept]
    if (sizes == sizes[:1]).all():
        return scores
    return np.asarray(scores - sizes * (scores.sum(axis=0) / sizes.sum(axis=0)))


def _step(c: Comparison) -> str:
    """Say how finely scores are told apart, where that is not exactly."""
    step = c.panel.step(c.column)
    return f" by {step:.2g} or more, as finely as such large scores are told apart" if step else ""


def adjusted(result: Result, p: float, limits: tuple[float, float]) -> Result:
    """Return the result with an adjusted p and its interval, which the verdict is of; what was said of p names it."""
    notes = tuple(_of_unadjusted(note) if note.kind == "undecided" else note for note in result.notes)
    return replace(result, p_adjusted=p, p_adjusted_interval=limits, notes=notes)


def _of_unadjusted(note: Note) -> Note:
    return replace(note, kind="unadjusted-undecided", text=f"unadjusted p {note.text}")


def _with_notes(result: Result, c: Comparison, alpha: float) -> Result:
    notes = []
    if result.n_discordant == 0:
        notes.append(Note("identical", f"identical: no unit differs in what the metric counts{_step(c)}"))
    for name, value in zip((result.a, result.b), c.panel.undefined(c.row, c.column), strict=True):
        if value is not None:
            notes.append(
                Note("zero-division", f"{name}: 0/0 scored {value:g}", {"system": name, "score": float(value)})
            )
    if result.n_trials == 0:
        notes.append(Note("not-reached", "not reached: no trial is counted yet, and 1 bounds every p"))
    elif result.is_undecided(alpha):
        needed = trials_to_decide(result.n_extreme / result.n_trials, alpha)
        remedy = f"about {needed:,} trials would decide" if needed else "no number of trials is likely to decide"
        low, high = result.p_interval
        limits = limits_text(low, high, alpha)
        text = f"undecided at {alpha:g}: the 99 % interval of p is {limits}; {remedy}"
        notes.append(Note("undecided", text, {"alpha": alpha, "low": low, "high": high, "needed": needed}))
    return replace(result, notes=tuple(notes))
