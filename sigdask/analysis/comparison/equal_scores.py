"""The equal-score test: whether two systems' scores differ, by the symmetric studentised bootstrap.

Swaps test whether outputs are exchangeable. Readers take the verdict as one about scores, which is another hypothesis
if outputs differ in other ways: in skewness, or in the number of answers of which a score is a share. This test has
the hypothesis of equal scores. Where only one of the two tests rejects, the result is contested
(docs/statistics/equal-scores.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigdask.analysis.comparison.jobs import FamilyComparisons
from sigdask.analysis.comparison.pairs import build_full_panels
from sigdask.counts.factors import group_rows, number_rows, take_cells
from sigdask.counts.fields import Floats, Integers
from sigdask.options import Adjust, Alternative
from sigdask.randomization.families.bootstrap_t import OWN, STEP_DOWN, StudentisedBootstrap
from sigdask.randomization.families.max_t import MaxTFamily
from sigdask.randomization.panels import ComparedPanel
from sigdask.randomization.panels.build import SIDES, FamilyMember
from sigdask.randomization.panels.sums import SUMS, Panel
from sigdask.randomization.slabs import Job, Tallies
from sigdask.results.columns import CodedColumn, EqualScores
from sigdask.statistics.bounds import compute_bound
from sigdask.statistics.multiplicity import P_VALUE_ADJUSTMENTS, enforce_step_down

RESAMPLES, BH_RESAMPLES, MIN_RESAMPLES = 2**14, 2**17, 2_000
"""Number of resamples; the number where p is multiplied by the size of a family; and the least number if these would
take too long.
"""

MAX_DRAWN, MAX_PRODUCTS = 2 * 10**8, 2**33
"""Maximum units drawn, and units times comparisons, with more than the least number of resamples: seconds of a core."""

ONE_SIZE = "all differences have one size, so equal scores mean equal chances of a win and a loss, which p tests"
NO_SUMS = "the score is not computed from sums over units"
STOPPED = "the resamples were not all counted"
REASONS = ("", ONE_SIZE, NO_SUMS, STOPPED)
MADE, IS_ONE_SIZE, IS_NO_SUM, IS_STOPPED = range(len(REASONS))


@dataclass(frozen=True, eq=False)
class EqualScoreTest:
    """The equal-score test of comparisons that are judged together, and what must be counted for it.

    Attributes
    ----------
    method : str
        How p is adjusted, as in `Adjust`.
    reason : int64 array, shape (n_comparisons,)
        Index in `REASONS` of why a comparison is not tested.
    rows : int64 array, shape (n_resampled,)
        The comparisons in the bootstrap.
    job : Job or None
        The resamples to count.
    """

    method: Adjust
    reason: Integers
    rows: Integers
    job: Job | None = None

    @staticmethod
    def build(
        method: Adjust, comparisons: FamilyComparisons, alternative: Alternative, *, with_intervals: bool
    ) -> EqualScoreTest:
        """Return the test of comparisons, whose resamples also give simultaneous intervals if these are wanted."""
        reason = _find_reasons(comparisons)
        rows = np.flatnonzero(reason != IS_NO_SUM)
        if not (reason == MADE).any() and not with_intervals:
            return EqualScoreTest(method, reason, rows[:0])
        selected = comparisons.select(rows)
        family = build_bootstrap(selected, alternative, has_cells=with_intervals)
        n = count_resamples(family, BH_RESAMPLES if method == "bh" and len(rows) > 1 else RESAMPLES)
        return EqualScoreTest(method, reason, rows, Job(family, n, label=f"resamples of {len(rows)} comparisons"))

    @property
    def family(self) -> StudentisedBootstrap:
        """The family that the job counts."""
        assert self.job is not None
        assert isinstance(self.job.panel, StudentisedBootstrap)
        return self.job.panel

    def compute_columns(self, tallies: Tallies) -> EqualScores:
        """Return the p-values of the test from the tallies, with reasons where there are none."""
        reason, columns = self.reason.copy(), EqualScores.build_empty(len(self.reason))
        is_made = reason == MADE
        if self.job is not None and is_made.any():
            tally = tallies[self.job]
            if tally.n_trials < self.job.n_trials:  # p is of a fixed number of resamples
                reason[is_made] = IS_STOPPED
            else:
                p, adjusted = self._compute_p_values(tally.counts[: len(self.rows), 0], tally.n_trials)
                shown = is_made[self.rows]
                rows = self.rows[shown]
                columns.p_value[rows], columns.p_adjusted[rows] = p[shown], adjusted[shown]
                columns.n_resamples[rows] = tally.n_trials
        return EqualScores(
            columns.p_value,
            columns.p_adjusted,
            columns.n_resamples,
            CodedColumn(reason.astype(np.int32), REASONS),
            columns.cause,
        )

    def _compute_p_values(self, counts: Integers, n_resamples: int) -> tuple[Floats, Floats]:
        """Return p of each comparison in the bootstrap, and the adjusted p."""
        own, joint = (compute_bound(counts[:, tail], n_resamples) for tail in (OWN, STEP_DOWN))
        if self.method == "none":
            return own, np.full(len(own), np.nan)
        if self.method == "bh":
            return own, P_VALUE_ADJUSTMENTS["bh"](own)
        return own, enforce_step_down(joint, self.family.order)


def _find_reasons(comparisons: FamilyComparisons) -> Integers:
    """Return why each comparison needs or has no test, as an index in `REASONS`."""
    panel, row, column = comparisons.panel, comparisons.get_column("row"), comparisons.get_column("column")
    reason = np.full(len(comparisons), IS_NO_SUM)
    panels = comparisons.panels
    for rows in group_rows(number_rows(panel)):
        shared = panels[panel[rows[0]]]
        if isinstance(shared, Panel) and shared.kind == SUMS:
            has_one_size = take_cells(shared.sign_counts[..., 0], row[rows], column[rows]) >= 0
            reason[rows] = np.where(has_one_size, IS_ONE_SIZE, MADE)
    return reason


def build_bootstrap(
    comparisons: FamilyComparisons, alternative: Alternative, *, has_cells: bool = False
) -> StudentisedBootstrap:
    """Return the studentised bootstrap of comparisons, on panels that include concordant units."""
    n, n_before = len(comparisons), 0
    panel, row, column = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    panels: list[ComparedPanel] = []
    for k in np.unique(comparisons.set_index).tolist():
        jobs, in_set = comparisons.comparison_jobs[k], comparisons.set_index == k
        set_panels, *positions = build_full_panels(jobs.spec, jobs.comparisons)
        for target, values in zip((panel, row, column), positions, strict=True):
            target[in_set] = values[comparisons.row[in_set]]
        panel[in_set] += n_before
        panels, n_before = panels + set_panels, n_before + len(set_panels)
    member_index = number_rows(panel, column)
    first_rows = [set_panels[0] for set_panels in group_rows(member_index)]
    members = tuple(FamilyMember(as_sums_panel(panels[panel[k]]), int(column[k])) for k in first_rows)
    n_units = tuple(comparisons.comparison_jobs[comparisons.set_index[k]].spec.units.n_units for k in first_rows)
    family = MaxTFamily(members, np.column_stack([member_index, row])[:, None, :], SIDES[alternative], studentised=True)
    return StudentisedBootstrap(family, n_units, has_cells)


def count_resamples(family: StudentisedBootstrap, wanted: int) -> int:
    """Return the number of resamples: the wanted number, or fewer if these would take too long."""
    n_affordable = min(MAX_DRAWN // family.n_drawn, MAX_PRODUCTS // (family.n_drawn * family.n_hypotheses))
    return min(wanted, max(MIN_RESAMPLES, n_affordable))


def as_sums_panel(panel: ComparedPanel) -> Panel:
    """Return the panel, asserting that it is a panel of sums."""
    assert isinstance(panel, Panel)
    return panel
