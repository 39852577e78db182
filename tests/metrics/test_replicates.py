"""Replicates: the mean of their scores, in any format, swapped together or separately."""

import json

import numpy as np
import pytest
import scipy
from builders import build_rng

from sigdask.analysis.comparison.pairs import bind_metric
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats import Source, detect, read
from sigdask.metrics import find_metric, metric

N_ITEMS = 40


@pytest.fixture(scope="module")
def labelled():
    rng = build_rng(9)
    gold = rng.choice(["A", "B", "C"], N_ITEMS)
    seeds = [
        {
            s: np.where(rng.random(N_ITEMS) < share, gold, rng.choice(["A", "B", "C", "D"], N_ITEMS))
            for s, share in (("x", 0.7), ("y", 0.5))
        }
        for _ in range(3)
    ]
    return gold, seeds


def build_counts(labelled, *, apart=False):
    gold, seeds = labelled
    return Counts.of_replicates([Counts.from_labels(gold, seed) for seed in seeds], apart=apart)


METRICS = ["accuracy", "macro-f1", "f1[A]", "mcc"]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("metric", METRICS)
def test_scores_and_pseudo_scores_are_means_over_replicates(labelled, metric, apart):
    gold, seeds = labelled
    counts = build_counts(labelled, apart=apart)
    n_items = 3 * N_ITEMS if apart else N_ITEMS
    assert counts.n_items == n_items
    bound = bind_metric(find_metric(metric), counts)
    arrays = np.stack([np.broadcast_to(bound.get_field(f, counts), (n_items, 2)) for f in bound.fields], axis=-1)
    for swapped in (np.zeros(n_items, bool), *(build_rng(k).random(n_items) < 0.5 for k in range(5))):
        seed_swaps = swapped.reshape(3, N_ITEMS) if apart else np.tile(swapped, (3, 1))
        means = []
        for system, opponent in (("x", "y"), ("y", "x")):
            pseudo = [np.where(s, seed[opponent], seed[system]) for s, seed in zip(seed_swaps, seeds, strict=True)]
            # a rival keeps all labels in play, so that every replicate has the same ones
            single = [Counts.from_labels(gold, {"p": p, "q": seed["x"]}) for p, seed in zip(pseudo, seeds, strict=True)]
            scores = []
            for c in single:
                b = find_metric(metric).bind(c)
                scores.append(
                    b.form.score(
                        np.array([np.broadcast_to(b.get_field(f, c), (N_ITEMS, 2))[:, 0].sum() for f in b.fields])
                    )
                )
            means.append(np.mean(scores))
        for k, mean in enumerate(means):
            row = np.where(swapped[:, None], arrays[:, 1 - k], arrays[:, k])
            assert float(bound.form.score(row.sum(0))) == pytest.approx(mean, rel=1e-12)


@pytest.mark.slow
def test_units_and_subsets_hold_all_replicates(labelled):
    gold, seeds = labelled
    groups = {"topic": [str(k % 4) for k in range(N_ITEMS)]}
    replicates = [Counts.from_labels(gold, seed, groups=groups) for seed in seeds]
    for apart in (False, True):
        counts = Counts.of_replicates(replicates, apart=apart)
        [r] = compare_all(counts, metrics=["macro-f1"], unit="topic", interval="none")
        assert (r.n_units, r.method) == (4, "exact")
        results = compare_all(counts, metrics=["accuracy"], by="topic", trials=100)
        assert [r.n_items for r in results] == [10 * (3 if apart else 1)] * 4


def test_missing_items_of_one_replicate_are_missing(labelled):
    scores = [{"x": [1.0, 2.0, np.nan], "y": [0.0, 1.5, 2.0]}, {"x": [2.0, 2.5, 1.0], "y": [0.0, 0.25, 2.0]}]
    replicates = [Counts.from_scores(s, missing="pairwise") for s in scores]
    for apart in (False, True):
        [r] = compare_all(Counts.of_replicates(replicates, apart=apart), metrics=["mean"])
        assert (r.score_a, r.score_b) == (7.5 / 4, 1.75 / 4)
        assert r.n_items == (4 if apart else 2)


def test_decimals_stay_exact():
    scores = [{"x": [0.1, 0.2, 0.7], "y": [0.2, 0.3, 0.5]}, {"x": [0.3, 0.2, 0.1], "y": [0.2, 0.1, 0.3]}]
    [r] = compare_all(Counts.of_replicates([Counts.from_scores(s) for s in scores]), metrics=["mean"])
    assert r.p_value == 1.0
    assert r.difference == 0.0


def test_a_black_box_takes_no_replicates(labelled):
    box = metric(lambda outputs, gold: 0.0, of="outputs")
    with pytest.raises(InputError, match="uses whole outputs and does not support replicates"):
        compare_all(build_counts(labelled), metrics=[box], trials=10)


# files


def write_tables(folder, header, rows, n):
    """Write a table for each of n seeds of two systems; odd seeds have their rows reversed."""
    files = []
    for r in range(n):
        for name in ("x", "y"):
            path = folder / f"{name}.{r}.tsv"
            lines = [row(name, r) for row in rows]
            path.write_text(header + "".join(lines[:: -1 if r % 2 else 1]))
            files.append(f"{name}={path}")
    return files


def test_any_format_takes_several_files_of_one_name(tmp_path):
    rng = build_rng(3)
    values = {(n, r): rng.integers(0, 9, 6) / 8 for n in "xy" for r in range(2)}
    rows = [lambda n, r, k=k: f"i{k}\t{values[n, r][k]}\n" for k in range(6)]
    files = write_tables(tmp_path, "item\tscore\n", rows, 2)
    assert detect([Source(tmp_path / "x.0.tsv", "x"), Source(tmp_path / "x.1.tsv", "x")]) == "wide"
    counts = read(*files)
    assert counts.systems == ("x", "y")
    assert counts.ids == tuple(f"i{k}" for k in range(6))
    assert len(counts.replicates) == 2
    [r] = compare_all(counts, metrics=["mean"])
    assert r.score_a == pytest.approx(np.mean([values["x", 0], values["x", 1]]))
    # by hand: all 64 arrangements of the six items, both replicates together
    total = sum(values["x", r] - values["y", r] for r in range(2))
    signs = 1 - 2 * ((np.arange(64)[:, None] >> np.arange(6)) & 1)
    assert r.p_value == pytest.approx((abs(signs @ total) >= abs(total.sum()) - 1e-9).mean())
    assert (counts.runs.is_shared, read(*files, format="wide:replicates=paired").runs.is_shared) == (False, True)


def test_replicates_that_do_not_fit_are_errors(tmp_path):
    for name, text in {
        "a": "item\tscore\ni\t1\nj\t2\n",
        "b": "item\tscore\ni\t1\nk\t2\n",
        "c": "item\tscore\ni\t1\n",
        "d": "item\tscore\ni\t3\nj\t0\n",
    }.items():
        (tmp_path / f"{name}.tsv").write_text(text)
    a, b, c, d = (tmp_path / f"{name}.tsv" for name in "abcd")
    with pytest.raises(InputError, match=r"system 'x' has 2 runs, but 'y' has 1; give each system equally"):
        read(f"x={a}", f"x={d}", f"y={a}")
    with pytest.raises(InputError, match=r"system 'x' has 2 runs, but 'a' has 1"):
        read(f"x={a}", f"x={d}", a)
    with pytest.raises(InputError, match=r"a.tsv: is given twice for system 'x'"):
        read(f"x={a}", f"x={a}", f"y={a}", f"y={b}")
    for other, examples in ((b, "1 of 3 items are in both .*'i' is, 'j' is not"), (c, "1 of 2 items are in both")):
        with pytest.raises(InputError, match=examples):
            read(f"x={a}", f"x={other}", f"y={a}", f"y={other}")
    with pytest.raises(InputError, match=r"replicates = 'all': must be one of paired"):
        read(f"x={a}", f"y={a}", format="wide:replicates=all")


# translations


@pytest.fixture(scope="module")
def multeval(shared_data):
    return shared_data / "mt_multeval", json.loads((shared_data / "mt_multeval" / "reference_scores.json").read_text())


@pytest.mark.slow
def test_multeval_has_its_official_scores(multeval):
    folder, official = multeval
    gold = folder / "refs.test2010.lc.tok.en.0"
    files = [f"{name}={folder}/hyps.lc.tok.en.{name}.opt{k}" for name in ("baseline", "sys1") for k in range(3)]
    metrics = ["BLEU:tokenize=none"]
    counts = read(*files, gold=gold, format="segments")
    assert (counts.n_items, len(counts.replicates)) == (2489, 3)
    expected = {n: [official["scores"][f"hyps.lc.tok.en.{n}.opt{k}"] for k in range(3)] for n in ("baseline", "sys1")}
    [together] = compare_all(counts, metrics=metrics, trials=4096)
    for name, score in (("baseline", together.score_a), ("sys1", together.score_b)):
        assert score == pytest.approx(np.mean([k["BLEU_tok_none"] for k in expected[name]]), abs=1e-6)
    # the README of MultEval: 18.5 and 18.8, p 0.00
    assert (round(together.score_a, 1), round(together.score_b, 1)) == (18.5, 18.8)
    assert together.signature.startswith("nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:")
    # three tuning runs of each system: scores per run are the official ones, and Welch's t is SciPy's
    runs = [[k["BLEU_tok_none"] for k in expected[name]] for name in ("baseline", "sys1")]
    assert together.runs.p_runs == pytest.approx(
        scipy.stats.ttest_ind(*runs, equal_var=False).pvalue, rel=1e-5
    )  # 6 decimals
