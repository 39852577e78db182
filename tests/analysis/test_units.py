"""Tests of the scores of units: contributions against exact fractions and other libraries, and files of all kinds."""

import csv
import io
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sacrebleu
import scipy
from command import call_sigdask
from sklearn.metrics import f1_score, precision_score

import sigdask
from sigdask.api import compare_all, compare_sets
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan

OPTIONS = {"trials": 99, "second_run": False, "interval": "none"}
WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "by", "mat", "tree", "big", "and", "then", "it", "slept", "up"]


def make_texts(rng, n):
    """Return references and two systems' outputs, which drop and replace words."""
    references = [[WORDS[k] for k in rng.integers(0, len(WORDS), rng.integers(5, 12))] for _ in range(n)]

    def spoil(rate):
        return [" ".join(w if rng.random() > rate else WORDS[rng.integers(16)] for w in line) for line in references]

    return [" ".join(line) for line in references], spoil(0.15), spoil(0.25)


def select_metric(results, metric):
    table = results.unit_table("a", "b")
    return table[table["metric"] == metric].reset_index(drop=True)


def test_contributions_to_a_mean_are_exact_shares_that_add_up():
    a, b = ["0.1", "0.7", "2.05", "-3", "1e-3"], ["0.3", "0.7", "-1", "4.25", "0"]
    results = compare_all({"a": list(map(float, a)), "b": list(map(float, b))}, **OPTIONS)
    table = results.unit_table("a", "b")
    exact = [(Fraction(x) - Fraction(y)) / 5 for x, y in zip(a, b, strict=True)]
    assert table["contribution"].tolist() == pytest.approx([float(value) for value in exact], rel=1e-15, abs=1e-18)
    assert table["contribution"].sum() == pytest.approx(results[0].difference, rel=1e-14)
    assert table["score_a"].tolist() == list(map(float, a))
    assert {*table["contribution_kind"]} == {"share"}
    assert results.unit_table("b", "a")["contribution"].tolist() == (-table["contribution"]).tolist()


@pytest.mark.parametrize("unit", ["item", "document"])
def test_contributions_to_f1_and_precision_are_halves_of_what_scikit_learn_loses_by_swapping_the_unit(unit):
    rng = np.random.default_rng(5)
    gold, a, b = (rng.integers(0, 2, 60) for _ in range(3))
    documents = np.array([f"d{k}" for k in rng.integers(0, 8, 60)])
    counts = Counts.from_responses(gold, {"a": a, "b": b}, groups={"document": documents.tolist()})
    results = compare_all(counts, metrics=["f1", "precision", "recall"], unit=unit, **OPTIONS)
    rows = {
        "item": [[k] for k in range(60)],
        "document": [np.flatnonzero(documents == d) for d in dict.fromkeys(documents)],
    }
    for metric, score in (("f1", f1_score), ("precision", precision_score)):
        table = select_metric(results, metric)
        whole = score(gold, a) - score(gold, b)
        expected = []
        for k in rows[unit]:
            c, d = a.copy(), b.copy()
            c[k], d[k] = b[k], a[k]
            expected.append((whole - (score(gold, c) - score(gold, d))) / 2)
        assert table["contribution"].tolist() == pytest.approx(expected, abs=1e-12)
        assert {*table["contribution_kind"]} == {"swap"}
    recall = select_metric(results, "recall")  # its denominators are gold alone: a sum
    assert {*recall["contribution_kind"]} == {"share"}
    assert recall["contribution"].sum() == pytest.approx(results[2].difference, abs=1e-12)
    no_gold = [not gold[k].any() for k in rows[unit]]
    assert recall["score_a"].isna().tolist() == no_gold  # 0/0


@pytest.mark.slow
def test_contributions_to_bleu_and_chrf_are_halves_of_what_sacrebleu_loses_by_swapping_the_segment(tmp_path):
    references, a, b = make_texts(np.random.default_rng(2), 30)
    for name, lines in (("ref", references), ("a", a), ("b", b)):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    counts = sigdask.read(tmp_path / "a.txt", tmp_path / "b.txt", gold=tmp_path / "ref.txt", format="segments")
    results = compare_all(counts, metrics=["BLEU", "chrF"], **OPTIONS)
    for metric, score in (("BLEU", sacrebleu.corpus_bleu), ("chrF", sacrebleu.corpus_chrf)):
        table = select_metric(results, metric)

        def difference(swapped=-1, score=score):
            sides = (
                [own[swapped] if k == swapped else x for k, x in enumerate(lines)] for lines, own in ((a, b), (b, a))
            )
            return np.subtract(*(score(lines, [references]).score for lines in sides))

        expected = [(difference() - difference(k)) / 2 for k in range(30)]
        assert table["contribution"].tolist() == pytest.approx(expected, abs=1e-9)
        assert table["score_a"][3] == pytest.approx(score([a[3]], [[references[3]]]).score, abs=1e-9)


def test_a_metric_of_sums_has_contributions_and_a_rank_correlation_none():
    rng = np.random.default_rng(3)
    gold = rng.normal(size=12).round(2)
    a, b = (gold + rng.normal(0, size, 12).round(2) for size in (0.5, 1.0))
    results = compare_all(Counts.from_numbers(gold, {"a": a, "b": b}), metrics=["spearman", "pearson"], **OPTIONS)
    empty = select_metric(results, "spearman")
    assert empty["contribution"].isna().all()
    assert {*empty["note"]} == {"this metric is not computed from sums over units"}

    def difference(is_swapped):
        z_a, z_b = map(scipy.stats.zscore, (a, b))  # systems are standardised before they are swapped
        sides = np.where(is_swapped, z_b, z_a), np.where(is_swapped, z_a, z_b)
        return np.subtract(*(scipy.stats.pearsonr(gold, scores)[0] for scores in sides))

    table = select_metric(results, "pearson")
    everything = np.arange(12)
    expected = [(difference(everything < 0) - difference(everything == k)) / 2 for k in range(12)]
    assert table["contribution"].tolist() == pytest.approx(expected, abs=1e-10)
    assert {*table["contribution_kind"]} == {"swap"}


def test_results_name_what_they_do_not_have():
    sets = [Counts.from_scores({"a": [1, 2], "b": [0, 1], "c": [0, 0]}, name=name) for name in ("one", "two")]
    results = compare_sets(sets, **OPTIONS)
    assert results.unit_table("a", "c")["test_set"].tolist() == ["one", "one", "two", "two"]
    with pytest.raises(InputError, match="no system 'd'; systems: 'a', 'b', 'c'"):
        results.unit_table("a", "d")
    with pytest.raises(InputError, match="compare the outputs again"):
        pickle.loads(pickle.dumps(results)).unit_table("a", "b")
    assert pickle.loads(pickle.dumps(results)) == results


def test_a_warning_on_units_of_one_of_several_test_sets_names_it():
    documents, effects = np.repeat(np.arange(50), 8), np.random.default_rng(0).normal(size=(2, 50))
    values, rest = (
        {"one": np.zeros(400), "two": effects[0][documents], "three": effects[1][documents]},
        np.arange(400) % 7,
    )
    sets = [
        Counts.from_scores({"a": x + rest / 10, "b": np.zeros(400)}, name=name, groups={"document": documents})
        for name, x in values.items()
    ]
    texts = [note.text for note in compare_sets(sets, **OPTIONS).notes if note.kind == "dependence"]
    assert [text.partition(": differences are correlated within document")[0] for text in texts] == ["two", "three"]


@pytest.fixture
def scores(tmp_path):
    lines = ["item,kind,=new,old", "q1,x,1,0", "q2,x,0.5,", "q3,y,2,1.5", "q4,y,1,1"]
    (tmp_path / "scores.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


ROWS = [
    {"subset": "x", "id": "q1", "score_a": 1.0, "score_b": 0.0, "difference": 1.0, "contribution": 1.0},
    {"subset": "y", "id": "q3", "score_a": 2.0, "score_b": 1.5, "difference": 0.5, "contribution": 0.25},
    {"subset": "y", "id": "q4", "score_a": 1.0, "score_b": 1.0, "difference": 0.0, "contribution": 0.0},
]
"""Units of both systems, as worked out by hand; q2 has no score of one."""


def read_cells(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


def read_units(path):
    if path.suffix == ".parquet":
        return pd.read_parquet(path).to_dict("records")
    numbers = {"score_a", "score_b", "difference", "contribution"}
    rows = csv.DictReader(io.StringIO(path.read_text()))
    return [{name: float(cell) if name in numbers else cell for name, cell in row.items()} for row in rows]


@pytest.mark.parametrize("name", ["u.csv", "u.parquet"])
def test_the_command_writes_units_as_the_ending_says(scores, name):
    arguments = ("scores.csv", "--by", "kind", "--missing", "pairwise", "-q", "--items", name)
    result = call_sigdask("compare", *arguments, cwd=scores)
    assert result.returncode == 0, result.stderr
    rows = read_units(scores / name)
    assert [{key: row[key] for key in ROWS[0]} for row in rows] == ROWS
    assert {(row["a"], row["b"], row["metric"], row["unit"]) for row in rows} == {("=new", "old", "mean", "item")}
    before = (scores / name).read_bytes()
    call_sigdask("compare", *arguments, cwd=scores)
    assert (scores / name).read_bytes() == before


def test_a_plan_writes_units_in_each_run(tmp_path):
    (tmp_path / "one.csv").write_text("item,a,b\nx,1,0\ny,2,1\n")
    (tmp_path / "two.csv").write_text("item,a,b\nx,1,0\nz,2,4\n")
    text = '[[test_set]]\nname = "one"\nsystems = "one.csv"\n[[test_set]]\nname = "two"\nsystems = "two.csv"\n'
    path = tmp_path / "plan.toml"
    path.write_text(f'{text}[report]\nitems = "units-{{date}}.csv"\n')
    for _ in range(2):  # the second run reads nothing new
        assert run_plan(load_plan(path)).exit_status == 0
        [file] = tmp_path.glob("units-*.csv")
        rows = read_cells(file)
        file.unlink()
        assert [(row["test_set"], row["id"], float(row["contribution"])) for row in rows] == [
            ("one", "x", 0.5), ("one", "y", 0.5), ("two", "x", 0.5), ("two", "z", -1)
        ]  # fmt: skip
    path.write_text(f'{text}[report]\nitems = "units.txt"\n')
    with pytest.raises(InputError, match=r"report.items.*expected a file that ends in .csv"):
        load_plan(path)
