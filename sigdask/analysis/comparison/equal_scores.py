"""The equal-score test: whether two systems' scores differ, by the symmetric studentised bootstrap.

Swaps test whether outputs are exchangeable. Readers take the verdict as one about scores, which is another hypothesis
if outputs differ in other ways: in skewness, or in the number of answers of which a score is a share. This test has
the hypothesis of equal scores. Where only one of the two tests rejects, the result is contested
(docs/statistics/equal-scores.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from sigdask.analysis.comparison.intervals import are_matched
from sigdask.analysis.comparison.jobs import JoinedComparisons
from sigdask.analysis.comparison.pairs import Comparisons, build_full_panels
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.metrics.forms import Ratios
from sigdask.options import Adjust, Alternative
from sigdask.randomization.families import MaxTFamily
from sigdask.randomization.families.bootstrap_t import (
    OWN,
    STEP_DOWN,
    JackknifePanel,
    StudentisedBootstrap,
    find_unknown,
)
from sigdask.randomization.influence import ComparisonVerdicts, find_deciding
from sigdask.randomization.panels import ComparedPanel
from sigdask.randomization.panels.agreement import AgreementPanel, DecisionPanel
from sigdask.randomization.panels.build import SIDES, FamilyMember
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.scored_sums import compute_skewness
from sigdask.randomization.panels.sets import PresencePanel
from sigdask.randomization.panels.sums import SUMS, Panel
from sigdask.randomization.slabs import Job, Tallies
from sigdask.results.columns import Columns, encode
from sigdask.results.record import NamedValues, build_named
from sigdask.results.table import Table
from sigdask.statistics.bounds import P_VALUE_ADJUSTMENTS, compute_bound, enforce_step_down
from sigdask.statistics.numbering import group_rows, number_rows

RESAMPLES, BH_RESAMPLES, MIN_RESAMPLES = 2**14, 2**17, 2_000
"""Number of resamples; the number where p is multiplied by the size of a family; and the least number if these would
take too long.
"""

MAX_DRAWN, MAX_PRODUCTS = 2 * 10**8, 2**33
"""Maximum units drawn, and units times comparisons, with more than the least number of resamples: seconds of a core."""

BINARY = "items are scored 0 or 1, so equal scores mean equal chances of a win and a loss, which p tests"
SETS = "resamples of units leave out terms, so that scores of sets of distinct terms fall"
DEPENDENT = "decisions on pairs that share a cell depend on each other, so that they cannot be resampled"
SLOW = "the score is computed from random signs, which would be too slow to repeat without each unit"
NO_ERROR = "the score without some units is not defined or does not vary, so that there is no standard error"
STOPPED = "the resamples were not all counted"
REASONS = ("", BINARY, SETS, DEPENDENT, SLOW, NO_ERROR, STOPPED)
MADE, IS_BINARY, IS_OF_SETS, IS_DEPENDENT, IS_SLOW, HAS_NO_ERROR, IS_STOPPED = range(len(REASONS))


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
        method: Adjust, comparisons: JoinedComparisons, alternative: Alternative, *, with_intervals: bool
    ) -> EqualScoreTest:
        """Return the test of comparisons, whose resamples also give simultaneous intervals if these are wanted."""
        reason = _find_reasons(comparisons)
        rows = np.flatnonzero((reason == MADE) | (reason == IS_BINARY))
        if not (reason == MADE).any() and not with_intervals:
            return EqualScoreTest(method, reason, rows[:0])
        selected = comparisons.select(rows)
        family = build_bootstrap(selected, alternative, has_cells=with_intervals)
        n = count_resamples(family, BH_RESAMPLES if method == "bh" and len(rows) > 1 else RESAMPLES)
        return EqualScoreTest(method, reason, rows, Job(family, n, label=f"resamples of {len(rows)} comparisons"))

    @staticmethod
    def build_across(comparisons: JoinedComparisons, members: Integers, alternative: Alternative) -> EqualScoreTest:
        """Return the test of mean differences over several test sets, from the comparisons of each hypothesis."""
        family = build_bootstrap(comparisons, alternative, members)
        n, rows = len(members), np.arange(len(members))
        job = Job(family, count_resamples(family, RESAMPLES), label=f"resamples of {n} comparisons over all sets")
        return EqualScoreTest("max-t" if n > 1 else "none", np.full(n, MADE), rows, job)

    @property
    def family(self) -> StudentisedBootstrap:
        """The family that the job counts."""
        return cast("StudentisedBootstrap", self.job and self.job.panel)

    def compute_columns(self, tallies: Tallies) -> Columns:
        """Return the p-values of the test from the tallies, with places in `REASONS` where there are none."""
        n, reason = len(self.reason), self.reason.copy()
        p_value, p_adjusted, n_resamples = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, np.int64)
        is_made = reason == MADE
        if self.job is not None and is_made.any():
            tally = tallies[self.job]
            if tally.n_trials < self.job.n_trials:  # p is of a fixed number of resamples
                reason[is_made] = IS_STOPPED
            else:
                counts = tally.counts[: len(self.rows), 0]
                p, adjusted = self._compute_p_values(counts, tally.n_trials)
                reason[self.rows[find_unknown(counts)]] = HAS_NO_ERROR
                shown = reason[self.rows] == MADE
                rows = self.rows[shown]
                p_value[rows], p_adjusted[rows], n_resamples[rows] = p[shown], adjusted[shown], tally.n_trials
        return {
            "equal_scores.p_value": p_value,
            "equal_scores.p_adjusted": p_adjusted,
            "equal_scores.n_resamples": n_resamples,
            "equal_scores.why": reason,
        }

    def compute_records(self, tallies: Tallies) -> list[NamedValues]:
        """Return the test of each comparison as a record."""
        p_value, p_adjusted, n_resamples, why = self.compute_columns(tallies).values()
        columns = p_value.tolist(), p_adjusted.tolist(), n_resamples.tolist(), [REASONS[k] for k in why]
        names = ("p_value", "p_adjusted", "n_resamples", "why")
        return [build_named(dict(zip(names, row, strict=True), cause="")) for row in zip(*columns, strict=True)]

    def _compute_p_values(self, counts: Integers, n_resamples: int) -> tuple[Floats, Floats]:
        """Return p of each comparison in the bootstrap, and the adjusted p."""
        own, joint = (compute_bound(counts[:, tail], n_resamples) for tail in (OWN, STEP_DOWN))
        if self.method == "none":
            return own, np.full(len(own), np.nan)
        if self.method == "bh":
            return own, P_VALUE_ADJUSTMENTS["bh"](own)
        return own, enforce_step_down(joint, self.family.order)


def _find_reasons(comparisons: JoinedComparisons) -> Integers:
    """Return why each comparison needs or has no test, as an index in `REASONS`."""
    panel, row, column = comparisons.panel, comparisons.get_column("row"), comparisons.get_column("column")
    reason, panels = np.full(len(comparisons), MADE), comparisons.panels
    for rows in group_rows(number_rows(panel)):
        shared = panels[panel[rows[0]]]
        if isinstance(shared, Panel) and shared.kind == SUMS:
            reason[rows] = np.where(are_matched(shared)[row[rows], column[rows]], IS_BINARY, MADE)
        elif isinstance(shared, PresencePanel):
            reason[rows] = IS_OF_SETS
        elif isinstance(shared, DecisionPanel):
            reason[rows] = IS_DEPENDENT
        elif isinstance(shared, AgreementPanel) and shared.metric.statistic == "spa":
            reason[rows] = IS_SLOW
    return reason


ANSWERS, SKEWED, FEW = "unequal numbers of answers", "skewed differences", "few units"
CONSTANT, FAMILY = "differences do not vary", "less power in a family"

UNEQUAL, LARGE, CHANCE, FEW_UNITS = 1.5, 1.0, 1.96, 20
"""Least ratio of the denominators of two scores, least skewness (and its least value in standard errors), and number of
differing units below which there are few, to name these as causes.
"""


def explain_contested(table: Table, set_comparisons: Sequence[Comparisons]) -> Table:
    """Return the table with the causes of contested results, and how few units decide these.

    Parameters
    ----------
    table : Table
        All comparisons of some test sets, with equal-score tests.
    set_comparisons : sequence of Comparisons
        The comparisons of each test set, in the row order of the table.
    """
    n, start, contested = len(table), 0, table.is_contested
    if not contested.any():
        return table
    cause, n_deciding, reverses = np.full(n, "", object), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    verdicts = _extract_verdicts(table)
    for comparisons in set_comparisons:
        for panel, metric, every_row in comparisons.iter_panels():
            rows = every_row[contested[start + every_row]]
            is_few = comparisons.n_discordant[rows] < FEW_UNITS
            cause[start + rows] = np.where(is_few, FEW, "")
            if not len(rows) or not isinstance(panel, Panel) or panel.kind != SUMS:
                continue
            pairs, table_rows = comparisons.row[rows].astype(np.int64), start + rows
            own, joint = (table[f"equal_scores.{name}"][table_rows] for name in ("p_value", "p_adjusted"))
            limit = max(LARGE, CHANCE * math.sqrt(6 / max(panel.n_units, 1)))
            is_skewed = np.abs(compute_skewness(panel, metric, pairs.tolist())) > limit
            causes = {ANSWERS: _is_unequal(panel, metric, pairs), SKEWED: is_skewed, FEW: is_few}
            causes |= {CONSTANT: ~is_few & (own == 1)}
            is_family = (own <= table.alpha) & (joint > table.alpha)
            for k, row in enumerate(table_rows.tolist()):
                found = ", ".join(name for name, is_cause in causes.items() if is_cause[k])
                cause[row] = found or (FAMILY if is_family[k] else "")
            deciding = find_deciding(panel, metric, pairs, verdicts.take(table_rows))
            n_deciding[table_rows], reverses[table_rows] = deciding
        start += len(comparisons)
    deciding_columns: Columns = {"deciding.n_deciding": n_deciding, "deciding.reverses": reverses}
    return table.replace(**deciding_columns, **{"equal_scores.cause": encode(cause.tolist())})


def _is_unequal(panel: Panel, metric: int, pairs: Integers) -> Bools:
    """Return which pairs have scores whose denominators, such as numbers of answers, are very unequal."""
    form = panel.metrics[metric].form
    if not isinstance(form, Ratios) or panel.linear[metric]:
        return np.zeros(len(pairs), np.bool_)
    below = np.asarray(panel.to_arguments(metric, panel.totals), np.float64) @ np.array(form.denominators, np.float64).T
    a, b = below[panel.pairs[pairs, 0]], below[panel.pairs[pairs, 1]]
    return np.asarray((np.maximum(a, b) >= UNEQUAL * np.minimum(a, b)).any(axis=1))


def _extract_verdicts(table: Table) -> ComparisonVerdicts:
    """Return, for each comparison, the decision, the level that its unadjusted p has to reach, and the tested side."""
    side = np.array([SIDES[value] for value in table.alternative.levels], np.int8)[table.alternative.codes]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(np.isnan(table.p_adjusted) | (table.p_adjusted == 0), 1.0, table.p_value / table.p_adjusted)
    return ComparisonVerdicts(table.decision, np.nan_to_num(table.alpha * share, nan=table.alpha), side)


def build_bootstrap(
    comparisons: JoinedComparisons, alternative: Alternative, parts: Integers | None = None, *, has_cells: bool = False
) -> StudentisedBootstrap:
    """Return the studentised bootstrap of comparisons, on panels that include concordant units.

    Parameters
    ----------
    comparisons : JoinedComparisons
        The comparisons.
    alternative : str
        Alternative of all comparisons.
    parts : int64 array, shape (n_hypotheses, n_sets), optional
        The comparisons of whose mean difference each hypothesis is; by default each is of one comparison.
    has_cells : bool
        As in `StudentisedBootstrap`.
    """
    parts = np.arange(len(comparisons))[:, None] if parts is None else parts
    n, n_before = len(comparisons), 0
    panel, row, column = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    panels: list[ComparedPanel] = []
    for k in np.unique(comparisons.set_index).tolist():
        in_set = comparisons.set_index == k
        set_panels, *positions = build_full_panels(comparisons.sets[k])
        for target, values in zip((panel, row, column), positions, strict=True):
            target[in_set] = values[comparisons.row[in_set]]
        panel[in_set] += n_before
        panels, n_before = panels + set_panels, n_before + len(set_panels)
    member_index = number_rows(panel, column)
    first_rows = [member_rows[0] for member_rows in group_rows(member_index)]
    weight = 1 / parts.shape[1]
    members = tuple(FamilyMember(_get_contributions(panels[panel[k]]), int(column[k]), weight) for k in first_rows)
    n_units = tuple(comparisons.sets[comparisons.set_index[k]].units.n_units for k in first_rows)
    places = np.column_stack([member_index, row])[parts]
    family = MaxTFamily(members, places, SIDES[alternative])
    return StudentisedBootstrap(family, n_units, has_cells)


def count_resamples(family: StudentisedBootstrap, wanted: int) -> int:
    """Return the number of resamples: the wanted number, or fewer if these would take too long."""
    n_affordable = min(MAX_DRAWN // family.n_drawn, MAX_PRODUCTS // (family.n_drawn * family.n_hypotheses))
    return min(wanted, max(MIN_RESAMPLES, n_affordable))


def _get_contributions(panel: ComparedPanel) -> Panel:
    """Return a panel to whose scores units contribute: one of sums, or of scores without some units."""
    if isinstance(panel, OutputsPanel | AgreementPanel):
        return cast("Panel", JackknifePanel(panel))
    return as_sums_panel(panel)


def as_sums_panel(panel: ComparedPanel) -> Panel:
    """Return the panel, asserting that it is a panel of sums."""
    assert isinstance(panel, Panel)
    return panel
