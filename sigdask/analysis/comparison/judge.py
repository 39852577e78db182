"""From tallies to a table: p-values, their Monte Carlo intervals and checks of all comparisons at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.classical import compute_r12
from sigdask.analysis.comparison.exact import ExactValues, read_exact_values
from sigdask.analysis.comparison.jobs import ComparisonJobs
from sigdask.analysis.comparison.pairs import Comparisons, CountedCells, CountKind, join_cells
from sigdask.counts.factors import group_rows, number_rows, scatter_rows
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.errors import InputError, SigdaskError
from sigdask.options import Alternative
from sigdask.randomization.slabs import Tallies
from sigdask.randomization.tallies import TAILS
from sigdask.results.columns import CodedColumn, Columns
from sigdask.results.table import METHODS, VERDICTS, Table
from sigdask.statistics import bounds
from sigdask.statistics.classical import sign_test

Failed = Callable[[str, str], object]
"""Called with a metric's name and the reason, if a metric of whole outputs gives no score."""

NOT_A_MEAN = "the score is not a mean of items scored 0 or 1"


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonCounts:
    """Trials and exceedances of some comparisons: arrays of shape (n,), 0 where nothing was counted."""

    n_trials: Integers
    n_extreme: Integers

    @staticmethod
    def zero(n: int) -> ComparisonCounts:
        """Return the counts of `n` comparisons of which nothing was counted, in read-only arrays."""
        return ComparisonCounts(np.broadcast_to(np.int64(0), n), np.broadcast_to(np.int64(0), n))

    def where(self, mask: Bools, other: ComparisonCounts) -> ComparisonCounts:
        """Return these counts where `mask` is true, and the counts of `other` elsewhere."""
        if mask.all():
            return self
        return ComparisonCounts(
            np.where(mask, self.n_trials, other.n_trials), np.where(mask, self.n_extreme, other.n_extreme)
        )


@dataclass(frozen=True, slots=True, eq=False)
class JudgementSettings:
    """How comparisons are judged: tail, level, and handling of failed metrics.

    Attributes
    ----------
    alternative : str
        The tail of p.
    alpha : float
        Level of the verdicts.
    n_sampled : int64 array, shape (n,)
        For each comparison, the number of sampled comparisons that are judged together and share the rate of alarms.
    failed : callable, optional
        Called if a metric of whole outputs gives no score, which is then NaN. Without this function it is an error.
    """

    alternative: Alternative
    alpha: float
    n_sampled: Integers
    failed: Failed | None = None

    def build_table(self, sets: Sequence[ComparisonJobs], tallies: Tallies) -> Table:
        """Return the table of results of test sets with one kind of unit, from the tallies of their jobs."""
        comparisons, jobs = [set_jobs.comparisons for set_jobs in sets], JointJobs.join(sets)
        n, unit = len(jobs), comparisons[0].counts.unit
        judged, exact, exact_values = _judge_counts(jobs, tallies, self.alternative)
        p = bounds.compute_p_value(judged.n_extreme, judged.n_trials, exact=exact)
        low, high = p.copy(), p.copy()
        low[~exact], high[~exact] = bounds.clopper_pearson(judged.n_extreme[~exact], judged.n_trials[~exact])
        second = jobs.read_counts("second run", tallies, TAILS.index(self.alternative))
        second = second.where(~exact & (second.n_trials > 0) & (judged.n_trials > 0), ComparisonCounts.zero(n))
        n_trials = np.maximum([judged.n_trials, second.n_trials], 1)
        agreement = bounds.compute_agreement_p(judged.n_extreme, second.n_extreme, *n_trials)
        agreement = np.where(second.n_trials > 0, agreement, np.nan)
        signs, observed_columns = _observe(comparisons, jobs, self.failed)
        names = [tuple(entry.counts.systems) for entry in comparisons]
        a, b = (
            [CodedColumn(getattr(c, side), systems) for c, systems in zip(comparisons, names, strict=True)]
            for side in ("a", "b")
        )
        test_set = [CodedColumn.from_constant(entry.counts.name, len(entry)) for entry in comparisons]
        metrics = [CodedColumn(entry.metric, entry.metrics) for entry in comparisons]
        subset = CodedColumn.join([entry.subset for entry in comparisons])
        sign_check = self._check_sign_test(jobs, unit, signs, judged, exact)
        checks = {
            "second run": self._check_second_run(exact, second, agreement),
            "sign test": sign_check,
            "exact value": self._check_exact_value(exact_values, judged, exact, jobs.in_fractions, sign_check),
        }
        columns = {
            "test_set": CodedColumn.join(test_set),
            "subset.column": subset.map(lambda part: part.column if part else ""),
            "subset.value": subset.map(lambda part: part.value if part else ""),
            "unit": CodedColumn.from_constant(unit, n),
            "a": CodedColumn.join(a),
            "b": CodedColumn.join(b),
            "metric": CodedColumn.join([column.map(lambda metric: metric.name) for column in metrics]),
            "higher_is_better": np.concatenate([c.find(lambda metric: metric.higher_is_better) for c in metrics]),
            "signature": CodedColumn.join([column.map(lambda metric: metric.signature or "") for column in metrics]),
            "alternative": CodedColumn.from_constant(self.alternative, n),
            "n_items": np.concatenate([entry.n_items for entry in comparisons]),
            "n_units": np.concatenate([entry.n_units for entry in comparisons]),
            "n_discordant": jobs.n_discordant,
            "method": CodedColumn(exact.astype(np.int32), METHODS),
            "n_trials": judged.n_trials,
            "n_extreme": judged.n_extreme,
            "p_value": p,
            "p_interval.0": low,
            "p_interval.1": high,
            "r12": compute_r12(comparisons),
            "second_run.n_trials": second.n_trials,
            "second_run.n_extreme": second.n_extreme,
            "second_run.agreement_p": agreement,
            "exact.p_lo": exact_values.low,
            "exact.p_hi": exact_values.high,
            "exact.method": exact_values.by.map(lambda by: by[0] if by else ""),
            "exact.guarantee": exact_values.by.map(lambda by: by[1] if by else ""),
            **{f"checks.{name}.{key}": column for name, check in checks.items() for key, column in check.items()},
            **observed_columns,
        }
        return Table.from_columns(self.alpha, columns)

    def _compute_alarm_level(self) -> Floats:
        return bounds.ALARM / np.maximum(self.n_sampled, 1)

    def _check_second_run(self, exact: Bools, second: ComparisonCounts, agreement: Floats) -> Columns:
        has_run = second.n_trials > 0
        reason = CodedColumn(
            np.where(has_run, 0, np.where(exact, 2, 1)).astype(np.int32),
            ("", "not requested", "all arrangements were counted"),
        )
        p = np.where(has_run, bounds.compute_bound(second.n_extreme, second.n_trials), np.nan)
        verdict = _encode_verdicts(has_run, agreement >= self._compute_alarm_level())
        return {"verdict": verdict, "p_value": p, "fit": np.broadcast_to(np.nan, len(p)), "why": reason}

    def _check_sign_test(
        self, jobs: JointJobs, unit: str, signs: Integers, judged: ComparisonCounts, exact: Bools
    ) -> Columns:
        n = len(jobs)
        tested = signs[:, 0] >= 0
        if unit != "item":
            mismatch = f"{unit}s are swapped, not items: this is another null hypothesis"
            reason = CodedColumn(np.where(tested, 1, 0).astype(np.int32), (NOT_A_MEAN, mismatch))
            tested = np.zeros(n, np.bool_)
        else:
            is_idle, reasons = ~jobs.sampled & ~jobs.enumerated, (NOT_A_MEAN, "", "no trials were requested")
            reason = CodedColumn(np.where(is_idle, 2, tested).astype(np.int32), reasons)
            tested &= ~is_idle
        p, fit = np.full(n, np.nan), np.full(n, np.nan)
        p[tested] = sign_test(signs[tested, 0], signs[tested, 1], self.alternative)
        sampled = tested & ~exact
        fit[sampled] = bounds.compute_fit_p(judged.n_extreme[sampled], judged.n_trials[sampled], p[sampled])
        fits = fit >= self._compute_alarm_level()
        all_counted = tested & exact
        counts = judged.n_extreme[all_counted], judged.n_trials[all_counted]
        fits[all_counted] = bounds.matches_share(*counts, p[all_counted])
        return {"verdict": _encode_verdicts(tested, fits), "p_value": p, "fit": fit, "why": reason}

    def _check_exact_value(
        self,
        exact_values: ExactValues,
        judged: ComparisonCounts,
        exact: Bools,
        in_fractions: Bools,
        sign_check: Columns,
    ) -> Columns:
        """Check counts against exact values. If these are the sign test's p, return its check."""
        low, high = exact_values.low, exact_values.high
        # in fractions, trials give only upper bounds
        is_checked = ~np.isnan(high) & ~exact & (judged.n_trials > 0) & ~in_fractions
        has_fit = is_checked & (low == high) & (high == sign_check["p_value"]) & ~np.isnan(sign_check["fit"])
        fit = np.where(has_fit, sign_check["fit"], np.nan)
        if (rows := np.flatnonzero(is_checked & ~has_fit)).size:
            counts = judged.n_extreme[rows], judged.n_trials[rows]
            fit[rows] = bounds.compute_fit_p_within(*counts, low[rows], high[rows])
        verdict = _encode_verdicts(is_checked, fit >= self._compute_alarm_level())
        verdict.codes[~is_checked] = 0  # there is no such check
        why = CodedColumn.from_constant("", len(fit))
        return {"verdict": verdict, "p_value": np.where(is_checked, high, np.nan), "fit": fit, "why": why}


@dataclass(frozen=True, slots=True, eq=False)
class JointJobs:
    """Comparisons of several test sets by one kind of unit, one test set after another, with all their jobs.

    Attributes
    ----------
    cells : list of CountedCells
        The comparisons' counts.
    signs : int64 array, shape (n, 2)
        As in `ComparisonJobs`.
    n_discordant, sampled, enumerated, n_reached, exact_difference
        As in `Comparisons`.
    """

    cells: list[CountedCells]
    signs: Integers
    n_discordant: Integers
    sampled: Bools
    enumerated: Bools
    n_reached: Integers
    exact_difference: Floats

    @staticmethod
    def join(sets: Sequence[ComparisonJobs]) -> JointJobs:
        """Join the comparisons of one or more test sets."""
        names = "n_discordant", "sampled", "enumerated", "n_reached", "exact_difference"
        columns = {name: _join_arrays([getattr(entry.comparisons, name) for entry in sets]) for name in names}
        return JointJobs(
            [*join_cells((entry.cells for entry in sets), (len(entry.comparisons) for entry in sets))],
            _join_arrays([entry.signs for entry in sets]),
            **columns,
        )

    def __len__(self) -> int:
        return len(self.n_discordant)

    @property
    def in_fractions(self) -> Bools:
        """Whether each comparison is enumerated in fractions."""
        return np.asarray(self.n_reached[:, 0] >= 0)

    def select_cells(self, kind: CountKind) -> list[CountedCells]:
        """Return the cells of one kind of counts."""
        return [part for part in self.cells if part.kind == kind]

    def read_counts(self, kind: CountKind, tallies: Tallies, tail: int) -> ComparisonCounts:
        """Return each comparison's trials and exceedances of one kind; 0 where it has no such counts."""
        counts = ComparisonCounts.zero(len(self))
        if cells := self.select_cells(kind):
            counts = ComparisonCounts(counts.n_trials.copy(), counts.n_extreme.copy())
        for part in cells:
            tally, row, column = tallies[part.job], part.row, part.column
            counts.n_trials[part.index] = tally.n_trials if tally.trials is None else tally.trials[row, column]
            counts.n_extreme[part.index] = tally.counts[row, column, tail]
        return counts

    def read_complete_counts(self, tallies: Tallies, tail: int) -> ComparisonCounts:
        """Return the counts of enumerated comparisons; 0 unless all arrangements of the comparison are counted."""
        counts = self.read_counts("all arrangements", tallies, tail)
        if not self.enumerated.any():
            return counts
        complete = self.enumerated & (counts.n_trials == 1 << np.where(self.enumerated, self.n_discordant, 0))
        if (impossible := np.flatnonzero(complete & (counts.n_extreme == 0))).size:
            label = next(
                part.job.label for part in self.select_cells("all arrangements") if impossible[0] in part.index
            )
            raise SigdaskError(f"{label}: no arrangement is as extreme as the observed one itself")
        n_arrangements = 1 << np.where(self.in_fractions, self.n_discordant, 0)
        by_fractions = ComparisonCounts(n_arrangements, self.n_reached[:, tail])
        return by_fractions.where(
            self.in_fractions & complete, counts.where(complete, ComparisonCounts.zero(len(self)))
        )

    def get_exact_values(self, tallies: Tallies, alternative: Alternative) -> ExactValues:
        """Return the exact p-values of comparisons that are not enumerated, under one alternative; NaN if unknown."""
        if self.enumerated.all():
            nans = np.full(len(self), np.nan)
            return ExactValues(nans, nans, CodedColumn(np.zeros(len(nans), np.int32), (None,)))
        return read_exact_values(self.signs, self.select_cells("exact p"), tallies, TAILS.index(alternative))


def _join_arrays(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the rows of several arrays, without a copy if there is one array."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def judge_counts(sets: Sequence[ComparisonJobs], tallies: Tallies, alternative: Alternative) -> tuple[Floats, Integers]:
    """Return the unadjusted p of each comparison, exact if known, and its number of trials, shape (n,) each."""
    judged, exact, exact_values = _judge_counts(JointJobs.join(sets), tallies, alternative)
    p = bounds.compute_p_value(judged.n_extreme, judged.n_trials, exact=exact)
    return np.where(exact_values.is_p, exact_values.high, p), judged.n_trials


def _judge_counts(
    jobs: JointJobs, tallies: Tallies, alternative: Alternative
) -> tuple[ComparisonCounts, Bools, ExactValues]:
    """Return the counts from which p is computed, which of them are of all arrangements, and the exact p-values."""
    tail, sampled = TAILS.index(alternative), jobs.sampled
    complete = jobs.read_complete_counts(tallies, tail)
    judged = jobs.read_counts("first run", tallies, tail).where(sampled, complete)
    has_all = complete.n_trials > 0
    shares = np.where(has_all, complete.n_extreme / np.maximum(complete.n_trials, 1), np.nan)
    exact_values = ExactValues.from_shares(shares).where(has_all, jobs.get_exact_values(tallies, alternative))
    return judged, ~sampled & has_all, exact_values


def _encode_verdicts(applies: Bools, agrees: Bools) -> CodedColumn[str]:
    return CodedColumn(np.where(applies, np.where(agrees, 2, 3), 1).astype(np.int32), VERDICTS)


def _observe(sets: Sequence[Comparisons], jobs: JointJobs, failed: Failed | None) -> tuple[Integers, dict[str, Any]]:
    """Return the signs of comparisons, shape (n, 2), and columns of scores; each panel computes its scores once."""
    n, start = len(jobs), 0
    scores = undefined = np.broadcast_to(np.nan, (n, 2))
    ties, step = np.broadcast_to(0.0, n), np.broadcast_to(0.0, n)
    signs = np.broadcast_to(np.int64(-1), (n, 2))
    for comparisons in sets:
        for rows in group_rows(number_rows(comparisons.panel)):
            panel, group = comparisons.get_panel(rows[0]), start + rows
            column = comparisons.column[rows]
            cells = (comparisons.row[rows], column)
            signs = scatter_rows(signs, group, panel.sign_counts[cells])
            undefined = scatter_rows(undefined, group, panel.zero_division_scores[cells])
            steps = np.array([panel.get_score_step(m) for m in range(panel.n_discordant.shape[1])])
            step = scatter_rows(step, group, steps[column])
            try:
                pair_scores = panel.pair_scores
            except InputError as error:  # a metric of whole outputs
                if failed is None or panel.manner.vectorised:
                    raise
                failed(comparisons.get_metric(rows[0]).name, str(error))
                continue
            scores = scatter_rows(scores, group, pair_scores[cells])
            ties = scatter_rows(ties, group, panel.tie_widths[cells])
        start += len(comparisons)
    difference = scores[:, 0] - scores[:, 1]
    difference = np.where(np.abs(difference) <= ties, 0.0, difference)  # ties are within rounding, as after swaps
    difference = np.where(jobs.in_fractions, jobs.exact_difference, difference)
    columns = {"score_a": scores[:, 0], "score_b": scores[:, 1], "difference": difference, "step": step}
    return signs, columns | {"undefined_a": undefined[:, 0], "undefined_b": undefined[:, 1]}
