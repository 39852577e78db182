"""From counts to what is found: bound, interval, cross-checks, for all comparisons at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.correlation import TestSetCorrelations
from sigdask.analysis.comparison.pairs import AllCountPositions, Comparisons, CountPositions, Integers
from sigdask.counts.grouping import numbered, rows_of
from sigdask.errors import InputError, SigdaskError
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets
from sigdask.options import Alternative
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels import ComparedPanel
from sigdask.randomization.tallies import TAILS
from sigdask.results.columns.coded import Coded, ScoredMetric
from sigdask.results.exact import ExactValues
from sigdask.results.table import AGREES, DISAGREES, NOT_APPLICABLE, CheckResults, Floats, Table
from sigdask.statistics import bounds, crosscheck
from sigdask.statistics.classical.sign import sign_test

Failed = Callable[[str, str], object]
"""Told of a black box that gives no score: its name, and why."""

NO_SUCH_CHECK = -1
NOT_A_MEAN = "the score is not a mean of 0/1 item scores"


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonCounts:
    """What was counted of some comparisons: arrays of shape (n,), 0 trials where nothing was."""

    n_trials: Integers
    n_extreme: Integers

    def where(self, kept: NDArray[np.bool_], other: ComparisonCounts) -> ComparisonCounts:
        """Return these counts where `kept`, else the others."""
        return ComparisonCounts(
            np.where(kept, self.n_trials, other.n_trials), np.where(kept, self.n_extreme, other.n_extreme)
        )


@dataclass(frozen=True, slots=True, eq=False)
class JudgementSettings:
    """How comparisons are judged.

    Attributes
    ----------
    alternative : str
        Which tail.
    alpha : float
        Level of the verdicts.
    n_sampled : int
        Sampled comparisons judged together, by which alarms are shared.
    failed : callable, optional
        A black box that gives no score is an error; where this is given it is told, and the scores are NaN.
    """

    alternative: Alternative
    alpha: float
    n_sampled: int
    failed: Failed | None = None

    def table(
        self, asked: Comparisons, slots: AllCountPositions, jobs: Sequence[Job], tallies: Tallies, known: ExactValues
    ) -> Table:
        """Return what was found of comparisons whose counts stand at `slots`, and of which exact values are known."""
        tail = TAILS.index(self.alternative)
        sample = counted_at(slots.first, jobs, tallies, tail)
        whole = whole_counts(asked, slots, jobs, tallies, tail)
        counted, exact = _judged(slots, sample, whole)
        p = bounds.p_value(counted.n_extreme, counted.n_trials, exact=exact)
        low, high = bounds.interval(counted.n_extreme, counted.n_trials)
        again = self._again(counted, counted_at(slots.second, jobs, tallies, tail))
        agreement = crosscheck.runs_agree(counted.n_extreme, again.n_extreme, np.maximum(counted.n_trials, 1))
        agreement = np.where(again.n_trials > 0, agreement, np.nan)
        known = _shares(whole).where(whole.n_trials > 0, known)
        seen = _ObservedData.of(asked, self.failed)
        n = len(asked)
        return Table(
            alpha=self.alpha,
            test_set=Coded.same(asked.counts.name, n),
            subset=asked.subset,
            unit=Coded.same(asked.counts.unit, n),
            a=Coded(asked.a, tuple(asked.counts.systems)),
            b=Coded(asked.b, tuple(asked.counts.systems)),
            metric=Coded(asked.metric, tuple(map(_score_of, asked.metrics))),
            alternative=Coded.same(self.alternative, n),
            score_a=seen.scores[:, 0],
            score_b=seen.scores[:, 1],
            difference=seen.difference,
            n_items=asked.n_items,
            n_units=asked.n_units,
            n_discordant=asked.n_discordant,
            exact=exact,
            n_trials=counted.n_trials,
            n_extreme=counted.n_extreme,
            p_value=p,
            p_low=np.where(exact, p, low),
            p_high=np.where(exact, p, high),
            r12=TestSetCorrelations(asked).r12,
            second_trials=again.n_trials,
            second_extreme=again.n_extreme,
            agreement_p=agreement,
            exact_low=known.low,
            exact_high=known.high,
            exact_by=known.by,
            checks={
                "second run": self._second_run(exact, again, agreement),
                "sign test": self._sign_test(asked, seen.signs, counted, exact),
                "exact value": self._exact_value(known, counted, exact, asked.rational.known),
            },
            p_adjusted=np.full(n, np.nan),
            p_adjusted_low=np.full(n, np.nan),
            p_adjusted_high=np.full(n, np.nan),
            undefined_a=seen.undefined[:, 0],
            undefined_b=seen.undefined[:, 1],
            step=seen.step,
            seen_with=np.zeros(n, np.int64),
        )

    def _again(self, counted: ComparisonCounts, second: ComparisonCounts) -> ComparisonCounts:
        """Return the second run; none where it stopped before its end: unequal runs are not compared."""
        kept = (second.n_trials == counted.n_trials) & (second.n_trials > 0)
        nothing = np.zeros(len(kept), np.int64)
        return second.where(kept, ComparisonCounts(nothing, nothing))

    def _alarm(self) -> float:
        return crosscheck.ALARM / max(self.n_sampled, 1)

    def _second_run(self, exact: NDArray[np.bool_], again: ComparisonCounts, agreement: Floats) -> CheckResults:
        ran = again.n_trials > 0
        why = Coded(
            np.where(ran, 0, np.where(exact, 2, 1)).astype(np.int32),
            ("", "not asked for", "all arrangements were counted"),
        )
        p = np.where(ran, bounds.bound(again.n_extreme, again.n_trials), np.nan)
        return CheckResults(_verdicts(ran, agreement >= self._alarm()), p, np.full(len(p), np.nan), why)

    def _sign_test(
        self, asked: Comparisons, signs: Integers, counted: ComparisonCounts, exact: NDArray[np.bool_]
    ) -> CheckResults:
        n = len(asked)
        tested = signs[:, 0] >= 0
        unit = asked.counts.unit
        if unit != "item":
            other = f"{unit} is exchanged, not the item: another null hypothesis"
            why = Coded(np.where(tested, 1, 0).astype(np.int32), (NOT_A_MEAN, other))
            tested = np.zeros(n, np.bool_)
        else:
            idle = ~asked.sampled & ~asked.enumerated
            why = Coded(np.where(idle, 2, tested).astype(np.int32), (NOT_A_MEAN, "", "no trials were asked for"))
            tested &= ~idle
        p, fit = np.full(n, np.nan), np.full(n, np.nan)
        p[tested] = sign_test(signs[tested, 0], signs[tested, 1], self.alternative)
        sampled = tested & ~exact
        fit[sampled] = crosscheck.count_fits(counted.n_extreme[sampled], counted.n_trials[sampled], p[sampled])
        fits = fit >= self._alarm()
        all_counted = tested & exact
        fits[all_counted] = crosscheck.equals_share(
            counted.n_extreme[all_counted], counted.n_trials[all_counted], p[all_counted]
        )
        return CheckResults(_verdicts(tested, fits), p, fit, why)

    def _exact_value(
        self, known: ExactValues, counted: ComparisonCounts, exact: NDArray[np.bool_], in_fractions: NDArray[np.bool_]
    ) -> CheckResults:
        n = len(known.high)
        held = ~np.isnan(known.high) & ~exact & (counted.n_trials > 0) & ~in_fractions  # trials are upper bounds there
        fit = np.full(n, np.nan)
        counts = counted.n_extreme[held], counted.n_trials[held]
        fit[held] = crosscheck.count_fits_within(*counts, known.low[held], known.high[held])
        verdict = np.where(held, _verdicts(held, fit >= self._alarm()), np.int8(NO_SUCH_CHECK))
        return CheckResults(verdict.astype(np.int8), np.where(held, known.high, np.nan), fit, Coded.same("", n))


def p_values(
    asked: Comparisons,
    slots: AllCountPositions,
    jobs: Sequence[Job],
    tallies: Tallies,
    alternative: Alternative,
    known: ExactValues,
) -> Floats:
    """Return p of each comparison alone, shape (n,): exact where that is known, else the bound."""
    tail = TAILS.index(alternative)
    whole = whole_counts(asked, slots, jobs, tallies, tail)
    counted, exact = _judged(slots, counted_at(slots.first, jobs, tallies, tail), whole)
    p = bounds.p_value(counted.n_extreme, counted.n_trials, exact=exact)
    known = _shares(whole).where(whole.n_trials > 0, known)
    return np.where(known.is_p, known.high, p)


def _shares(whole: ComparisonCounts) -> ExactValues:
    """Return what counts of all arrangements say."""
    return ExactValues.of_shares(np.where(whole.n_trials > 0, whole.n_extreme / np.maximum(whole.n_trials, 1), np.nan))


def _judged(
    slots: AllCountPositions, sample: ComparisonCounts, whole: ComparisonCounts
) -> tuple[ComparisonCounts, NDArray[np.bool_]]:
    """Return the counts that p is of, and where these are of all arrangements: where none was sampled."""
    sampled = slots.first.job >= 0
    return sample.where(sampled, whole), ~sampled & (whole.n_trials > 0)


def counted_at(standing: CountPositions, jobs: Sequence[Job], tallies: Tallies, tail: int) -> ComparisonCounts:
    """Return trials and exceedances of each comparison, 0 where it has no such job."""
    n_trials, n_extreme = np.zeros(len(standing.job), np.int64), np.zeros(len(standing.job), np.int64)
    for own in rows_of(numbered(standing.job)):
        place = int(standing.job[own[0]])
        if place >= 0:
            tally, row, column = tallies[jobs[place]], standing.row[own], standing.column[own]
            n_trials[own] = tally.n_trials if tally.trials is None else tally.trials[row, column]
            n_extreme[own] = tally.counts[row, column, tail]
    return ComparisonCounts(n_trials, n_extreme)


def whole_counts(
    asked: Comparisons, slots: AllCountPositions, jobs: Sequence[Job], tallies: Tallies, tail: int
) -> ComparisonCounts:
    """Return the counts of all arrangements, of comparisons of which all are counted."""
    found = counted_at(slots.exact, jobs, tallies, tail)
    feasible = slots.exact.job >= 0
    complete = feasible & (found.n_trials == 1 << np.where(feasible, asked.n_discordant, 0))
    if (wrong := np.flatnonzero(complete & (found.n_extreme == 0))).size:
        label = asked.label(int(wrong[0]))
        raise SigdaskError(f"{label}: no arrangement is as extreme as the observed one itself")
    nothing = np.zeros(len(asked), np.int64)
    known = asked.rational.known
    in_fractions = ComparisonCounts(1 << np.where(known, asked.n_discordant, 0), asked.rational.n_reached[:, tail])
    return in_fractions.where(known & complete, found.where(complete, ComparisonCounts(nothing, nothing)))


def _verdicts(applies: NDArray[np.bool_], agrees: NDArray[np.bool_]) -> NDArray[np.int8]:
    return np.where(applies, np.where(agrees, AGREES, DISAGREES), NOT_APPLICABLE).astype(np.int8)


def _score_of(metric: BoundMetric | BoundSets | BlackBox) -> ScoredMetric:
    return ScoredMetric(metric.name, metric.higher_is_better, metric.signature)


@dataclass(frozen=True, slots=True, eq=False)
class _ObservedData:
    """What is observed of comparisons, before any is shuffled: arrays of shape (n,) or (n, 2), one a system."""

    scores: Floats
    difference: Floats
    signs: Integers
    undefined: Floats
    step: Floats

    @staticmethod
    def of(asked: Comparisons, failed: Failed | None) -> _ObservedData:
        """Ask each panel once for what its pairs score."""
        n = len(asked)
        scores, ties = np.full((n, 2), np.nan), np.zeros(n)
        signs, undefined = np.full((n, 2), -1, np.int64), np.full((n, 2), np.nan)
        step = np.zeros(n)
        for own in rows_of(numbered(asked.panel)):
            panel = asked.panels[int(asked.panel[own[0]])]
            at = asked.row[own], asked.column[own]
            signs[own], undefined[own] = panel.signs[at], panel.undefined[at]
            steps = np.array([panel.step(m) for m in range(panel.n_discordant.shape[1])])
            step[own] = steps[at[1]]
            found = _scores(panel, asked.metrics[int(asked.metric[own[0]])].name, failed)
            if found is not None:
                scores[own], ties[own] = found[at], panel.tie_widths[at]
        apart = scores[:, 0] - scores[:, 1]
        difference = np.where(np.abs(apart) <= ties, 0.0, apart)  # a tie as the shuffled ones are: within rounding
        difference = np.where(asked.rational.known, asked.rational.difference, difference)
        return _ObservedData(scores, difference, signs, undefined, step)


def _scores(panel: ComparedPanel, metric: str, failed: Failed | None) -> Floats | None:
    """Return the scores of a panel's pairs; none where its black box gives none."""
    try:
        return panel.scores_of_pairs
    except InputError as error:
        if failed is None or panel.manner.vectorised:
            raise
        failed(metric, str(error))
        return None
