"""One of each kind of what is counted, of fixed numbers, by the names under which tests keep their digests."""

import importlib
import sys
from dataclasses import replace
from functools import partial

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.lattice import Lattice
from sigdask.metrics import METRICS, black_box, find_metric, metric, replicates
from sigdask.metrics.agreement import compute_kappa
from sigdask.metrics.base import BoundMetric, Metric
from sigdask.metrics.forms import Bleu, ChrF, Formula, MeanOf, Ratios
from sigdask.randomization.families.max_t import MaxTFamily
from sigdask.randomization.families.tukey import Relabelling
from sigdask.randomization.panels.build import build_joint_panel, build_panels
from sigdask.randomization.panels.families import FamilyMember
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sets import build_set_panels
from sigdask.randomization.panels.sums import SwapUnits

OWN = '''"""A user's metrics, of which neither name nor text may change here."""


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

N = 30
IDS = tuple(f"i{k}" for k in range(N))


def numbers(*at, below=7):
    """Small whole numbers, of arithmetic alone, shape (N,)."""
    start = sum((k + 1) * (31 * place + 17) for k, place in enumerate(at))
    return np.array([(k * k * 7 + k * start + start // 3) % 101 % below for k in range(N)])


def own_module(folder):
    """Import the user's module from a folder; the caller takes it off the path and out of `sys.modules` again."""
    (folder / "own_kinds.py").write_text(OWN)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return importlib.import_module("own_kinds")
    finally:
        sys.path.remove(str(folder))


def scores(*, divided_by=4, n_systems=3, **more):
    return Counts.from_scores(
        {name: numbers(s) / divided_by for s, name in enumerate("abcd"[:n_systems])}, ids=IDS, name="set", **more
    )


def labels():
    gold = [f"L{k}" for k in numbers(5, below=3)]
    given = {name: [f"L{k}" for k in numbers(5, s, below=3 + s)] for s, name in enumerate("ab")}
    return Counts.from_labels(gold, given, ids=IDS)


def segments():
    words = ["the", "a", "cat", "dog", "sat", "on", "mat", "tree"]
    texts = [
        np.array([" ".join(words[(int(n) + w) % 8] for w in range(4 + int(n) % 3)) for n in numbers(s)], object)
        for s in range(3)
    ]
    gold = np.empty(N, object)
    gold[:] = [(text,) for text in texts[2]]
    fields = {"segments": np.ones((N, 1), np.int64)}
    return Counts(("a", "b"), fields, N, ids=IDS, outputs=Outputs((texts[0], texts[1]), gold))


def terms(*, n_systems=2):
    def column(s):
        listed = np.empty(N, object)
        for k, n in enumerate(numbers(8, s, below=9)):
            listed[k] = frozenset({f"t{(n + w * s) % 11}" for w in range(3)})
        return listed

    systems = "abc"[:n_systems]
    outputs = Outputs(tuple(column(s + 1) for s in range(n_systems)), column(0))
    return Counts(tuple(systems), {"items": np.ones((N, 1), np.int64)}, N, ids=IDS, outputs=outputs)


def rankings():
    def column(make):
        found = np.empty(N, object)
        for k in range(N):
            found[k] = make(k)
        return found

    gold = column(lambda k: {f"d{d}": int((d + k) % 3 == 0) for d in range(6)})
    runs = tuple(column(lambda k, s=s: tuple(f"d{(d * (s + 1) + k) % 6}" for d in range(5))) for s in (0, 4))
    return Counts(
        ("a", "b"),
        {name: np.ones((N, 1), np.int64) for name in ("topics", "items")},
        N,
        ids=IDS,
        outputs=Outputs(runs, gold),
    )


def panel(counts, *metrics, pairs=((0, 1),), seed=0, **more):
    """The one panel of some metrics, named or bound."""
    bound = [replicates.bind_metric(find_metric(m, counts), counts) if isinstance(m, str) else m for m in metrics]
    [placed] = build_panels(counts, SwapUnits.from_counts(counts, seed), bound, list(pairs), **more)
    return placed.panel


def of_form(form, n_fields, name="form"):
    """A panel of counts under one form."""
    fields = {f"f{f}": np.stack([numbers(s, f) + 1 for s in range(2)], axis=1) for f in range(n_fields)}
    return panel(Counts(("a", "b"), fields, N, ids=IDS), BoundMetric(name, tuple(fields), form))


def panels():
    """Name to panel, of sums."""
    decimals, reals, labelled = scores(), scores(divided_by=3), labels()
    every = ((0, 1), (0, 2), (1, 2))
    grouped = scores(groups={"document": [f"d{k // 2}" for k in range(N)]}).with_unit("document")
    gaps = {n: np.where(numbers(s, 9, below=5) == 0, np.nan, numbers(s) / 4) for s, n in enumerate("ab")}
    halves = replace(decimals, replicates=(decimals, scores(divided_by=8)))
    return {
        "decimals": panel(decimals, "mean", pairs=every),
        "another seed": panel(decimals, "mean", seed=7),
        "large decimals": panel(scores(divided_by=1e-6), "mean"),
        "no decimals": panel(reals, "mean", pairs=every),
        "no ids": panel(replace(decimals, ids=None), "mean"),
        "whole documents": panel(grouped, "mean"),
        "missing items": panel(Counts.from_scores(gaps, ids=IDS, missing="pairwise"), "mean"),
        "a subset": panel(decimals, "mean", subset=numbers(3) < 4),
        "all arrangements": panel(decimals, "mean", subset=np.arange(N) < 8).build_enumeration(0, 0),
        "replicates": panel(halves, "mean"),
        "accuracy": panel(labelled, "accuracy"),
        "f1 of a label": panel(labelled, "f1[L0]"),
        "f2": panel(labelled, "f[L0]:beta=2"),
        "macro-f1": panel(labelled, "macro-f1"),
        "fused": panel(labelled, "accuracy", "macro-f1", "f1[L1]"),
        "mcc": panel(labelled, "mcc"),
        "kappa": panel(labelled, "kappa"),
        "ratios": of_form(Ratios(((1, 0),), ((0, 1),), 1.0), 2),
        "BLEU's form": of_form(Bleu(), 10),
        "chrF's form": of_form(ChrF(3.0), 6),
        "means of forms": of_form(MeanOf((Ratios(((1, 0),), ((0, 1),)), Bleu()), (2, 10)), 12),
        "BLEU": panel(segments(), "BLEU"),
        "chrF": panel(segments(), "chrF"),
        "chrF++": panel(segments(), "chrF++"),
        "TER": panel(segments(), "TER"),
        "WER": panel(segments(), "WER"),
        "CER": panel(segments(), "CER"),
        "AP": panel(rankings(), "AP"),
        "NumRelRet": panel(rankings(), "num_rel_ret"),
    }


def others(own):
    """Name to panel, of sets and of whole outputs; `own` is the user's module."""
    sets, outputs = terms(), scores(n_systems=2)
    units = SwapUnits.from_counts(outputs, 0)
    bound = [find_metric(name, sets).bind(sets) for name in ("type-f1", "type-recall", "type-precision")]
    [(of_sets, _)] = build_set_panels(sets, SwapUnits.from_counts(sets, 0), bound, [(0, 1)])
    [(of_some, _)] = build_set_panels(
        sets, SwapUnits.from_counts(sets, 0), bound[:1], [(0, 1)], subset=np.arange(N) < 6
    )
    weighted = black_box(own.Weighted(2.0, find_metric("f1")), name="weighted")
    users = metric(fields=("correct", "items"))(own.odds)
    return {
        "sets": of_sets,
        "all arrangements of sets": of_some.build_enumeration(0, 0),
        "a user's formula": panel(labels(), users.bind(labels())),
        "a user's function": OutputsPanel.from_counts(outputs, units, black_box(own.total), (0, 1)),
        "a user's partial": OutputsPanel.from_counts(
            outputs, units, black_box(partial(own.total, gold=1), name="p"), (0, 1)
        ),
        "a user's object": OutputsPanel.from_counts(outputs, units, weighted, (0, 1)),
        "a subset of outputs": OutputsPanel.from_counts(outputs, units, black_box(own.total), (0, 1), numbers(3) < 4),
    }


def families():
    """Name to family."""
    every = ((0, 1), (0, 2), (1, 2))
    decimals, reals = (panel(scores(divided_by=d), "mean", pairs=every) for d in (4, 3))
    f1s = panel(labels(), "accuracy", "macro-f1", "mcc")
    few = panel(scores(), "mean", pairs=every, subset=np.arange(N) < 8)
    rows = np.array([[[0, k]] for k in range(3)])
    alike = Relabelling(
        (FamilyMember(build_joint_panel(scores(), SwapUnits.from_counts(scores(), 0), _mean(), every), 0),), rows[:, 0]
    )
    return {
        "max-T": MaxTFamily((FamilyMember(decimals, 0),), rows),
        "max-T, greater": MaxTFamily((FamilyMember(reals, 0),), rows, 1),
        "max-T, less": MaxTFamily((FamilyMember(reals, 0),), rows, -1),
        "max-T of several metrics": MaxTFamily(
            (FamilyMember(f1s, 0, 0.5), FamilyMember(f1s, 1, 0.25), FamilyMember(f1s, 2)),
            np.array([[[k, 0]] for k in range(3)]),
        ),
        "max-T, all arrangements": MaxTFamily((FamilyMember(few, 0),), rows).build_enumeration(),
        "sets together": MaxTFamily(
            (FamilyMember(decimals, 0, 0.5), FamilyMember(reals, 0, 0.5)), np.array([[[0, 0], [1, 0]]])
        ),
        "relabelling": alike,
        "all relabellings": replace(alike, enumerated=True),
    }


def _mean():
    return find_metric("mean", scores()).bind(scores())


def named_metrics():
    """Name to metric, as a user's object may hold it; those of rankings hold objects of ir-measures."""
    return {name: find_metric(name) for name in METRICS if name != "AP"}


def values():
    """Name to another value that a user's object may hold."""
    return {
        "counts": scores(),
        "labels": labels(),
        "in another order": scores().in_order(IDS[::-1]),
        "units": SwapUnits.from_counts(scores(), 0),
        "lattices": [Lattice(), Lattice(3), Lattice(exponent=-4)],
        "a bound metric": find_metric("f1[L0]").bind(labels()),
        "a formula": Formula("x", compute_kappa),
        "a metric": Metric("x", find_metric("mean").bind),
        "plain": [1, 1.5, "x", None, True, {"b": 1, "a": (2,)}, frozenset("ab"), np.float64(2.5), np.arange(3.0)],
    }
