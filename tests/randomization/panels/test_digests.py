"""Tests that a digest changes with everything that changes a count, and with nothing else."""

import importlib
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from builders import build_rng, find_cells

from sigdask.analysis.comparison.pairs import CompareSpec
from sigdask.analysis.comparison.study import plan_study
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.metrics.base import BlackBox
from sigdask.randomization.panels.digests import digest


def compute_digests_by_name(counts, metrics=("mean",), seed=0, **options):
    """Return the digests of the first run, by the names of pair and metric."""
    study = plan_study([(counts, CompareSpec(metrics, seed=seed, **options))], adjust="none")
    c, digests_by_name = study.analyses[0].main, {}
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


def draw_scores(k):
    return build_rng(100 + k).integers(0, 20, 40) / 4


@pytest.mark.parametrize(
    "change",
    [
        lambda c: replace(c, name="other"),
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
    assert len(set(digests)) == 5


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
from sigdask.randomization.panels.digests import digest
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
