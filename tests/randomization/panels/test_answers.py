"""Tests that every kind of panel and family has the same interface with consistent answers."""

import sys

import numpy as np
import panel_kinds
import pytest

N_TRIALS = 64


@pytest.fixture(scope="module")
def panels(tmp_path_factory):
    user_module = panel_kinds.import_user_module(tmp_path_factory.mktemp("own"))
    yield {
        **panel_kinds.build_sum_panels(),
        **panel_kinds.build_other_panels(user_module),
        **panel_kinds.build_families(),
    }
    sys.modules.pop("own_kinds")


def select_parts(panels):
    return {name: panel for name, panel in panels.items() if not panel.is_whole}


def test_there_are_panels_of_sums_of_sets_and_of_whole_outputs_and_families(panels):
    assert {panel.kind for panel in select_parts(panels).values()} == {
        "sums",
        "a score of sets",
        "a metric of whole outputs",
    }
    assert {type(panel).__name__ for panel in panels.values() if panel.is_whole} == {"MaxTFamily", "Relabelling"}


def test_tallies_and_digests_have_the_shape_that_a_panel_says(panels):
    for name, panel in panels.items():
        n_trials = min(N_TRIALS, panel.n_arrangements) if panel.is_whole and panel.enumerated else N_TRIALS
        tally = panel.tally(run=0, first=0, n_trials=n_trials)
        assert tally.counts.shape == (*panel.shape, panel.manner.n_tails), name
        assert panel.compute_digests().shape == ((1, 1) if panel.is_whole else panel.shape), name


def test_a_part_has_the_digest_and_the_counts_that_its_pair_and_metric_have_in_the_whole(panels):
    for name, panel in select_parts(panels).items():
        whole = panel.tally(run=0, first=0, n_trials=N_TRIALS).counts
        for row, column in np.ndindex(panel.shape):
            part = panel.select([row], [column])
            assert part.compute_digests()[0, 0] == panel.compute_digests()[row, column], name
            assert (part.tally(run=0, first=0, n_trials=N_TRIALS).counts[0, 0] == whole[row, column]).all(), name


def test_scores_deviations_and_sizes_are_those_of_a_pair(panels):
    for name, panel in select_parts(panels).items():
        n_items, n_units = panel.extent
        assert n_items >= n_units > 0, name
        deviations = panel.estimate_swap_deviations()
        assert deviations.shape == panel.shape, name
        scores, signs = panel.pair_scores, panel.sign_counts
        assert scores.shape == signs.shape == panel.zero_division_scores.shape == (*panel.shape, 2), name
        assert np.isfinite(scores).all(), name
        ties = panel.tie_widths
        assert ties.shape == panel.n_discordant.shape == panel.shape, name
        assert (ties >= 0).all(), name
        assert (ties <= 1e-6 * (np.abs(scores).sum(axis=2) + 1)).all(), name
        for column in range(panel.shape[1]):
            assert panel.is_mean(column) or (signs[:, column] == -1).all(), name


def test_a_family_is_its_own_part_and_whole(panels):
    for panel in (panel for panel in panels.values() if panel.is_whole):
        assert panel.select([0]) is panel
