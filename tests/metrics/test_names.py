"""Built-in metrics by name, and metrics that users bring."""

import contextlib
import itertools

import numpy as np
import pytest

import sigdask
from sigdask.api import compare, compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats import read
from sigdask.formats.reading.options import Options
from sigdask.metrics import METRICS, find_metric

LABELS = Counts.from_labels(list("AABB"), {"x": list("AAAB"), "y": list("BABB")})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acuracy", "did you mean accuracy"),
        ("f1:beta=2", "no option 'beta'"),
        ("f:bta=2", "did you mean 'beta'"),
        ("f:beta=two", "not a number"),
        ("macro-f1:beta=2", "macro-f1 has no option 'beta'"),
        ("micro-recall:beta=2", "no option 'beta'"),
        ("chrF:beta=x", "not a number"),
        ("f:beta=0.123456789", r"beta = 0\.123456789 has too many digits"),
        ("macro-f:beta=123456789", "too many digits"),
        ("f1:zero_division=3", "must be one of 0, 1"),
        ("accuracy[A]", r"takes no \[label\]"),
        ("no_such_module:f", r"cannot import it .*No module named 'no_such_module'.* on Python's path and in "),
        ("folder/mine.py:best", "expected MODULE:ATTRIBUTE .no file., such as my_metrics:name"),
        ("sigdask:nothing", "has no attribute 'nothing'"),
        ("", "expected NAME"),
    ],
)
def test_a_name_that_is_no_metric_is_an_error_with_a_remedy(name, message):
    with pytest.raises(InputError, match=message):
        find_metric(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [("mean", "item scores"), ("f1", r"f1\[A\]"), ("f1[Z]", "no label 'Z'"), ("macro-f1:labels=A+Z", "no label 'Z'")],
)
def test_a_metric_that_the_data_cannot_give_says_what_they_lack(name, message):
    with pytest.raises(InputError, match=message):
        find_metric(name).bind(LABELS)


def test_every_built_in_metric_binds_to_some_data(tmp_path):
    for file in "xyr":
        (tmp_path / file).write_text("some words\nmore words\n")
        (tmp_path / f"{file}.trec").write_text("1 Q0 a 1 2 tag\n" if file != "r" else "1 0 a 1\n")
    (tmp_path / "t").write_text("id\tterm\n1\tsome\n")
    (tmp_path / "parse").write_text("1\tw\tw\tX\t_\t_\t0\troot\t_\t_\n\n")
    (tmp_path / "tree").write_text("(S (NP (NN dog)))\n")
    (tmp_path / "meta").write_text("system,segment,human,a,b\nx,1,1,2,3\ny,1,2,3,1\n")
    (tmp_path / "numbers").write_text("gold,a,b\n0.5,1,2\n1.5,0,1\n")
    (tmp_path / "links").write_text('{"relations": [{"head": [0, 1, "A"], "tail": [2, 3, "B"], "type": "at"}]}\n')
    links = tmp_path / "links"
    data = [
        read(links, f"y={links}", gold=links, options=Options(metrics=("relation-f1",))),
        read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "r", format="segments"),
        read(tmp_path / "x.trec", tmp_path / "y.trec", gold=tmp_path / "r.trec", format="trec"),
        LABELS,
        Counts.from_scores({"a": [1, 2], "b": [2, 1]}),
        Counts.from_responses([1, 0], {"a": [1, 0], "b": [0, 1]}),
        Counts.from_label_sets([["L"], []], {"a": [["L"], ["M"]], "b": [[], []]}),
        read(tmp_path / "numbers", format="numbers"),
        read(tmp_path / "parse", gold=tmp_path / "parse", format="conllu"),
        read(tmp_path / "tree", gold=tmp_path / "tree", format="trees"),
        Counts.from_numbers([0, 1], {"a": [0.5, 0.6], "b": [0.1, 0.2]}),
        read(tmp_path / "meta", format="meta"),
        read(tmp_path / "t", f"y={tmp_path / 't'}", gold=tmp_path / "t", format="terms"),
    ]
    bound = set()
    for name, counts in itertools.product(METRICS, data):
        with contextlib.suppress(InputError):
            bound.add(find_metric(name).bind(counts).name)
    assert {*METRICS} <= bound


def test_a_users_metric_of_counts_counts_as_the_built_in_one(yeh):
    @sigdask.metric
    def mine(tp, predicted, gold):
        return 2 * tp / (predicted + gold)

    user_result, built_in = compare_all(yeh, metrics=[mine, "f1"], trials=20_000)
    assert user_result.n_extreme == built_in.n_extreme
    assert user_result.score_a == built_in.score_a


def test_a_black_box_that_fails_or_returns_nan_is_the_users_error():
    def fails(outputs, gold):
        return outputs["x"]

    line = fails.__code__.co_firstlineno + 1
    for function, place in (
        (fails, rf"TypeError: .*test_names.py, line {line}\)"),
        (lambda outputs, gold: "high", "'high'"),
        (lambda outputs, gold: float("nan"), "nan"),
    ):
        with pytest.raises(InputError, match=place):
            compare([1, 2], [0, 0], metric=sigdask.metric(function, of="outputs"))


def test_lower_is_better_where_the_user_says_so():
    @sigdask.metric(higher_is_better=False, name="errors")
    def errors(correct, items):
        return items - correct

    [r] = compare_all(LABELS, metrics=[errors])
    assert (r.metric, r.higher_is_better, r.score_a, r.score_b) == ("errors", False, 1.0, 1.0)
    assert r.better() is None
    [r] = compare_all(Counts.from_labels(list("AAA"), {"x": list("AAB"), "y": list("ABB")}), metrics=[errors])
    assert r.better() == "x"


def test_a_metric_is_found_by_module_and_name(tmp_path, monkeypatch):
    (tmp_path / "metrics_of_this_test.py").write_text(
        "import sigdask\n@sigdask.metric\ndef error(correct, items):\n    return 1 - correct / items\n"
        "def right(outputs, gold):\n    return sum(map(str.__eq__, outputs, gold))\n"
    )
    monkeypatch.chdir(tmp_path)
    results = compare_all(LABELS, metrics=["metrics_of_this_test:error", "metrics_of_this_test:right"])
    assert [r.metric for r in results] == ["metrics_of_this_test:error", "metrics_of_this_test:right"]
    assert [r.score_a for r in results] == [0.25, 3.0]


def test_a_metric_that_is_not_vectorised_or_not_finite_is_refused(yeh):
    for function in (lambda tp: float(np.sum(tp)), lambda tp: tp * np.nan, lambda tp: tp["x"]):
        with pytest.raises(InputError):
            compare_all(yeh, metrics=[sigdask.metric(function)], trials=10)
