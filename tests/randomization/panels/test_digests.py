"""Tests that a digest changes with everything that changes a count, and with nothing else."""

import hashlib
import importlib
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from builders import build_panels, build_rng, find_cells

from sigdask.analysis.comparison.pairs import CompareSpec
from sigdask.analysis.comparison.study import prepare_study
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.metrics import find_metric
from sigdask.metrics.base import BlackBox, BoundSets
from sigdask.metrics.forms import Ratios
from sigdask.randomization.panels.digests import _hash_systems, compute_pair_digests, digest, get_factor
from sigdask.randomization.panels.sets import PresencePanel
from sigdask.randomization.panels.sums import Panel, SwapUnits


def compute_digests_by_name(counts, metrics=("mean",), seed=0, **options):
    """Return the digests of the first run, by the names of pair and metric."""
    study = prepare_study([(counts, CompareSpec(metrics, seed=seed, **options), "two-sided")], adjust="none")
    c, digests_by_name = study.analyses[0].main.comparisons, {}
    cells = [part for part in study.cells if part.kind in {"first run", "all arrangements"}]
    for k in range(len(c)):
        names = tuple(counts.systems[side[k]] for side in (c.a, c.b))
        job, row, column = next(find_cells(cells, k))
        digest_of_cell = job.panel.compute_digests()[row, column]
        digests_by_name[*names, c.metrics[c.metric[k]].name] = digest_of_cell.tobytes()
    return digests_by_name


def test_other_systems_metrics_and_orders_of_items_are_no_part_of_a_pair():
    rng = build_rng(5)
    extended = Counts.from_scores(
        {**{n: draw_scores(k) for k, n in enumerate("abc")}, "d": np.round(rng.standard_normal(40), 3)},
        ids=[f"i{k}" for k in range(40)],
    )
    after = compute_digests_by_name(extended)
    fewer = compute_digests_by_name(
        Counts.from_scores({n: draw_scores(k) for k, n in enumerate("abc")}, ids=[f"i{k}" for k in range(40)])
    )
    assert fewer.items() <= after.items()
    order = rng.permutation(40)
    mixed = Counts.from_scores({n: draw_scores(k)[order] for k, n in enumerate("abc")}, ids=[f"i{k}" for k in order])
    assert compute_digests_by_name(mixed) == fewer


def test_the_digests_of_many_panels_at_once_are_those_of_each_alone():
    panels = []
    for k in range(9):
        scores = {n: draw_scores(k + i) if k != 4 else np.ones(40) for i, n in enumerate("abc"[: 2 + k % 2])}
        counts = Counts.from_scores(scores, ids=[f"i{j}" for j in range(40)], name=f"set-{k}")
        study = prepare_study([(counts, CompareSpec(("mean", "mean:better=lower")), "two-sided")])
        panels += [job.panel for job in study.jobs if isinstance(job.panel, Panel)]
        panels += [panel for p in panels[-1:] if not p.enumerated for _, panel in p.iter_enumerations(np.arange(1), 0)]
    assert {panel.enumerated for panel in panels} == {True, False}
    for panel, digests in zip(panels, compute_pair_digests(panels), strict=True):
        assert digests.shape == panel.shape
        for (row, m), value in np.ndenumerate(digests):
            metric, alone = panel.metrics[m], panel.select([row], [m])
            assert value == alone.compute_digests()[0, 0]
            fields = list(metric.fields)
            scales = np.array([get_factor(panel.lattices[f]) for f in fields], np.uint64)
            (a, b), totals = _hash_systems([alone], fields, scales), alone.totals[:, fields].astype("<u8") * scales
            identity = ("pair", panel.key, panel.enumerated, metric.form, [("decimal", 0)] * len(fields), False)
            text = digest(identity).encode() + np.concatenate([a - b, *totals]).astype("<u8").tobytes()
            assert value.tobytes() == hashlib.blake2b(text, digest_size=20).digest()


def draw_scores(k):
    return build_rng(100 + k).integers(0, 20, 40) / 4


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.with_name("other"),
        lambda c: Counts.from_scores({n: draw_scores(k) + (k == 1) * np.eye(40)[3] / 4 for k, n in enumerate("ab")},
                                     ids=[f"i{k}" for k in range(40)]),
        lambda c: Counts.from_scores({n: draw_scores(k) for k, n in enumerate("ab")}, ids=[f"j{k}" for k in range(40)]),
        lambda c: Counts.from_scores({n: np.roll(draw_scores(k), 1) for k, n in enumerate("ab")},
                                     ids=[f"i{k}" for k in range(40)]),
        lambda c: Counts.from_scores({n: draw_scores(1 - k) for k, n in enumerate("ab")}, ids=[f"i{k}" for k in range(40)]),
        lambda c: Counts.from_scores({n: draw_scores(k) / 3 for k, n in enumerate("ab")}, ids=[f"i{k}" for k in range(40)]),
    ],
    ids=["name of the test set", "one score", "ids", "scores at other items", "systems exchanged", "scale"],
)  # fmt: skip
def test_what_changes_a_count_changes_the_digest(change):
    counts = Counts.from_scores({n: draw_scores(k) for k, n in enumerate("ab")}, ids=[f"i{k}" for k in range(40)])
    [before] = compute_digests_by_name(counts).values()
    [after] = compute_digests_by_name(change(counts)).values()
    assert before != after


def test_seed_unit_method_and_the_metrics_parameters_change_the_digest():
    rng = build_rng(3)
    fields = {
        "tp": rng.integers(0, 3, (40, 2)),
        "predicted": rng.integers(3, 5, (40, 2)),
        "gold": rng.integers(3, 5, (40, 1)),
    }
    ids = [f"i{k}" for k in range(40)]
    plain = Counts.from_scores(
        {n: draw_scores(k) for k, n in enumerate("ab")}, ids=ids, groups={"document": [str(k // 2) for k in range(40)]}
    )
    counts = replace(plain, fields=fields)
    digests = [
        next(iter(compute_digests_by_name(data, (metric,), seed=seed).values()))
        for data, metric, seed in [
            (counts, "f1", 0),
            (counts, "f1", 1),
            (counts, "f:beta=2", 0),
            (counts, "precision", 0),
            (counts.with_unit("document"), "f1", 0),
        ]
    ]
    bound = find_metric("f1", counts).bind(counts)
    changed = replace(bound, form=replace(bound.form, zero_division=1.0))
    digests += [
        build_panels(counts, SwapUnits.from_counts(counts, 0), [m], [(0, 1)])[0].panel.compute_digests()[0, 0].tobytes()
        for m in (bound, changed)
    ]
    assert digests[0] == digests[5]
    assert len(set(digests)) == 6


METRIC_MODULE = "from helpers import weight\n\n\ndef score(outputs, gold):\n    return weight() * float(sum(outputs))\n"


def test_what_a_users_metric_imports_beside_it_is_part_of_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_digest_metric.py").write_text(METRIC_MODULE)
    (tmp_path / "helpers.py").write_text("from package.deep import w\n\ndef weight():\n    return w\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "deep.py").write_text("from .deeper import w\n")
    (tmp_path / "package" / "deeper.py").write_text("w = 1\n")
    (tmp_path / "unrelated.py").write_text("x = 1\n")
    importlib.invalidate_caches()
    function = importlib.import_module("own_digest_metric").score
    try:
        before = digest(BlackBox("score", function))
        (tmp_path / "unrelated.py").write_text("x = 2\n")
        assert digest(BlackBox("score", function)) == before
        digests = {before}
        for name in ("own_digest_metric", "helpers", "package/deep", "package/deeper"):
            with (tmp_path / f"{name}.py").open("a") as file:
                file.write("# changed\n")
            digests.add(digest(BlackBox("score", function)))
        assert len(digests) == 5
    finally:
        for name in ("own_digest_metric", "helpers", "package", "package.deep", "package.deeper"):
            sys.modules.pop(name, None)


def test_what_a_metric_imports_from_a_package_itself_is_part_of_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_packaged_metric.py").write_text(
        "import plain_package\nfrom weight_package import weight\n\n\ndef score(outputs, gold):\n    return weight()\n"
    )
    for package in ("weight_package", "plain_package"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("def weight():\n    return 1.0\n")
    importlib.invalidate_caches()
    function = importlib.import_module("own_packaged_metric").score
    try:
        digests = {digest(BlackBox("score", function))}
        for package in ("weight_package", "plain_package"):
            with (tmp_path / package / "__init__.py").open("a") as file:
                file.write("# changed\n")
            digests.add(digest(BlackBox("score", function)))
        assert len(digests) == 3
    finally:
        for name in ("own_packaged_metric", "weight_package", "plain_package"):
            sys.modules.pop(name, None)


def test_sets_of_one_unit_are_told_apart_by_their_terms():
    # of two terms the first is right: A holds the right one, the wrong one, or both; B holds nothing
    form = BoundSets("type-f1", Ratios(((2, 0, 0),), ((0, 1, 1),)))
    digests = {
        PresencePanel(
                key=(5, 6), addresses=np.arange(1), holdings=(np.array(held_terms), np.zeros(0, int)),
                golden=np.array([True, False]), pairs=np.array([[0, 1]]), metrics=(form,), n_items=1,
            ).compute_digests(
        )[0, 0].tobytes()
        for held_terms in ([0], [1], [0, 1])
    }  # fmt: skip
    assert len(digests) == 3


class Weighted:
    """A metric with state."""

    def __init__(self, weights):
        self.weights = weights

    def __call__(self, outputs, gold):
        return float(sum(outputs) * self.weights.sum())


def test_the_state_of_a_metric_is_part_of_it_to_the_last_number():
    weights = np.zeros(5000)
    changed = weights.copy()
    changed[2500] = 1
    assert digest(Weighted(weights)) == digest(Weighted(weights.copy()))
    assert digest(Weighted(weights)) != digest(Weighted(changed))
    assert digest(np.add) != digest(np.subtract)
    endless = Weighted(weights)
    endless.own = endless
    with pytest.raises(InputError, match="refers to itself"):
        digest(endless)


DIGEST_SCRIPT = """
from sigdask.randomization.panels.digests import _find_imports, _hash_systems, compute_pair_digests, digest, get_factor
class Plain:
    def __init__(self): self.names = {"a", "b", "c", "d"}
print(digest([frozenset("abcdefgh"), {"x", "yy", "zzz"}, Plain()]))
"""


def test_digests_are_the_same_in_every_process(tmp_path):
    (tmp_path / "elsewhere.py").write_text(DIGEST_SCRIPT)
    outputs = {
        subprocess.run(
            [sys.executable, tmp_path / "elsewhere.py"],
            env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1
