"""Shuffled differences are those that a tally counts, and contributions are what an exchange of one unit does."""

import sys

import kinds
import numpy as np
import pytest
from panel_of import panel_of, rng_of

from sigdask.counts import Counts, Outputs
from sigdask.metrics.forms import Bleu, ChrF, Formula, Ratios
from sigdask.randomization.contributions import compute_contributions
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sets import build_set_panels
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.stream.shuffled_differences import iter_differences

MEAN = Ratios(((1, 0, 0),), ((0, 0, 1),))
FORMS = {
    "a mean": MEAN,
    "a ratio": Ratios(((2, 0, 0),), ((0, 1, 1),)),
    "a macro average": Ratios(((2, 0, 0), (1, 0, 0)), ((0, 1, 1), (0, 1, 0))),
    "a formula": Formula("own", lambda tp, predicted, gold: tp * tp / (predicted + gold + 1)),
}


def values_of(seed, n_items=14, n_systems=4):
    """Items of tp <= predicted and gold, shape (n_items, n_systems, 3): many of them tie."""
    rng = rng_of(seed)
    tp = rng.integers(0, 3, (n_items, n_systems))
    gold = np.broadcast_to(rng.integers(1, 4, (n_items, 1)), tp.shape)
    return np.stack([tp, tp + rng.integers(0, 2, tp.shape), gold], axis=-1)


@pytest.fixture
def own(tmp_path):
    yield kinds.own_module(tmp_path)
    sys.modules.pop("own_kinds", None)


def check(panel, n_trials=300):
    """Exceedances of the differences, in each tail, are those of the tally of the same trials."""
    n = 2 ** int(panel.n_discordant.max()) if panel.enumerated else n_trials
    for run, first in ((0, 0), *([] if panel.enumerated else [(1, 37)])):
        for column in range(panel.shape[1]):
            part = panel.select(range(panel.shape[0]), [column])
            counts = part.tally(run=run, first=first, n_trials=n).counts[:, 0]
            found = list(iter_differences(part, run=run, first=first, n_trials=n))
            assert [one.extreme.sum(axis=0).tolist() for one in found] == counts.tolist()
            seen = part.pair_scores[:, 0]
            np.testing.assert_allclose([one.observed for one in found], seen[:, 0] - seen[:, 1], atol=1e-9)


def test_every_kind_of_sums_has_the_exceedances_of_its_tally():
    for panel in kinds.panels().values():
        check(panel)


def test_sets_and_whole_outputs_have_those_of_theirs(own):
    for name, panel in kinds.others(own).items():
        if name == "a user's partial":  # of which only the digest is looked at: it cannot be called
            continue
        check(panel, 40 if isinstance(panel, OutputsPanel) else 300)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_ties_count_with_few_and_many_units_and_unequal_ones(form):
    for seed in range(3):
        check(panel_of(values_of(seed), [form, MEAN]))
        check(panel_of(values_of(seed, n_items=200, n_systems=3), [form]))


def test_all_arrangements_are_those_that_are_drawn():
    panel = panel_of(values_of(4, n_items=9, n_systems=2), [FORMS["a ratio"]])
    [found] = iter_differences(panel.build_enumeration(0, 0), n_trials=2 ** int(panel.n_discordant[0, 0]))
    by_hand = np.sort(found.differences)
    np.testing.assert_allclose(by_hand, -by_hand[::-1], atol=1e-12)  # every arrangement has its opposite


def exchanged(values, unit):
    """The same items with the first two systems' parts of one of them exchanged."""
    found = values.copy()
    found[unit, [0, 1]] = values[unit, [1, 0]]
    return found


@pytest.mark.parametrize("form", [*FORMS.values(), Bleu(), ChrF()], ids=[*FORMS, "BLEU", "chrF"])
def test_a_contribution_is_half_of_what_the_exchange_of_the_unit_takes_away(form):
    values = values_of(6) if not isinstance(form, (Bleu, ChrF)) else rng_of(8).integers(1, 9, (14, 2, 12))
    values = values[..., :10] if isinstance(form, Bleu) else values
    panel = panel_of(values, [form], pairs=[(0, 1)])

    def difference(own):
        totals = own.sum(axis=0)
        return float(form.score(totals[0]) - form.score(totals[1]))

    expected = np.array([(difference(values) - difference(exchanged(values, u))) / 2 for u in range(len(values))])
    found = np.zeros(len(values))
    found[panel.addresses] = compute_contributions(panel, 0, 0)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    if form is MEAN:
        assert found.sum() == pytest.approx(difference(values), abs=1e-12)


def test_a_contribution_to_a_score_of_sets_is_what_the_exchange_of_its_terms_takes_away():
    counts, metrics = kinds.terms(), [kinds.find_metric(name) for name in ("type-f1", "type-recall")]
    units = SwapUnits.from_counts(counts, 0)
    [(panel, _)] = build_set_panels(counts, units, [m.bind(counts) for m in metrics], [(0, 1)])
    for column in range(2):
        found = compute_contributions(panel, 0, column)
        a, b = panel.pair_scores[0, column]
        for item in range(counts.n_items):
            columns = [own.copy() for own in counts.outputs.systems]
            columns[0][item], columns[1][item] = columns[1][item], columns[0][item]
            other = Counts(
                counts.systems, counts.fields, counts.n_items, ids=counts.ids,
                outputs=Outputs(tuple(columns), counts.outputs.gold),
            )  # fmt: skip
            [(moved, _)] = build_set_panels(other, units, [m.bind(other) for m in metrics], [(0, 1)])
            c, d = moved.pair_scores[0, column]
            [at] = np.flatnonzero(panel.addresses == units.index[item])
            assert found[at] == pytest.approx(((a - b) - (c - d)) / 2, abs=1e-12)
