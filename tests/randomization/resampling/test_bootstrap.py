"""The paired bootstrap: its draws, its cells, its quantiles, whatever counts it."""

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest
from panel_of import panel_of, rng_of
from reference import philox4x32_10
from scipy import stats

from sigdask.counts import Counts
from sigdask.execution.run import count_jobs
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Bleu, Formula, Ratios
from sigdask.randomization.jobs import Job
from sigdask.randomization.panels.build import PanelGroups
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.resampling.bootstrap import Bootstrap
from sigdask.randomization.resampling.cells import (
    DEFINED,
    N_CELLS,
    TIED,
    UNDEFINED,
    compute_quantiles,
    compute_share_below,
)
from sigdask.randomization.resampling.jackknife import Jackknife
from sigdask.randomization.resampling.shifts import ShiftPanel
from sigdask.randomization.stream.shuffles import draw_kind_counts, draw_units
from sigdask.randomization.tallies import Tally

MEAN = Ratios(((1, 0),), ((0, 1),))
F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))


def whole(values, forms, *, pairs=None, seed=0):
    """A panel with all its units of integer contributions, shape (n_items, n_systems, n_fields)."""
    n_items, n_systems, n_fields = values.shape
    fields = {f"f{k}": values[:, :, k] for k in range(n_fields)}
    counts = Counts(tuple(f"s{k}" for k in range(n_systems)), fields, n_items)
    metrics = [BoundMetric(f"m{k}", tuple(fields), form) for k, form in enumerate(forms)]
    pairs = np.array(pairs or list(itertools.combinations(range(n_systems), 2)))
    [placed] = PanelGroups.from_metrics(counts, metrics, pairs).build(
        SwapUnits.from_counts(counts, seed), every_unit=True
    )
    return placed.panel


def scores(n, n_systems=2, seed=1, most=1000):
    values = np.ones((n, n_systems, 2), np.int64)
    values[:, :, 0] = rng_of(seed).integers(0, most, (n, n_systems))
    return values


def counts_of(n, seed=2):
    rng = rng_of(seed)
    gold = rng.integers(1, 6, n)
    both = rng.binomial(gold[:, None], 0.6, (n, 2))
    return np.stack([both, both + rng.integers(0, 3, (n, 2)), np.repeat(gold[:, None], 2, axis=1)], axis=2)


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


def test_draws_are_uniform_and_independent_of_each_other():
    units = draw_units((1, 2), run=0, first=0, n_trials=20_000, n_units=7)
    seen = np.bincount(units.ravel(), minlength=7)
    assert stats.chisquare(seen).pvalue > 1e-4
    pairs = np.bincount(units[:, 2] * 7 + units[:, 3], minlength=49)
    assert stats.chisquare(pairs).pvalue > 1e-4


@pytest.mark.parametrize("form", [MEAN, F1], ids=["mean", "f1"])
def test_counts_are_those_of_the_exact_bootstrap_distribution(form):
    """All 5^5 resamples, in fractions: the share of resamples at or below each value, within binomial error."""
    values = scores(5, most=6) if form is MEAN else counts_of(5)
    panel = whole(values, [form])
    n_trials = 40_000
    drawn = Bootstrap.from_panel(panel)
    counted = drawn.tally(run=0, first=0, n_trials=n_trials).counts[0, 0]
    exact = sorted(
        _score(form, values[list(units), 0].sum(axis=0)) - _score(form, values[list(units), 1].sum(axis=0))
        for units in itertools.product(range(5), repeat=5)
    )
    observed = _score(form, values[:, 0].sum(axis=0)) - _score(form, values[:, 1].sum(axis=0))
    below, ties = sum(x < observed for x in exact), sum(x == observed for x in exact)
    for count, share in ((counted[:TIED].sum(), below / 5**5), (counted[TIED], ties / 5**5)):
        assert stats.binomtest(int(count), n_trials, share).pvalue > 1e-4
    for share in (0.1, 0.5, 0.9):
        [found] = compute_quantiles(counted[None], np.array([share]), drawn.origins[:1], drawn.widths[:1], np.zeros(1))
        near = [exact[int((share + off) * len(exact))] for off in (-0.01, 0.01)]
        assert float(near[0]) - drawn.widths[0] <= found <= float(near[1]) + drawn.widths[0]


def _score(form, sums):
    above = sum(w * int(x) for w, x in zip(form.numerators[0], sums, strict=True))
    below = sum(w * int(x) for w, x in zip(form.denominators[0], sums, strict=True))
    return Fraction(above, below) if below else Fraction(0)


def test_quantiles_on_steps_are_those_of_the_resamples_themselves():
    values = np.ones((40, 2, 2), np.int64)
    values[:, :, 0] = rng_of(4).random((40, 2)) < [0.7, 0.5]
    panel = whole(values, [MEAN])
    drawn, n_trials = Bootstrap.from_panel(panel), 5000
    counted = drawn.tally(run=0, first=0, n_trials=n_trials).counts[:1, 0]
    units = draw_units(panel.key, run=0, first=0, n_trials=n_trials, n_units=40)
    differences = np.sort((values[units, 0, 0] - values[units, 1, 0]).sum(axis=1))
    for share in (0.025, 0.3, 0.7, 0.975):
        [found] = compute_quantiles(counted, np.array([share]), drawn.origins[:1], drawn.widths[:1], np.array([1 / 40]))
        rank = (
            int(np.ceil(share * n_trials)) - 1
            if share < 0.5
            else n_trials - int(np.ceil((1 - share) * n_trials - 1e-9))
        )
        assert found * 40 == pytest.approx(differences[rank], abs=1e-9)


def test_quantiles_are_those_of_the_resamples_to_a_width_of_cells():
    panel = whole(scores(60), [MEAN])
    drawn, n_trials = Bootstrap.from_panel(panel), 20_000
    counted = drawn.tally(run=0, first=0, n_trials=n_trials).counts[:, 0]
    units = draw_units(panel.key, run=0, first=0, n_trials=n_trials, n_units=60)
    one = panel.values[:, :, 0][units].sum(axis=1) / 60
    values = np.column_stack([one[:, 0] - one[:, 1], one])
    deviation = values.std(axis=0)
    assert ((drawn.widths <= deviation / 50) & (drawn.widths >= deviation / 160)).all()
    for share in (0.001, 0.025, 0.5, 0.975, 0.999):
        found = compute_quantiles(counted, np.full(3, share), drawn.origins, drawn.widths, np.zeros(3))
        side = -1 if share > 0.5 else 1  # from 0.5 on, ranks are counted from above
        want = side * np.quantile(side * values, share if side > 0 else 1 - share, axis=0, method="inverted_cdf")
        assert (np.abs(found - want) <= drawn.widths).all()
    assert compute_share_below(counted) == pytest.approx((values < drawn.origins - 1e-9).mean(axis=0), abs=1e-3)


def test_quantiles_turn_with_the_signs():
    counts = rng_of(6).integers(0, 5, (3, N_CELLS))
    counts[:, UNDEFINED] = 7
    turned = np.concatenate([counts[:, :DEFINED][:, ::-1], counts[:, UNDEFINED:]], axis=1)
    known = np.zeros(3), np.ones(3), np.zeros(3)
    for share in (0.01, 0.025, 0.4):
        low = compute_quantiles(counts, np.full(3, share), *known)
        assert compute_quantiles(turned, np.full(3, 1 - share), *known) == pytest.approx(-low)


@pytest.mark.parametrize("kind", [Bootstrap, ShiftPanel])
def test_counts_are_the_same_on_any_partition(kind):
    drawn = kind.from_panel(whole(scores(77, 3), [MEAN]))
    together = drawn.tally(run=0, first=0, n_trials=6000)
    parts = [(0, 1), (1, 4095), (4096, 1000), (5096, 904)]
    added = Tally.zero(drawn.shape, N_CELLS)
    for first, n_trials in parts:
        added += drawn.tally(run=0, first=first, n_trials=n_trials)
    assert added.counts.tolist() == together.counts.tolist()


@pytest.mark.parametrize("cluster", ["threads", pytest.param("local", marks=pytest.mark.slow)])
def test_counts_are_the_same_on_any_cluster(cluster):
    panel = whole(counts_of(90), [F1])
    jobs = [Job(Bootstrap.from_panel(panel), 12_000), Job(ShiftPanel.from_panel(whole(scores(90), [MEAN])), 9000)]
    here = count_jobs(jobs, cluster="none")
    there = count_jobs(jobs, cluster=cluster, workers=2, blocks_per_task=1)
    assert [one.counts.tolist() for one in here] == [one.counts.tolist() for one in there]


def test_another_system_changes_no_count_of_a_pair():
    values = scores(50, 3)
    two, three = (Bootstrap.from_panel(whole(v, [MEAN])) for v in (values[:, :2], values))
    one, other = (drawn.tally(run=0, first=0, n_trials=500).counts[:, 0] for drawn in (two, three))
    assert one[0].tolist() == other[0].tolist()
    assert one[1:].tolist() == other[3:5].tolist()


def test_sums_too_large_for_floats_are_exact():
    small = scores(30)
    large = small.copy()
    large[:, :, 0] = large[:, :, 0] * 2**40 + 2**52
    one, other = (Bootstrap.from_panel(whole(v, [MEAN])).weighted_sums for v in (small, large))

    def fill(_first, kinds, out):
        draw_kind_counts((1, 2), 0, 0, kinds, out)

    [a], [b] = (list(sums.iter_blocks(fill, 0, 20)) for sums in (one, other))
    assert (b[..., 0] == a[..., 0] * 2**40 + 30 * 2**52).all()


def test_units_that_contribute_alike_are_counted_together_and_no_count_changes(monkeypatch):
    values = scores(200, most=4)
    together = [kind.from_panel(whole(values, [MEAN])) for kind in (Bootstrap, ShiftPanel)]
    assert all(len(one.weighted_sums.columns[0]) <= 16 for one in together)
    found = [one.tally(run=0, first=0, n_trials=700).counts.tolist() for one in together]
    monkeypatch.setattr("sigdask.randomization.resampling.sums.FEW_KINDS", 0.0)
    each = [kind.from_panel(whole(values, [MEAN])) for kind in (Bootstrap, ShiftPanel)]
    assert all(len(one.weighted_sums.columns[0]) == 200 for one in each)
    assert [one.tally(run=0, first=0, n_trials=700).counts.tolist() for one in each] == found


def test_a_formula_that_gives_no_score_for_some_resamples_is_counted_apart():
    def quotient(top, _one):
        if (np.asarray(top) == 0).any():
            raise ValueError("nothing there")
        return 1 / top

    values = np.ones((4, 2, 2), np.int64)
    values[:, :, 0] = [[1, 1], [0, 1], [0, 1], [0, 1]]
    panel = whole(values, [Formula("quotient", quotient)])
    counted = Bootstrap.from_panel(panel).tally(run=0, first=0, n_trials=2000).counts[:, 0]
    n_none = int(counted[0, UNDEFINED])
    assert stats.binomtest(n_none, 2000, (3 / 4) ** 4).pvalue > 1e-4
    assert counted[1, UNDEFINED] == n_none
    assert counted[2, UNDEFINED] == 0
    assert counted.sum(axis=1).tolist() == [2000] * 3


@pytest.mark.parametrize("form", [MEAN, F1, Bleu()], ids=["mean", "f1", "bleu"])
def test_the_jackknife_is_what_leaving_out_each_unit_gives(form):
    if isinstance(form, Bleu):
        matches = rng_of(8).integers(1, 9, (25, 2, 4))
        values = np.concatenate([matches[..., :1] + 12, np.full((25, 2, 1), 20), matches, matches + 5], axis=2)
    else:
        values = scores(25) if form is MEAN else counts_of(25)
    panel = whole(values, [form])
    found = Jackknife.from_panel(panel, 0)
    left = np.array([form.score(np.delete(values, u, axis=0).sum(axis=0)) for u in range(25)])
    for k, own in enumerate((left[:, 0] - left[:, 1], left[:, 0], left[:, 1])):
        moved = own.mean() - own
        assert found.error[k] == pytest.approx(np.sqrt(24 / 25 * (moved**2).sum()), rel=1e-9)
        want = (moved**3).sum() / (6 * (moved**2).sum() ** 1.5)
        assert found.acceleration[k] == pytest.approx(want, rel=1e-6, abs=1e-12)


def test_the_swaps_of_the_inverted_test_are_those_of_the_test():
    """As many shifts lie at 0 or beyond as trials of the test are extreme: at 0 nothing is shifted."""
    values = scores(60, most=40)
    n_trials = 3000
    small = panel_of(values, [MEAN])
    drawn = ShiftPanel.from_panel(whole(values, [MEAN]))
    counted = drawn.tally(run=0, first=0, n_trials=n_trials).counts[:, 0]
    extreme = small.tally(run=0, first=0, n_trials=n_trials).counts[0, 0, 2]
    assert drawn.origins.tolist() == [0.0, 0.0]
    below, above = counted[0, : TIED + 1].sum(), counted[1, TIED:DEFINED].sum()
    assert extreme == (below if values[:, 0, 0].sum() > values[:, 1, 0].sum() else above)


def test_ends_of_the_inverted_test_are_not_rejected_and_what_is_beyond_is():
    values = scores(60)
    panel = whole(values, [MEAN])
    drawn, n_trials = ShiftPanel.from_panel(panel), 9999
    counted = drawn.tally(run=0, first=0, n_trials=n_trials).counts[:, 0]
    ends = [compute_quantiles(counted[k : k + 1], np.array([share]), drawn.origins[k : k + 1], drawn.widths[k : k + 1],
                      np.zeros(1))[0] for k, share in ((0, 500 / n_trials), (1, 1 - 500 / n_trials))]  # fmt: skip
    for end, outwards in zip(ends, (-1, 1), strict=True):
        for side in (-1, 1):
            moved = values.copy() * 1000
            moved[:, 1, 0] += round(1000 * (end + outwards * side * 1.01 * drawn.widths[0]))
            moved[:, :, 1] = 1
            counts = panel_of(moved, [MEAN]).tally(run=0, first=0, n_trials=n_trials).counts
            p = (counts[0, 0, 2] + 1) / (n_trials + 1)
            assert (p <= 0.05) == (side > 0)


def test_nothing_varies_where_all_resamples_are_alike():
    values = scores(20)
    values[:, 1] = values[:, 0]
    counted = Bootstrap.from_panel(whole(values, [MEAN])).tally(run=0, first=0, n_trials=100).counts[0, 0]
    assert counted[TIED] == 100


def test_what_is_kept_of_resamples_is_found_again():
    """Digests and cells stay: a store adds to what an earlier version counted."""
    panel = whole(scores(30, most=50), [MEAN])
    found = {}
    for kind in (Bootstrap, ShiftPanel):
        drawn = kind.from_panel(panel)
        counts = drawn.tally(run=0, first=0, n_trials=1000).counts
        places = [int(place) for place in np.argmax(counts[:, 0], axis=1)]
        found[kind.__name__] = drawn.compute_digests().ravel()[0].tobytes().hex(), counts.shape, places
    assert found == {
        "Bootstrap": ("268b730dd9626065e9ebb4e8d8af99b32e971c34", (3, 1, 1282), [631, 633, 681]),
        "ShiftPanel": ("29e40f16682295bd8c55e30a55e5e0dba4a301d4", (2, 1, 1282), [615, 629]),
    }


@pytest.mark.parametrize("kind", [Bootstrap, ShiftPanel])
def test_what_travels_is_the_panel_alone(kind):
    drawn = kind.from_panel(whole(scores(3000, 4), [MEAN]))
    before = len(pickle.dumps(drawn))
    here = drawn.tally(run=0, first=0, n_trials=5).counts.tolist()
    packed = pickle.dumps(drawn)
    assert len(packed) <= before * 1.1
    assert pickle.loads(packed).tally(run=0, first=0, n_trials=5).counts.tolist() == here
