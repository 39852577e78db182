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


def test_a_part_has_the_digest_and_the_counts_that_its_pair_and_metric_have_in_the_whole(panels):
    for name, panel in select_parts(panels).items():
        whole = panel.tally(run=0, first=0, n_trials=N_TRIALS).counts
        for row, column in np.ndindex(panel.shape):
            part = panel.select([row], [column])
            assert part.compute_digests()[0, 0] == panel.compute_digests()[row, column], name
            assert (part.tally(run=0, first=0, n_trials=N_TRIALS).counts[0, 0] == whole[row, column]).all(), name
