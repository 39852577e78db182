"""Tests of the paired bootstrap: its draws, cells and quantiles, in this process and on clusters."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from builders import build_panel, build_rng
from reference import philox4x32_10
from scipy import stats

from sigdask.counts import Counts
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Bleu, Formula, Ratios
from sigdask.randomization.panels.build import PanelGroups
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.resampling import (
    N_CELLS,
    TIED,
    UNDEFINED,
    Bootstrap,
    Jackknife,
    ShiftPanel,
    compute_quantiles,
    compute_share_below,
)
from sigdask.randomization.stream import draw_kind_counts, draw_units
from sigdask.randomization.tallies import Tally

MEAN = Ratios(((1, 0),), ((0, 1),))
F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))


def build_full_panel(values, forms, *, pairs=None, seed=0):
    """Build a panel with all units of integer contributions, shape (n_items, n_systems, n_fields)."""
    n_items, n_systems, n_fields = values.shape
    fields = {f"f{k}": values[:, :, k] for k in range(n_fields)}
    counts = Counts(tuple(f"s{k}" for k in range(n_systems)), fields, n_items)
    metrics = [BoundMetric(f"m{k}", tuple(fields), form) for k, form in enumerate(forms)]
    pairs = np.array(pairs or list(itertools.combinations(range(n_systems), 2)))
    [placed] = PanelGroups.from_metrics(counts, metrics, pairs).build(
        SwapUnits.from_counts(counts, seed), every_unit=True
    )
    return placed.panel


def draw_scores(n, n_systems=2, seed=1, highest=1000):
    values = np.ones((n, n_systems, 2), np.int64)
    values[:, :, 0] = build_rng(seed).integers(0, highest, (n, n_systems))
    return values


def draw_counts(n, seed=2):
    rng = build_rng(seed)
    gold = rng.integers(1, 6, n)
    correct = rng.binomial(gold[:, None], 0.6, (n, 2))
    return np.stack([correct, correct + rng.integers(0, 3, (n, 2)), np.repeat(gold[:, None], 2, axis=1)], axis=2)


@pytest.mark.parametrize("n_units", [1, 2, 5, 50, 511, 513, 1500])
def test_counted_draws_are_those_of_each_slot(n_units):
    out = np.empty((9, n_units), np.float32)
    draw_kind_counts((5, 7), 0, 100, np.arange(n_units, dtype=np.int32), out)
    units = draw_units((5, 7), run=0, first=100, n_trials=9, n_units=n_units)
    assert out.tolist() == [np.bincount(row, minlength=n_units).tolist() for row in units]


def test_a_draw_is_a_pure_function_of_seed_resample_and_slot():
    """Against Philox in Python integers: words at (resample, purpose 3, slot // 4), the place by multiply-high."""
    units = draw_units((11, 13), run=0, first=2**33 + 5, n_trials=2, n_units=10)
    for k, trial in enumerate((2**33 + 5, 2**33 + 6)):
        words = [philox4x32_10((trial % 2**32, trial >> 32 | 3 << 24, column, 0), (11, 13)) for column in range(3)]
        want = [word * 10 >> 32 for call in words for word in call][:10]
        assert units[k].tolist() == want


@pytest.mark.parametrize("form", [MEAN, F1], ids=["mean", "f1"])
def test_counts_are_those_of_the_exact_bootstrap_distribution(form):
    """All 5^5 resamples, in fractions: the share of resamples at or below each value, within binomial error."""
    values = draw_scores(5, highest=6) if form is MEAN else draw_counts(5)
    panel = build_full_panel(values, [form])
    n_trials = 40_000
    bootstrap = Bootstrap.from_panel(panel)
    cells = bootstrap.tally(run=0, first=0, n_trials=n_trials).counts[0, 0]
    exact = sorted(
        _compute_score(form, values[list(units), 0].sum(axis=0))
        - _compute_score(form, values[list(units), 1].sum(axis=0))
        for units in itertools.product(range(5), repeat=5)
    )
    observed = _compute_score(form, values[:, 0].sum(axis=0)) - _compute_score(form, values[:, 1].sum(axis=0))
    below, ties = sum(x < observed for x in exact), sum(x == observed for x in exact)
    for count, share in ((cells[:TIED].sum(), below / 5**5), (cells[TIED], ties / 5**5)):
        assert stats.binomtest(int(count), n_trials, share).pvalue > 1e-4
    for share in (0.1, 0.5, 0.9):
        [quantile] = compute_quantiles(
            cells[None], np.array([share]), bootstrap.origins[:1], bootstrap.widths[:1], np.zeros(1)
        )
        near = [exact[int((share + offset) * len(exact))] for offset in (-0.01, 0.01)]
        assert float(near[0]) - bootstrap.widths[0] <= quantile <= float(near[1]) + bootstrap.widths[0]


def _compute_score(form, sums):
    above = sum(w * int(x) for w, x in zip(form.numerators[0], sums, strict=True))
    below = sum(w * int(x) for w, x in zip(form.denominators[0], sums, strict=True))
    return Fraction(above, below) if below else Fraction(0)


def test_quantiles_are_those_of_the_resamples_to_a_width_of_cells():
    panel = build_full_panel(draw_scores(60), [MEAN])
    bootstrap, n_trials = Bootstrap.from_panel(panel), 20_000
    cells = bootstrap.tally(run=0, first=0, n_trials=n_trials).counts[:, 0]
    units = draw_units(panel.key, run=0, first=0, n_trials=n_trials, n_units=60)
    means = panel.values[:, :, 0][units].sum(axis=1) / 60
    values = np.column_stack([means[:, 0] - means[:, 1], means])
    deviation = values.std(axis=0)
    assert ((bootstrap.widths <= deviation / 50) & (bootstrap.widths >= deviation / 160)).all()
    for share in (0.001, 0.025, 0.5, 0.975, 0.999):
        quantiles = compute_quantiles(cells, np.full(3, share), bootstrap.origins, bootstrap.widths, np.zeros(3))
        side = -1 if share > 0.5 else 1  # from 0.5 on, ranks are counted from above
        want = side * np.quantile(side * values, share if side > 0 else 1 - share, axis=0, method="inverted_cdf")
        assert (np.abs(quantiles - want) <= bootstrap.widths).all()
    assert compute_share_below(cells) == pytest.approx((values < bootstrap.origins - 1e-9).mean(axis=0), abs=1e-3)


@pytest.mark.parametrize("kind", [Bootstrap, ShiftPanel])
def test_counts_are_the_same_on_any_partition(kind):
    panel = kind.from_panel(build_full_panel(draw_scores(77, 3), [MEAN]))
    together = panel.tally(run=0, first=0, n_trials=6000)
    parts = [(0, 1), (1, 4095), (4096, 1000), (5096, 904)]
    added = Tally.zero(panel.shape, N_CELLS)
    for first, n_trials in parts:
        added += panel.tally(run=0, first=first, n_trials=n_trials)
    assert added.counts.tolist() == together.counts.tolist()


def test_another_system_changes_no_count_of_a_pair():
    values = draw_scores(50, 3)
    two, three = (Bootstrap.from_panel(build_full_panel(v, [MEAN])) for v in (values[:, :2], values))
    pair_alone, pair_of_three = (
        bootstrap.tally(run=0, first=0, n_trials=500).counts[:, 0] for bootstrap in (two, three)
    )
    assert pair_alone[0].tolist() == pair_of_three[0].tolist()
    assert pair_alone[1:].tolist() == pair_of_three[3:5].tolist()


def test_sums_too_large_for_floats_are_exact():
    small = draw_scores(30)
    large = small.copy()
    large[:, :, 0] = large[:, :, 0] * 2**40 + 2**52
    small_sums, large_sums = (Bootstrap.from_panel(build_full_panel(v, [MEAN])).weighted_sums for v in (small, large))

    def fill(_first, kinds, out):
        draw_kind_counts((1, 2), 0, 0, kinds, out)

    [a], [b] = (list(sums.iter_blocks(fill, 0, 20)) for sums in (small_sums, large_sums))
    assert (b[..., 0] == a[..., 0] * 2**40 + 30 * 2**52).all()


def test_units_that_contribute_alike_are_counted_together_and_no_count_changes(monkeypatch):
    values = draw_scores(200, highest=4)
    together = Bootstrap.from_panel(build_full_panel(values, [MEAN]))
    assert len(together.weighted_sums.columns[0]) <= 16
    counts = together.tally(run=0, first=0, n_trials=700).counts.tolist()
    monkeypatch.setattr("sigdask.randomization.resampling.FEW_KINDS", 0.0)
    panel = Bootstrap.from_panel(build_full_panel(values, [MEAN]))
    assert len(panel.weighted_sums.columns[0]) == 200
    assert panel.tally(run=0, first=0, n_trials=700).counts.tolist() == counts


def test_a_formula_that_gives_no_score_for_some_resamples_is_counted_apart():
    def quotient(top, _one):
        if (np.asarray(top) == 0).any():
            raise ValueError("nothing there")
        return 1 / top

    values = np.ones((4, 2, 2), np.int64)
    values[:, :, 0] = [[1, 1], [0, 1], [0, 1], [0, 1]]
    panel = build_full_panel(values, [Formula("quotient", quotient)])
    cells = Bootstrap.from_panel(panel).tally(run=0, first=0, n_trials=2000).counts[:, 0]
    n_none = int(cells[0, UNDEFINED])
    assert stats.binomtest(n_none, 2000, (3 / 4) ** 4).pvalue > 1e-4
    assert cells[1, UNDEFINED] == n_none
    assert cells[2, UNDEFINED] == 0
    assert cells.sum(axis=1).tolist() == [2000] * 3


@pytest.mark.parametrize("form", [MEAN, F1, Bleu()], ids=["mean", "f1", "bleu"])
def test_the_jackknife_is_what_leaving_out_each_unit_gives(form):
    if isinstance(form, Bleu):
        matches = build_rng(8).integers(1, 9, (25, 2, 4))
        values = np.concatenate([matches[..., :1] + 12, np.full((25, 2, 1), 20), matches, matches + 5], axis=2)
    else:
        values = draw_scores(25) if form is MEAN else draw_counts(25)
    panel = build_full_panel(values, [form])
    jackknife = Jackknife.from_panel(panel, 0)
    scores_without = np.array([form.score(np.delete(values, u, axis=0).sum(axis=0)) for u in range(25)])
    for k, replicates in enumerate(
        (scores_without[:, 0] - scores_without[:, 1], scores_without[:, 0], scores_without[:, 1])
    ):
        moved = replicates.mean() - replicates
        assert jackknife.error[k] == pytest.approx(np.sqrt(24 / 25 * (moved**2).sum()), rel=1e-9)
        want = (moved**3).sum() / (6 * (moved**2).sum() ** 1.5)
        assert jackknife.acceleration[k] == pytest.approx(want, rel=1e-6, abs=1e-12)


def test_ends_of_the_inverted_test_are_not_rejected_and_what_is_beyond_is():
    values = draw_scores(60)
    panel = build_full_panel(values, [MEAN])
    shifts, n_trials = ShiftPanel.from_panel(panel), 9999
    cells = shifts.tally(run=0, first=0, n_trials=n_trials).counts[:, 0]
    ends = [compute_quantiles(cells[k : k + 1], np.array([share]), shifts.origins[k : k + 1], shifts.widths[k : k + 1],
                      np.zeros(1))[0] for k, share in ((0, 500 / n_trials), (1, 1 - 500 / n_trials))]  # fmt: skip
    for end, outwards in zip(ends, (-1, 1), strict=True):
        for side in (-1, 1):
            moved = values.copy() * 1000
            moved[:, 1, 0] += round(1000 * (end + outwards * side * 1.01 * shifts.widths[0]))
            moved[:, :, 1] = 1
            counts = build_panel(moved, [MEAN]).tally(run=0, first=0, n_trials=n_trials).counts
            p = (counts[0, 0, 2] + 1) / (n_trials + 1)
            assert (p <= 0.05) == (side > 0)
