"""Tests that counts from sums of system blocks equal those of the whole panel, for any blocks."""

from dataclasses import replace

import numpy as np
import pytest
from builders import build_panel, build_panels, build_rng

from sigdask.counts import Counts
from sigdask.metrics import find_metric, metric
from sigdask.metrics.forms import Bleu, Ratios
from sigdask.randomization import blocks
from sigdask.randomization.blocks import SystemBlock, build_frame, build_from_sums, list_panels, split_panel
from sigdask.randomization.families.max_t import MaxTFamily
from sigdask.randomization.panels.build import FamilyMember
from sigdask.randomization.panels.sums import SwapUnits

F1, MEAN = Ratios(((2, 0, 0),), ((0, 1, 1),)), Ratios(((1, 0, 0),), ((0, 0, 1),))
MACRO = Ratios(((1, 0, 0), (0, 1, 0)), ((0, 1, 1), (1, 0, 1)))
N_SYSTEMS = 7


def iter_panels():
    """Yield a panel of each kernel: linear, ratio and macro; BLEU; real scores by mean and by formula."""
    rng = build_rng(0)
    tp = rng.integers(0, 3, (300, N_SYSTEMS))
    values = np.stack([tp, tp + rng.integers(0, 3, tp.shape), np.full_like(tp, 2)], axis=-1)
    values[:, 5] = values[:, 2]  # two systems alike, in other blocks
    values[:, 6] = values[:, 0]  # and one like the first
    yield build_panel(values, [F1, MEAN, MACRO])
    n_grams = np.sort(rng.integers(1, 30, (40, N_SYSTEMS, 10)), axis=2)[:, :, ::-1]
    yield build_panel(n_grams.copy(), [Bleu()])
    scores = Counts.from_scores({f"s{k}": rng.normal(size=80) for k in range(N_SYSTEMS)})
    pairs = [(i, j) for i in range(N_SYSTEMS) for j in range(i)]
    spread = metric(name="root", fields=("score",))(lambda score: np.sqrt(np.abs(score)))
    metrics = [find_metric("mean").bind(scores), spread.bind(scores)]
    for placed in build_panels(scores, SwapUnits.from_counts(scores, 0), metrics, pairs):
        yield placed.panel


def count_by_blocks(jobs_object, n_bytes, monkeypatch, *, first, n_trials):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", n_bytes)
    sums = [
        [
            SystemBlock.from_panel(block).compute_sums(run=1, first=first, n_trials=n_trials)
            for block in split_panel(panel)
        ]
        for panel in list_panels(jobs_object)
    ]
    return build_from_sums(build_frame(jobs_object), sums), [len(block_sums) for block_sums in sums]


@pytest.mark.parametrize("per_block", [1, 2, 3, 6, 7])
def test_pairs_are_counted_alike_from_blocks_of_any_size(per_block, monkeypatch):
    for panel in iter_panels():
        whole = panel.tally(run=1, first=5, n_trials=3000)
        twin, [n_blocks] = count_by_blocks(
            panel, per_block * panel.nbytes // N_SYSTEMS, monkeypatch, first=5, n_trials=3000
        )
        assert n_blocks == -(-(N_SYSTEMS - 1) // per_block)
        assert twin.values.size == 0
        tally = twin.tally(run=1, first=5, n_trials=3000)
        assert (tally.counts == whole.counts).all()


@pytest.mark.parametrize("studentised", [False, True])
@pytest.mark.parametrize("side", [0, 1, -1])
def test_families_are_counted_alike_from_blocks(side, studentised, monkeypatch):
    panel_list = list(iter_panels())
    panel_list[1] = replace(panel_list[1], key=(7, 7))
    families = [
        MaxTFamily(
            (FamilyMember(panel, m),),
            np.array([[[0, row]] for row in range(len(panel.pairs))]),
            side,
            False,
            studentised,
        )
        for panel in panel_list
        for m in range(len(panel.metrics))
    ]
    members = tuple(FamilyMember(panel, m, 1 + m) for panel in panel_list for m in range(len(panel.metrics)))
    parts = np.array([[[k, row]] for k in range(len(members)) for row in range(0, 21, 5)])
    families.append(MaxTFamily(members, parts, side, False, studentised))
    for family in families:
        whole = family.tally(run=1, first=5, n_trials=1500)
        twin, _ = count_by_blocks(family, 2 * family.panels[0].nbytes // N_SYSTEMS, monkeypatch, first=5, n_trials=1500)
        assert (twin.tally(run=1, first=5, n_trials=1500).counts == whole.counts).all()
        assert sum(panel.values.size for panel in twin.panels) == 0
