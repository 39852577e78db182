"""Tests of formulas over real numbers against Fractions: all true ties count, and no others."""

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import reference
from builders import build_panels
from hypothesis import given, settings
from hypothesis import strategies as st

from sigdask.api import compare, compare_all
from sigdask.counts import Counts
from sigdask.metrics import metric
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Formula, MeanOf, Ratios
from sigdask.randomization.families import MaxTFamily, Relabelling
from sigdask.randomization.panels.build import FamilyMember, build_joint_panel
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.stream import draw_swap_bits

F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))
MACRO = Ratios(((2, 0, 0), (1, 0, 0)), ((0, 1, 1), (0, 1, 0)))


def root(x):
    """Return the square root to 80 digits, so that a difference below 1e-60 counts as none."""
    with localcontext() as context:
        context.prec = 80
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).sqrt())


FORMS = {
    # a form of the sums a, b, c, the same in Fractions, and of which numbers items are
    "mean": (Formula("mean", lambda a, b, c: a / 7), lambda a, b, c: a / 7, (-9, 9)),
    "ratio": (Formula("ratio", lambda a, b, c: a / (b * b + c)), lambda a, b, c: a / (b * b + c), (-9, 9)),
    "product": (Formula("product", lambda a, b, c: a * b), lambda a, b, c: a * b, (-9, 9)),
    "difference": (Formula("difference", lambda a, b, c: a - b), lambda a, b, c: a - b, (10**6, 10**6 + 9)),
    "root": (Formula("root", lambda a, b, c: np.sqrt(a) / 3), lambda a, b, c: root(a) / 3, (1, 12)),
    "f1": (F1, lambda a, b, c: 2 * a / (b + c), (1, 12)),
    "macro": (MACRO, lambda a, b, c: (2 * a / (b + c) + a / b) / 2, (1, 12)),
    "weighted sum": (Ratios(((5, 7, 0),), ((0, 0, 1),)), lambda a, b, c: (5 * a + 7 * b) / c, (-9, 9)),
    "replicates": (
        MeanOf((F1, Formula("net", lambda a, b, c: a - b)), (3, 3)),
        lambda a, b, c, d, e, f: (2 * a / (b + c) + d - e) / 2,
        (50, 62),
    ),
}
NUMBERS = {"sixths": 6, "ninths": 9, "sevenths": 7, "tenths": 10, "hundredths": 100}
TINY = Fraction(1, 10**60)


def compare_tails(trial, observed):
    return [trial >= observed - TINY, trial <= observed + TINY, abs(trial) >= abs(observed) - TINY]


def draw_numerators(seed, n_items, n_systems, n_fields, bounds):
    rng = np.random.default_rng(seed)
    integers = rng.integers(*bounds, (n_items, n_systems, n_fields))
    integers[:, :, 2::3] = 6  # a shared field, as of gold data
    return integers.tolist()


def build_counts(values, below):
    floats = np.array([[[x / below for x in row] for row in item] for item in values])
    fields = {f"f{k}": floats[:, :, k] for k in range(floats.shape[2])}
    return Counts(tuple(f"s{k}" for k in range(floats.shape[1])), fields, len(values))


def bind_form(form, counts):
    return BoundMetric("m", tuple(counts.fields), form)


def compute_score(exact, values, below, systems):
    """Return the score that takes each item from the given system."""
    rows = [item[s] for item, s in zip(values, systems, strict=True)]
    return exact(*(Fraction(sum(column), below) for column in zip(*rows, strict=True)))


def compute_differences(exact, values, below, pair, swaps):
    """Return observed and swapped differences, in Fractions."""
    i, j = pair
    results = []
    for bits in ([False] * len(values), *swaps):
        sources = [j if bit else i for bit in bits]
        results.append(
            compute_score(exact, values, below, sources)
            - compute_score(exact, values, below, [i + j - s for s in sources])
        )
    return results[0], results[1:]


@pytest.mark.parametrize("below", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize(("form", "exact", "of"), FORMS.values(), ids=FORMS)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**31), n_items=st.integers(2, 7))
def test_enumerations_and_samples_are_counted_as_fractions_count_them(form, exact, of, below, seed, n_items):
    values = draw_numerators(seed, n_items, 2, 6 if isinstance(form, MeanOf) else 3, of)
    counts = build_counts(values, below)
    [placed] = build_panels(counts, SwapUnits.from_counts(counts, seed), [bind_form(form, counts)], [(0, 1)])
    panel = placed.panel
    observed, trials = compute_differences(
        exact, values, below, (0, 1), draw_swap_bits(panel.key, run=0, first=0, n_trials=64, n_units=n_items)
    )
    want = np.sum([compare_tails(d, observed) for d in trials], axis=0)
    assert panel.tally(n_trials=64).counts[0, 0].tolist() == want.tolist()
    enumeration = panel.build_enumeration(0, 0)
    discordant = [item for item in values if item[0] != item[1]]
    concordant = [item for item in values if item[0] == item[1]]
    assert len(discordant) == len(enumeration.addresses)
    everyone = [[*bits, *[False] * len(concordant)] for bits in reference.list_arrangements(len(discordant))]
    observed, trials = compute_differences(exact, discordant + concordant, below, (0, 1), everyone)
    want = np.sum([compare_tails(d, observed) for d in trials], axis=0)
    assert enumeration.tally(n_trials=2 ** len(discordant)).counts[0, 0].tolist() == want.tolist()


@pytest.mark.parametrize("name", ["mean", "ratio", "difference", "f1", "weighted sum"])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**31), below=st.sampled_from([6, 7, 10]), n_items=st.integers(2, 5))
@pytest.mark.slow
def test_families_miss_no_tie_of_a_formula(name, seed, below, n_items):
    form, exact, bounds = FORMS[name]
    values = draw_numerators(seed, n_items, 3, 3, bounds)
    counts = build_counts(values, below)
    pairs = list(combinations(range(3), 2))
    panel = build_joint_panel(counts, SwapUnits.from_counts(counts, seed), bind_form(form, counts), pairs)
    family = MaxTFamily((FamilyMember(panel, 0),), np.array([[[0, row]] for row in range(3)]))
    trial_counts = family.tally(run=0, first=0, n_trials=32).counts[:, 0]
    bits = draw_swap_bits(panel.key, run=0, first=0, n_trials=32, n_units=n_items)
    by_pair = [compute_differences(exact, values, below, pair, bits) for pair in pairs]
    for h, (observed, trials) in enumerate(by_pair):
        assert trial_counts[h, :3].tolist() == np.sum([compare_tails(d, observed) for d in trials], axis=0).tolist()
        assert trial_counts[h, 3] >= trial_counts[h, 2]
    rows = np.array([[0, row] for row in range(3)])
    labels = reference.draw_relabellings(panel.key, 0, 0, 32, n_items, 3)
    ranges = []
    for trial in labels:
        scores = [compute_score(exact, values, below, [int(s) for s in trial[:, k]]) for k in range(3)]
        ranges.append(max(scores) - min(scores))
    trial_counts = Relabelling((FamilyMember(panel, 0),), rows).tally(run=0, first=0, n_trials=32).counts[:, 0, 0]
    assert trial_counts.tolist() == [sum(r >= abs(observed) - TINY for r in ranges) for observed, _ in by_pair]


def test_a_difference_of_large_sums_of_decimals_misses_no_tie():
    # tenths are exact, but what is left of 9,000,000.1 - 9,000,000 is not exact to 64 eps
    rng = np.random.default_rng(3)
    tenths = rng.integers(0, 9, (12, 2))
    base = rng.integers(10**7, 10**8, 12)
    fields = {"gain": (tenths + base[:, None]) / 10, "cost": base[:, None] / 10}
    counts = Counts(("a", "b"), fields, 12)
    [result] = compare_all(counts, metrics=[metric(lambda gain, cost: gain - cost, name="net")], method="exact")
    plain = compare(tenths[:, 0] / 10, tenths[:, 1] / 10, method="exact")
    assert (result.n_extreme, result.n_trials) == (plain.n_extreme, plain.n_trials)


def test_a_system_that_found_nothing_has_exact_sums():
    # its 0/0 is 1 by choice; were 0 taken for a rounded sum, every trial would be a tie
    form = replace(F1, zero_division=1.0)
    thirds = np.arange(1, 8) / 3
    fields = {"tp": np.column_stack([thirds / 4, 0 * thirds]), "predicted": np.column_stack([thirds, 0 * thirds]),
              "gold": np.zeros((7, 1))}  # fmt: skip
    counts = Counts(("a", "b"), fields, 7)
    [placed] = build_panels(counts, SwapUnits.from_counts(counts, 0), [bind_form(form, counts)], [(0, 1)])
    enumeration = placed.panel.build_enumeration(0, 0)
    # where one of the two has all, |1/2 - 1|; else both have 1/2
    assert enumeration.tally(n_trials=128).counts[0, 0, 2] == 2
