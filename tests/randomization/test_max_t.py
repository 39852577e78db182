"""Tests of joint counts of families against Fractions, exact enumerations and each other."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import reference
from builders import build_panel, build_rng
from hypothesis import given, settings
from hypothesis import strategies as st

from sigdask.metrics.forms import Formula, Ratios
from sigdask.randomization.families import CHUNK, MaxTFamily, Relabelling
from sigdask.randomization.panels.build import FamilyMember
from sigdask.randomization.stream import draw_swap_bits
from sigdask.statistics.bounds import compute_fit_p

F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))
RECALL = Ratios(((1, 0, 0),), ((0, 0, 1),))
MACRO = Ratios(((2, 0, 0), (1, 0, 0)), ((0, 1, 1), (0, 1, 0)))
FORMULA = Formula(
    "macro", lambda tp, predicted, gold: (2 * tp / np.maximum(predicted + gold, 1) + tp / np.maximum(predicted, 1)) / 2
)
FORMS = {"ratio": F1, "linear": RECALL, "fused": MACRO, "formula": FORMULA}
MEAN = Ratios(((1, 0),), ((0, 1),))
N_TRIALS = 48


def draw_values(seed, n_items, n_systems):
    rng = build_rng(seed)
    tp = rng.integers(0, 3, (n_items, n_systems)) * (rng.random((n_items, n_systems)) < 0.4)
    predicted = tp + rng.integers(0, 2, tp.shape)
    gold = np.broadcast_to(rng.integers(0, 3, (n_items, 1)), tp.shape)
    return np.stack([tp, predicted, gold], axis=-1)


def build_scores_panel(scores):
    return build_panel(np.stack([scores, np.ones_like(scores)], axis=-1), [MEAN])


def build_family(panel, *, metric=0, side=0):
    parts = np.array([[[0, row]] for row in range(len(panel.pairs))])
    return compare_raw(MaxTFamily((FamilyMember(panel, metric),), parts, side))


def compare_raw(family):
    """Return a family that compares differences as they are, so that integers and fractions can tell what is counted."""
    vars(family)["scales"] = np.ones(len(family.parts))
    return family


def compute_score(form, sums):
    if form is FORMULA:
        form = MACRO
    return reference.compute_macro(sums, form.numerators, form.denominators)


def compute_differences(panel, values, form):
    """Return observed and swapped differences of all pairs, shapes (n_pairs,) and (n_trials, n_pairs)."""
    bits = draw_swap_bits(panel.key, run=0, first=0, n_trials=N_TRIALS, n_units=len(values))
    observed, trials = [], []
    for i, j in panel.pairs:
        observed.append(compute_score(form, values[:, i].sum(0)) - compute_score(form, values[:, j].sum(0)))
        pseudo = reference.compute_pseudo_sums(values[:, i], values[:, j], bits)
        trials.append([compute_score(form, x) - compute_score(form, y) for x, y in zip(*pseudo, strict=True)])
    return observed, list(zip(*trials, strict=True))


SIDES = {0: abs, 1: lambda d: d, -1: lambda d: -d}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**31), n_items=st.integers(1, 30), n_systems=st.integers(2, 8))
def test_a_family_is_counted_as_fractions_count_it(form, side, seed, n_items, n_systems):
    values = draw_values(seed, n_items, n_systems)
    panel = build_panel(values, [form])
    family = build_family(panel, side=side)
    observed, trials = compute_differences(panel, values, form)
    extreme = SIDES[side]
    order = family.order.tolist()
    assert sorted(range(len(order)), key=lambda h: extreme(observed[h])) == pytest.approx(order) or [
        extreme(observed[h]) for h in order
    ] == sorted(extreme(d) for d in observed)
    counts = family.tally(run=0, first=0, n_trials=N_TRIALS).counts[:, 0]
    for rank, h in enumerate(order):
        t = observed[h]
        want = [
            sum(row[h] >= t for row in trials),
            sum(row[h] <= t for row in trials),
            sum(abs(row[h]) >= abs(t) for row in trials),
            sum(max(extreme(row[k]) for k in order[: rank + 1]) >= extreme(t) for row in trials),
        ]
        assert counts[h].tolist() == want


def test_marginal_counts_of_a_family_are_those_of_its_pairs():
    panel = build_panel(draw_values(3, 400, 17), [F1, RECALL, MACRO])  # 136 pairs: more than two chunks
    assert len(panel.pairs) > 2 * CHUNK
    alone = panel.tally(n_trials=5000).counts
    for m in range(3):
        counts = build_family(panel, metric=m).tally(run=0, first=0, n_trials=5000).counts
        assert counts[:, 0, :3].tolist() == alone[:, m].tolist()


def test_splitting_trials_of_a_family_anywhere_adds_up():
    panel = build_panel(draw_values(4, 150, 5), [F1])
    for whole in (build_family(panel), Relabelling((FamilyMember(panel, 0),), np.array([[0, 0], [0, 3]]))):
        total = whole.tally(run=1, first=0, n_trials=3000)
        parts = [whole.tally(run=1, first=f, n_trials=n) for f, n in ((0, 1), (1, 1700), (1701, 1299))]
        assert sum((p.counts for p in parts), 0 * total.counts).tolist() == total.counts.tolist()


def test_a_mean_over_two_sets_is_the_sum_of_its_parts():
    one, two = draw_values(5, 30, 3), draw_values(6, 20, 3)
    panels = [build_panel(one, [F1]), replace(build_panel(two, [F1]), key=(7, 7))]
    members = tuple(FamilyMember(panel, 0, 0.5) for panel in panels)
    parts = np.array([[[0, row], [1, row]] for row in range(3)])
    counts = MaxTFamily(members, parts).tally(run=0, first=0, n_trials=N_TRIALS).counts[:, 0]
    (seen_one, trials_one), (seen_two, trials_two) = (
        compute_differences(panel, values, F1) for panel, values in zip(panels, (one, two), strict=True)
    )
    for h in range(3):
        t = (seen_one[h] + seen_two[h]) / 2
        trials = [(x[h] + y[h]) / 2 for x, y in zip(trials_one, trials_two, strict=True)]
        assert counts[h, 2] == sum(abs(d) >= abs(t) for d in trials)


def test_a_tie_under_cancellation_counts_in_the_joint_tail():
    # means of tenths plus a large constant: the difference is tiny beside the scores
    rng = build_rng(8)
    scores = rng.integers(-3, 4, (12, 3)) + 10**9
    exact = build_family(build_scores_panel(scores)).tally(run=0, first=0, n_trials=4096).counts
    shifted = build_family(build_scores_panel(scores - 10**9)).tally(run=0, first=0, n_trials=4096).counts
    assert exact.tolist() == shifted.tolist()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_ties_of_a_mean_whose_parts_cancel_count(seed):
    rng = build_rng(seed)
    differences = rng.integers(-3, 4, 6)
    one, two = np.zeros((2, 6, 2), np.int64)
    one[:, 0], two[:, 1] = differences * 10**6, rng.permutation(differences) * 10**6
    one[0, 0] += rng.integers(-2, 3)  # the mean is tiny beside its parts
    members = (
        FamilyMember(build_scores_panel(one), 0, 0.5),
        FamilyMember(replace(build_scores_panel(two), key=(7, 7)), 0, 0.5),
    )
    family = MaxTFamily(members, np.array([[[0, 0], [1, 0]]])).build_enumeration()
    counts = family.tally(run=0, first=0, n_trials=family.n_arrangements).counts[0, 0]
    parts = np.concatenate([one[:, 0] - one[:, 1], two[:, 0] - two[:, 1]])
    parts = parts[parts != 0]
    t = parts.sum()
    sums = (1 - 2 * reference.list_arrangements(len(parts)).astype(np.int64)) @ parts
    want = [(sums >= t).sum(), (sums <= t).sum(), *[(abs(sums) >= abs(t)).sum()] * 2]
    assert counts.tolist() == want


def test_exact_max_t_of_all_arrangements(oracles):
    o = oracles["maxT_signflip_single_step"]
    family = build_family(build_scores_panel(np.array(o["inputs"]["scores"])))
    assert (family.can_enumerate, family.n_arrangements) == (True, 32)
    h, n = family.order[-1], 2**16  # of the most extreme one, the largest of all is compared
    count = compare_raw(family.build_enumeration()).tally(run=0, first=0, n_trials=32).counts[h, 0, 3]
    assert Fraction(int(count), 32) == Fraction(o["expected_rational"][h])
    assert compute_fit_p(int(family.tally(run=0, first=0, n_trials=n).counts[h, 0, 3]), n, o["expected"][h]) > 1e-4


def test_exact_tukey_of_all_relabellings(oracles):
    o = oracles["tukey_hsd_randomised_exact"]
    panel = build_scores_panel(np.array(o["inputs"]["scores"]))
    family = Relabelling((FamilyMember(panel, 0),), np.array([[0, 0], [0, 1], [0, 2]]))
    assert (family.can_enumerate, family.n_arrangements) == (True, 6**5)
    counts = replace(family, enumerated=True).tally(run=0, first=0, n_trials=6**5).counts[:, 0, 0]
    assert [Fraction(int(c), 6**5) for c in counts] == [Fraction(p) for p in o["expected_rational"]]
    n = 2**16
    for c, p in zip(family.tally(run=0, first=0, n_trials=n).counts[:, 0, 0], o["expected"], strict=True):
        assert compute_fit_p(int(c), n, p) > 1e-4


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**31), n_items=st.integers(1, 12), n_systems=st.integers(2, 6), run=st.integers(0, 1))
def test_a_relabelling_is_counted_as_fractions_count_it(form, seed, n_items, n_systems, run):
    values = draw_values(seed, n_items, n_systems)
    panel = build_panel(values, [form])
    rows = np.array([[0, row] for row in range(len(panel.pairs))])
    counts = Relabelling((FamilyMember(panel, 0),), rows).tally(run=run, first=2, n_trials=N_TRIALS).counts
    labels = reference.draw_relabellings(panel.key, run, 2, N_TRIALS, n_items, n_systems)
    ranges = []
    for trial in labels:
        sums = [sum(values[u, trial[u, s]] for u in range(n_items)) for s in range(n_systems)]
        scores = [compute_score(form, x) for x in sums]
        ranges.append(max(scores) - min(scores))
    observed = [
        compute_score(form, values[:, i].sum(0)) - compute_score(form, values[:, j].sum(0)) for i, j in panel.pairs
    ]
    assert counts[:, 0, 0].tolist() == [sum(r >= abs(t) for r in ranges) for t in observed]


def test_families_of_two_test_sets_enumerate_the_units_of_both():
    one, two = (
        build_scores_panel(np.array([[1, 0], [2, 0]])),
        replace(build_scores_panel(np.array([[1, 0], [0, 2]])), key=(5, 5)),
    )
    family = MaxTFamily((FamilyMember(one, 0), FamilyMember(two, 0)), np.array([[[0, 0]], [[1, 0]]]))
    assert family.n_arrangements == 16
    counts = compare_raw(family.build_enumeration()).tally(run=0, first=0, n_trials=16).counts[:, 0]
    assert counts[:, 2].tolist() == [8, 16]  # |+-1+-2| >= 3 and >= 1
    assert counts[:, 3].tolist() == [12, 16]  # the larger of both >= 3: 1 - 1/2 * 1/2
