"""One example of each kind of object that has a digest, with fixed numbers; tests keep their digests."""

import importlib
import sys
from dataclasses import replace

import numpy as np
from builders import build_panels

from sigdask.analysis.comparison.pairs import bind_metric
from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import to_object_array
from sigdask.metrics import black_box, find_metric, metric
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Bleu, MeanOf, Ratios
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sets import build_set_panels
from sigdask.randomization.panels.sums import SwapUnits

USER_MODULE = '''"""A user's metrics, of which neither name nor text may change here."""


def total(outputs, gold):
    return float(sum(outputs))


def odds(correct, items):
    return correct / (items - correct + 1)


class Weighted:
    def __init__(self, weight, inner=None):
        self.weight = weight
        self.inner = inner

    def __call__(self, outputs, gold):
        return self.weight * float(sum(outputs))
'''

N_ITEMS = 30
IDS = tuple(f"i{k}" for k in range(N_ITEMS))


def compute_numbers(*indices, below=7):
    """Return small whole numbers by arithmetic alone, shape (N_ITEMS,)."""
    start = sum((k + 1) * (31 * index + 17) for k, index in enumerate(indices))
    return np.array([(k * k * 7 + k * start + start // 3) % 101 % below for k in range(N_ITEMS)])


def import_user_module(folder):
    """Import the user's module from a folder; the caller must remove it from `sys.modules`."""
    (folder / "own_kinds.py").write_text(USER_MODULE)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return importlib.import_module("own_kinds")
    finally:
        sys.path.remove(str(folder))


def build_scores(*, divided_by=4, n_systems=3, **options):
    return Counts.from_scores(
        {name: compute_numbers(s) / divided_by for s, name in enumerate("abcd"[:n_systems])},
        ids=IDS,
        name="set",
        **options,
    )


def build_labels():
    gold = [f"L{k}" for k in compute_numbers(5, below=3)]
    predicted = {name: [f"L{k}" for k in compute_numbers(5, s, below=3 + s)] for s, name in enumerate("ab")}
    return Counts.from_labels(gold, predicted, ids=IDS)


def build_segments():
    words = ["the", "a", "cat", "dog", "sat", "on", "mat", "tree"]
    texts = [
        np.array([" ".join(words[(int(n) + w) % 8] for w in range(4 + int(n) % 3)) for n in compute_numbers(s)], object)
        for s in range(3)
    ]
    gold = to_object_array([(text,) for text in texts[2]])
    fields = {"segments": np.ones((N_ITEMS, 1), np.int64)}
    return Counts(("a", "b"), fields, N_ITEMS, ids=IDS, outputs=Outputs((texts[0], texts[1]), gold))


def build_terms(*, n_systems=2):
    def column(s):
        numbers = compute_numbers(8, s, below=9)
        return to_object_array([frozenset({f"t{(n + w * s) % 11}" for w in range(3)}) for n in numbers])

    systems = "abc"[:n_systems]
    outputs = Outputs(tuple(column(s + 1) for s in range(n_systems)), column(0))
    return Counts(tuple(systems), {"items": np.ones((N_ITEMS, 1), np.int64)}, N_ITEMS, ids=IDS, outputs=outputs)


def build_rankings():
    def column(make):
        return to_object_array([make(k) for k in range(N_ITEMS)])

    gold = column(lambda k: {f"d{d}": int((d + k) % 3 == 0) for d in range(6)})
    runs = tuple(column(lambda k, s=s: tuple(f"d{(d * (s + 1) + k) % 6}" for d in range(5))) for s in (0, 4))
    return Counts(
        ("a", "b"),
        {name: np.ones((N_ITEMS, 1), np.int64) for name in ("topics", "items")},
        N_ITEMS,
        ids=IDS,
        outputs=Outputs(runs, gold),
    )


def build_panel(counts, *metrics, pairs=((0, 1),), seed=0, **options):
    """Return the only panel of some metrics, given by name or bound."""
    bound = [bind_metric(find_metric(m, counts), counts) if isinstance(m, str) else m for m in metrics]
    [placed] = build_panels(counts, SwapUnits.from_counts(counts, seed), bound, list(pairs), **options)
    return placed.panel


def build_form_panel(form, n_fields, name="form"):
    """Return a panel of counts with one form."""
    fields = {f"f{f}": np.stack([compute_numbers(s, f) + 1 for s in range(2)], axis=1) for f in range(n_fields)}
    return build_panel(Counts(("a", "b"), fields, N_ITEMS, ids=IDS), BoundMetric(name, tuple(fields), form))


def build_sum_panels():
    """Return panels of sums by name."""
    decimals, reals, labelled = build_scores(), build_scores(divided_by=3), build_labels()
    every = ((0, 1), (0, 2), (1, 2))
    grouped = build_scores(groups={"document": [f"d{k // 2}" for k in range(N_ITEMS)]}).with_unit("document")
    gaps = {
        n: np.where(compute_numbers(s, 9, below=5) == 0, np.nan, compute_numbers(s) / 4) for s, n in enumerate("ab")
    }
    halves = replace(decimals, replicates=(decimals, build_scores(divided_by=8)))
    return {
        "decimals": build_panel(decimals, "mean", pairs=every),
        "another seed": build_panel(decimals, "mean", seed=7),
        "large decimals": build_panel(build_scores(divided_by=1e-6), "mean"),
        "no decimals": build_panel(reals, "mean", pairs=every),
        "no ids": build_panel(replace(decimals, ids=None), "mean"),
        "whole documents": build_panel(grouped, "mean"),
        "missing items": build_panel(Counts.from_scores(gaps, ids=IDS, missing="pairwise"), "mean"),
        "a subset": build_panel(decimals, "mean", subset=compute_numbers(3) < 4),
        "all arrangements": build_panel(decimals, "mean", subset=np.arange(N_ITEMS) < 8).build_enumeration(0, 0),
        "replicates": build_panel(halves, "mean"),
        "accuracy": build_panel(labelled, "accuracy"),
        "f1 of a label": build_panel(labelled, "f1[L0]"),
        "macro-f1": build_panel(labelled, "macro-f1"),
        "fused": build_panel(labelled, "accuracy", "macro-f1", "f1[L1]"),
        "mcc": build_panel(labelled, "mcc"),
        "kappa": build_panel(labelled, "kappa"),
        "means of forms": build_form_panel(MeanOf((Ratios(((1, 0),), ((0, 1),)), Bleu()), (2, 10)), 12),
        "BLEU": build_panel(build_segments(), "BLEU"),
        "chrF": build_panel(build_segments(), "chrF"),
        "chrF++": build_panel(build_segments(), "chrF++"),
        "TER": build_panel(build_segments(), "TER"),
        "WER": build_panel(build_segments(), "WER"),
        "AP": build_panel(build_rankings(), "AP"),
        "NumRelRet": build_panel(build_rankings(), "num_rel_ret"),
    }


def build_other_panels(user_module):
    """Return panels of sets and of whole outputs by name; some use the user's module."""
    sets, outputs = build_terms(), build_scores(n_systems=2)
    units = SwapUnits.from_counts(outputs, 0)
    bound = [find_metric(name, sets).bind(sets) for name in ("type-f1", "type-recall", "type-precision")]
    [(set_panel, _)] = build_set_panels(sets, SwapUnits.from_counts(sets, 0), bound, [(0, 1)])
    [(subset_panel, _)] = build_set_panels(
        sets, SwapUnits.from_counts(sets, 0), bound[:1], [(0, 1)], subset=np.arange(N_ITEMS) < 6
    )
    weighted = black_box(user_module.Weighted(2.0, find_metric("f1")), name="weighted")
    users = metric(fields=("correct", "items"))(user_module.odds)
    return {
        "sets": set_panel,
        "all arrangements of sets": subset_panel.build_enumeration(0, 0),
        "a user's formula": build_panel(build_labels(), users.bind(build_labels())),
        "a user's function": OutputsPanel.from_counts(outputs, units, black_box(user_module.total), (0, 1)),
        "a user's object": OutputsPanel.from_counts(outputs, units, weighted, (0, 1)),
        "a subset of outputs": OutputsPanel.from_counts(
            outputs, units, black_box(user_module.total), (0, 1), compute_numbers(3) < 4
        ),
    }
