"""Tests that pairs enumerated together have the counts and digests that they have alone."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from builders import build_panel, build_panels, build_rng

from sigdask.counts import Counts
from sigdask.metrics import find_metric
from sigdask.metrics.forms import Ratios
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.statistics.exact.sums import count_reaching


def build_scores(seed, n_systems=6, n_items=9, below=3, divided_by=1):
    rng = build_rng(seed)
    groups = {"document": [f"d{k // 2 if k < 6 else k}" for k in range(n_items)]}
    return Counts.from_scores(
        {f"s{k}": rng.integers(0, below, n_items) / divided_by for k in range(n_systems)}, groups=groups
    )


def build_labels(seed, n_systems=6, n_items=9):
    rng = build_rng(seed)
    gold = rng.choice(list("xyz"), n_items)
    systems = {
        f"s{k}": np.where(rng.random(n_items) < 0.5, gold, rng.choice(list("xyz"), n_items)).tolist()
        for k in range(n_systems)
    }
    groups = {"document": [f"d{k // 2 if k < 6 else k}" for k in range(n_items)]}
    return Counts.from_labels(gold.tolist(), systems, groups=groups)


def build_pairs_panel(counts, *metrics):
    pairs = [(j, i) for i in range(counts.n_systems) for j in range(i)]
    [placed] = build_panels(
        counts, SwapUnits.from_counts(counts, 3), [find_metric(m, counts).bind(counts) for m in metrics], pairs
    )
    return placed.panel


PANELS = {
    "0/1": lambda: build_pairs_panel(build_scores(1, below=2), "mean"),
    "decimals": lambda: build_pairs_panel(build_scores(2, divided_by=10), "mean"),
    "reals": lambda: build_pairs_panel(build_scores(3, divided_by=3), "mean"),
    "documents of unequal size": lambda: build_pairs_panel(build_scores(4, divided_by=3).with_unit("document"), "mean"),
    "labels": lambda: build_pairs_panel(build_labels(5), "accuracy", "f1[x]", "precision[y]", "macro-f1", "mcc"),
    "labels of documents": lambda: build_pairs_panel(
        build_labels(6).with_unit("document"), "accuracy", "recall[z]", "macro-f1"
    ),
    "denominators that some pairs share": lambda: build_panel(
        np.stack(
            [build_rng(7).integers(0, 3, (8, 7)), build_rng(8).integers(1, 3, (8, 4))[:, [0, 0, 0, 1, 1, 2, 3]]], axis=2
        ),
        [Ratios(((1, 0),), ((0, 1),))],
    ),
    "negative and large": lambda: build_panel(
        build_rng(9).integers(-(2**40), 2**40, (6, 4, 2)), [Ratios(((1, 0),), ((0, 1),))]
    ),
    "identical systems": lambda: build_panel(np.ones((5, 3, 1), int), [Ratios(((1,),), ((0,),))]),
}


@pytest.mark.parametrize("name", PANELS)
def test_pairs_enumerated_together_have_the_counts_and_digests_that_they_have_alone(name):
    whole = PANELS[name]()
    for column in range(len(whole.metrics)):
        rows = np.arange(len(whole.pairs))[::-1]
        rows_seen = []
        for rows_of_part, together in whole.iter_enumerations(rows, column):
            n_trials = 2 ** len(together.addresses)
            tally, digests = together.tally(run=0, first=0, n_trials=n_trials), together.compute_digests()
            for k, row in enumerate(rows_of_part):
                single = whole.build_enumeration(row, column)
                assert len(single.addresses) == len(together.addresses)
                assert (single.linear, single.slack.tolist()) == (together.linear, together.slack[[k]].tolist())
                assert (tally.counts[k] == single.tally(run=0, first=0, n_trials=n_trials).counts[0]).all()
                for first, stop in ((n_trials // 5, n_trials // 2 + 1), (n_trials - 1, n_trials + 3)):
                    part, alone = (p.tally(run=0, first=first, n_trials=stop - first) for p in (together, single))
                    assert (part.counts[k] == alone.counts[0]).all()
                assert digests[k, 0] == single.compute_digests()[0, 0]
            rows_seen += rows_of_part.tolist()
        assert sorted(rows_seen) == sorted(rows)


@pytest.mark.parametrize(("n_units", "largest"), [(6, 2), (9, 10**6), (1, 1)])
def test_counts_of_sums_are_those_of_all_arrangements_one_by_one(n_units, largest):
    steps = build_rng(n_units).integers(-largest, largest + 1, (5, n_units))
    thresholds = build_rng(n_units + 1).integers(-2 * largest, 2 * largest, (5, 3))
    sums = np.array([[added @ row for added in product((0, 1), repeat=n_units)] for row in steps[:, ::-1]])
    for first, stop in ((0, 2**n_units), (2**n_units // 3, 2**n_units - 1), (0, 1)):
        expected = (sums[:, first:stop, None] >= thresholds[:, None]).sum(axis=1)
        assert count_reaching(first, stop, steps, thresholds).tolist() == expected.tolist()


def test_panels_of_several_test_sets_are_counted_together():
    panels = [build_pairs_panel(replace(build_scores(seed, below=2), name=f"set {seed}"), "mean") for seed in (1, 2)]
    groups = [group for panel in panels for _, group in panel.iter_enumerations(np.arange(len(panel.pairs)), 0)]
    alike = [group for group in groups if group.counting_key == groups[0].counting_key]
    assert len(alike) == len({group.key for group in alike}) == 2
    joint = alike[0].join(alike[1:]).tally(first=0, n_trials=2 ** len(alike[0].addresses))
    alone = [group.tally(first=0, n_trials=joint.n_trials).counts for group in alike]
    assert joint.counts.tolist() == np.concatenate(alone).tolist()


def test_scores_of_inexact_sums_are_enumerated_one_by_one():
    # ties of a formula are as wide as the sums of its panel want, so that others would change its counts
    ratio = Ratios(((1, 0), (0, 1)), ((0, 1), (1, 0)))
    whole = build_panel(build_rng(1).integers(1, 9, (6, 4, 2)), [ratio])
    rounded = replace(whole, lattices=build_pairs_panel(build_scores(3, divided_by=3), "mean").lattices[:1] * 2)
    assert [len(rows_of_part) for rows_of_part, _ in rounded.iter_enumerations(np.arange(6), 0)] == [1] * 6
