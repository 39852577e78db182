"""Tests of `sigdask rankings`: input, output and refusals."""

import csv
import io
import json

import pytest
from command import call_sigdask

TABLE = """id\tgold\tgood\tpoor
a\t1\t9.5\t1
b\t1\t8\t2
c\t0\t7\t3
d\t1\t6\t4
e\t0\t5\t5
f\t0\t4\t6
"""


@pytest.fixture
def run(tmp_path):
    def call(content, *arguments, name="candidates.tsv"):
        raw = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(raw)
        return call_sigdask("rankings", name, *arguments, cwd=tmp_path)

    return call


def load_output(result):
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def check_refusal(result, *words):
    assert result.returncode == 2, result.stdout + result.stderr
    assert "internal error" not in result.stderr
    for word in words:
        assert word in result.stderr, result.stderr


@pytest.mark.slow
def test_json_names_every_model_and_number(run):
    data = load_output(run(TABLE, "--n", "2,4", "--trials", "500", "--json", "-"))
    assert (data["kind"], data["n_candidates"], data["n_true"]) == ("rankings", 6, 3)
    row, [first, second] = data["precision"][0], data["differences"]
    assert [row[key] for key in ("measure", "n", "true_positives", "precision", "recall")] == ["good", 2, 2, 1, 2 / 3]
    keys = ("a", "b", "n", "only_a_true", "only_b_false")
    assert [first[key] for key in keys] == ["good", "poor", 2, 2, 2]
    assert second["n_trials"] == 500


def test_csv_holds_a_row_a_measure_and_n(run, tmp_path):
    run(TABLE, "--n", "1,2,3,4,5,6", "-o", "curve.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "curve.csv").read_text())))
    assert [row["n"] for row in rows if row["measure"] == "good"] == ["1", "2", "3", "4", "5", "6"]
    assert rows[0]["precision"] == "1.0"


def test_of_some_measures_a_smaller_score_is_better(run):
    data = load_output(run(TABLE, "--n", "2", "--smaller", "poor", "--json", "-"))
    assert [m["higher_is_better"] for m in data["measures"]] == [True, False]
    assert [row["precision"] for row in data["precision"]] == [1, 1]


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (TABLE.replace("gold", "is.idiom"), (), ["no column of the gold standard", "--columns gold=is.idiom"]),
        (TABLE.replace("c\t0", "c\t"), (), ["line 4", "column 'gold'", "--partial"]),
        (TABLE.replace("c\t0", "c\tmaybe"), (), ["line 4", "'maybe'", "--positive"]),
        (TABLE.replace("\t1\t", "\t0\t"), (), ["none of 6 candidates is true"]),
        (TABLE.replace("8\t2", "nan\t2"), (), ["line 3", "'good'", "no score"]),
        (TABLE.replace("8\t2", "high\t2"), ("--measure", "good"), ["line 3", "'good'", "'high'"]),
        (TABLE.replace("b\t1", "a\t1"), (), ["line 3", "'a'", "line 2"]),
        (TABLE, ("--n", "7"), ["n = 7", "6 candidates"]),
        (TABLE, ("--n", "ten"), ["'ten'", "50,100,200"]),
        (TABLE, ("--measure", "good", "--measure", "good"), ["'good' is named twice"]),
        (TABLE, ("--baseline", "best"), ["no measure 'best'", "good, poor"]),
        (TABLE, ("--baseline", "good", "--pair", "good", "poor"), ["--baseline", "--pair"]),
        (TABLE, ("--pair", "good", "good"), ["cannot be compared with itself"]),
        (TABLE, ("--positive", "yes"), ["no label 'yes'"]),
        (TABLE, ("--columns", "gold=good", "--measure", "good"), ["'good' is named twice"]),
    ],
)
def test_bad_input_is_named_with_its_line(run, content, arguments, words):
    check_refusal(run(content, *arguments), *words)


@pytest.mark.slow
def test_candidates_of_python_are_checked():
    import numpy as np

    from sigdask import rankings
    from sigdask.counts import Candidates
    from sigdask.errors import InputError

    gold, scores = np.array([True, False, True]), {"t": np.array([3.0, 2.0, 1.0])}
    assert rankings(Candidates(gold, scores), n=2).precision[0].precision == 0.5
    partly = Candidates([1, float("nan"), 0], scores)
    assert rankings(partly, n=2).precision[0].n_judged == 1
    for wrong, words in (
        (lambda: Candidates([1, 2, 0], scores), "gold of candidate 2 is 2"),
        (lambda: Candidates(gold, {"t": [1, 2]}), "gold: 3, t: 2"),
        (lambda: Candidates(gold, scores, ids=["a", "b", "a"]), "id 'a' occurs twice"),
    ):
        with pytest.raises(InputError, match=words):
            wrong()


def test_a_judged_sample_is_extrapolated(run):
    lines = ["id\tgold\tscore"]
    lines += [f"c{k}\t{'' if k % 4 else int(k < 100)}\t{200 - k}" for k in range(200)]
    data = load_output(run("\n".join(lines), "--partial", "--n", "40,120", "--json", "-"))
    assert (data["n_candidates"], data["n_judged"], data["n_true"]) == (200, 50, 25)
    first, second = data["precision"]
    assert (first["n_judged"], first["true_positives"], first["precision"]) == (10, 10, 1.0)
    assert 0.7 < first["low"] < first["high"] == 1.0
    assert second["precision"] == pytest.approx(25 / 30)
    assert second["low"] < 100 / 120 < second["high"]
    assert first["recall"] is data["measures"][0]["average_precision"] is None


def test_a_list_of_one_measure_has_precision_and_nothing_to_compare(run):
    data = load_output(run(TABLE, "--measure", "good", "--json", "-"))
    assert data["differences"] == []
    assert [row["n"] for row in data["precision"]] == [1, 2, 5]


def test_columns_of_texts_are_refused_and_each_remedy_works(run):
    table = "id\tgold\tMI\tpattern\tt\n1\t1\t0.5\tN N\t3\n2\t0\t0.25\tA N\t1\n"
    ways = ["--ignore pattern", "--measure MI --measure t"]
    check_refusal(run(table), "line 2, column 'pattern': found 'N N'", ways[0])
    for way in ways:
        data = load_output(run(table, *way.split(), "--json", "-"))
        assert [row["measure"] for row in data["measures"]] == ["MI", "t"]
