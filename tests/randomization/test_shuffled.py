"""Tests that swapped differences give the tallies, and contributions the effect of swapping one unit."""

import sys

import numpy as np
import panel_kinds
import pytest
from builders import build_panel, build_rng

from sigdask.counts import Counts, Outputs
from sigdask.metrics.forms import Bleu, ChrF, Formula, Ratios
from sigdask.randomization.influence import compute_unit_contributions, iter_differences
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sets import build_set_panels
from sigdask.randomization.panels.sums import SwapUnits

MEAN = Ratios(((1, 0, 0),), ((0, 0, 1),))
FORMS = {
    "a mean": MEAN,
    "a ratio": Ratios(((2, 0, 0),), ((0, 1, 1),)),
    "a macro average": Ratios(((2, 0, 0), (1, 0, 0)), ((0, 1, 1), (0, 1, 0))),
    "a formula": Formula("own", lambda tp, predicted, gold: tp * tp / (predicted + gold + 1)),
}


def draw_values(seed, n_items=14, n_systems=4):
    """Draw items with tp <= predicted and gold, shape (n_items, n_systems, 3); many of them tie."""
    rng = build_rng(seed)
    tp = rng.integers(0, 3, (n_items, n_systems))
    gold = np.broadcast_to(rng.integers(1, 4, (n_items, 1)), tp.shape)
    return np.stack([tp, tp + rng.integers(0, 2, tp.shape), gold], axis=-1)


@pytest.fixture
def own(tmp_path):
    yield panel_kinds.import_user_module(tmp_path)
    sys.modules.pop("own_kinds", None)


def check_differences(panel, n_trials=300):
    """Check that exceedances of the differences, in each tail, are those of the tally of the same trials."""
    n = 2 ** int(panel.n_discordant.max()) if panel.enumerated else n_trials
    for run, first in ((0, 0), *([] if panel.enumerated else [(1, 37)])):
        for column in range(panel.shape[1]):
            part = panel.select(range(panel.shape[0]), [column])
            counts = part.tally(run=run, first=first, n_trials=n).counts[:, 0]
            differences = list(iter_differences(part, run=run, first=first, n_trials=n))
            assert [difference.extreme.sum(axis=0).tolist() for difference in differences] == counts.tolist()
            scores = part.pair_scores[:, 0]
            np.testing.assert_allclose(
                [difference.observed for difference in differences], scores[:, 0] - scores[:, 1], atol=1e-9
            )


def test_every_kind_of_sums_has_the_exceedances_of_its_tally():
    for panel in panel_kinds.build_sum_panels().values():
        check_differences(panel)


def test_sets_and_whole_outputs_have_those_of_theirs(own):
    for panel in panel_kinds.build_other_panels(own).values():
        check_differences(panel, 40 if isinstance(panel, OutputsPanel) else 300)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_ties_count_with_few_and_many_units_and_unequal_ones(form):
    for seed in range(3):
        check_differences(build_panel(draw_values(seed), [form, MEAN]))
        check_differences(build_panel(draw_values(seed, n_items=200, n_systems=3), [form]))


def swap_unit(values, unit):
    """Return the items with the outputs of the first two systems swapped on one unit."""
    swapped = values.copy()
    swapped[unit, [0, 1]] = values[unit, [1, 0]]
    return swapped


@pytest.mark.parametrize("form", [*FORMS.values(), Bleu(), ChrF()], ids=[*FORMS, "BLEU", "chrF"])
def test_a_contribution_is_half_of_what_the_exchange_of_the_unit_takes_away(form):
    values = draw_values(6) if not isinstance(form, (Bleu, ChrF)) else build_rng(8).integers(1, 9, (14, 2, 12))
    values = values[..., :10] if isinstance(form, Bleu) else values
    panel = build_panel(values, [form], pairs=[(0, 1)])

    def difference(own):
        totals = own.sum(axis=0)
        return float(form.score(totals[0]) - form.score(totals[1]))

    expected = np.array([(difference(values) - difference(swap_unit(values, u))) / 2 for u in range(len(values))])
    contributions = np.zeros(len(values))
    contributions[panel.addresses] = compute_unit_contributions(panel, 0, 0)
    np.testing.assert_allclose(contributions, expected, atol=1e-12)
    if form is MEAN:
        assert contributions.sum() == pytest.approx(difference(values), abs=1e-12)


def test_a_contribution_to_a_score_of_sets_is_what_the_exchange_of_its_terms_takes_away():
    counts, metrics = panel_kinds.build_terms(), [panel_kinds.find_metric(name) for name in ("type-f1", "type-recall")]
    units = SwapUnits.from_counts(counts, 0)
    [(panel, _)] = build_set_panels(counts, units, [m.bind(counts) for m in metrics], [(0, 1)])
    for column in range(2):
        contributions = compute_unit_contributions(panel, 0, column)
        a, b = panel.pair_scores[0, column]
        for item in range(counts.n_items):
            columns = [system.copy() for system in counts.outputs.systems]
            columns[0][item], columns[1][item] = columns[1][item], columns[0][item]
            swapped_counts = Counts(
                counts.systems, counts.fields, counts.n_items, ids=counts.ids,
                outputs=Outputs(tuple(columns), counts.outputs.gold),
            )  # fmt: skip
            [(moved, _)] = build_set_panels(swapped_counts, units, [m.bind(swapped_counts) for m in metrics], [(0, 1)])
            c, d = moved.pair_scores[0, column]
            [index] = np.flatnonzero(panel.addresses == units.index[item])
            assert contributions[index] == pytest.approx(((a - b) - (c - d)) / 2, abs=1e-12)
