"""Tests of the parts that digests are made of: every kind of object has its own, and what changes a count changes them."""

import sys

import numpy as np
import panel_kinds
import pytest

from sigdask.errors import InputError
from sigdask.metrics import find_metric
from sigdask.randomization.panels.digests import digest
from sigdask.randomization.panels.sets import PresencePanel


@pytest.fixture(scope="module")
def panels(tmp_path_factory):
    user_module = panel_kinds.import_user_module(tmp_path_factory.mktemp("own"))
    yield {
        **panel_kinds.build_sum_panels(),
        **panel_kinds.build_other_panels(user_module),
    }
    sys.modules.pop("own_kinds")


@pytest.mark.parametrize("value", [find_metric, panel_kinds.build_scores(), {"x": [find_metric]}])
def test_an_object_of_sigdask_without_parts_is_an_error(value):
    with pytest.raises(InputError):
        digest(value)


def compute_set_digest(holdings, golden):
    """Return the digest of a panel of sets on six units, from pairs of term and unit that each system holds."""
    counts, n_units = panel_kinds.build_terms(), 6
    panel = PresencePanel(
        key=(1, 2),
        addresses=np.arange(n_units),
        holdings=tuple(np.array(sorted(t * n_units + u for t, u in pairs), np.int64) for pairs in holdings),
        golden=np.array(golden, np.bool_),
        pairs=np.array([[0, 1]]),
        metrics=(find_metric("type-f1", counts).bind(counts),),
        n_items=n_units,
        terms=np.arange(10, 10 + len(golden), dtype=np.uint64),
    )
    return panel.compute_digests()[0, 0].tobytes()


GOLDEN = [True, False, True, False]
A, B = {(0, 0), (1, 1)}, {(0, 2), (2, 3)}


def test_of_sets_each_term_that_either_system_holds_counts_with_the_units_that_hold_it():
    changed = [
        ([A | {(3, 4)}, B], GOLDEN),  # a term that A alone holds
        ([A, B | {(3, 4)}], GOLDEN),  # or B alone
        ([{(0, 0), (1, 5)}, B], GOLDEN),  # held by another unit, by A alone
        ([A, {(0, 2), (2, 5)}], GOLDEN),
        ([{(0, 5), (1, 1)}, B], GOLDEN),  # of a term that both hold
        ([B, A], GOLDEN),  # systems exchanged
        ([A, B], [True, True, True, False]),  # another term is gold
        ([A, B], [True, True, False, False]),  # as many gold terms, and others
        ([A, B], [*GOLDEN, True]),  # one more gold term that neither holds
    ]
    digests = {compute_set_digest(*arguments) for arguments in [([A, B], GOLDEN), *changed]}
    assert len(digests) == 1 + len(changed)


N_TRIALS = 64


def select_parts(panels):
    return {name: panel for name, panel in panels.items() if not panel.is_whole}


def test_a_part_has_the_digest_and_the_counts_that_its_pair_and_metric_have_in_the_whole(panels):
    for name, panel in select_parts(panels).items():
        whole = panel.tally(run=0, first=0, n_trials=N_TRIALS).counts
        for row, column in np.ndindex(panel.shape):
            part = panel.select([row], [column])
            assert part.compute_digests()[0, 0] == panel.compute_digests()[row, column], name
            assert (part.tally(run=0, first=0, n_trials=N_TRIALS).counts[0, 0] == whole[row, column]).all(), name
