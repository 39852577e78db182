"""Tests that errors name options as the user's interface does: command line, Python, plan."""

import pytest

import sigdask
from sigdask.counts import Counts
from sigdask.errors import InputError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "no_id.csv").write_text("system,score\na,1\nb,2\n")
    return tmp_path


def test_python_names_its_arguments(folder):
    with pytest.raises(InputError, match=r"name it with columns="):
        sigdask.read(folder / "no_id.csv", format="long")


def test_a_plan_names_its_keys(folder):
    plan = folder / "plan.toml"
    plan.write_text('[[test_set]]\nname = "t"\nsystems = "no_id.csv"\nformat = "long"\n')
    with pytest.raises(InputError, match=r"name it with `id`"):
        sigdask.load_plan(plan).test_sets[0].read()


@pytest.mark.parametrize(
    ("metric", "needed"),
    [
        ("COMET", "only these scores, one on each line.* metric mean"),
        ("nDCG", "needs runs and judgements"),
        ("pearson", "predictions that are numbers"),
        ("mqm", "people's ratings"),
    ],
)
def test_a_metric_of_other_data_is_answered_by_what_it_needs(metric, needed):
    with pytest.raises(InputError, match=needed) as error:
        sigdask.compare_all({"a": [1.0, 2.0, 3.0], "b": [1.5, 2.0, 2.5]}, metrics=[metric])
    assert "did you mean" not in str(error.value)


SCORES = {"item": ["q1", "q2", "q3", "q4"], "document": [*"xxyy"], "a": [1.0, 0, 1, 1], "b": [0.0, 0, 1, 0]}
GAPS = {**SCORES, "b": [0.0, None, 1, 0]}
PAIR = ([1, 0, 1], [0, 0, 1])
COUNTS = Counts.from_scores({"a": [1, 2], "b": [2, 1]})


def test_gaps_of_two_sequences_are_left_out_as_those_of_a_mapping():
    a, b = [1, None, 3, 5], [0, 2, 1, 2]
    assert sigdask.compare(a, b, missing="pairwise").difference == (1 + 2 + 3) / 3
    assert sigdask.compare(a, b, missing="zero").difference == (1 - 2 + 2 + 3) / 4


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("old", "new"), "compar.* is new - old; write results.'new', 'old'."),
        (("new", "old"), "2 comparisons; add one of 'BLEU', 'chrF'"),
        (("new", "old", "TER"), "0 comparisons; add one of 'BLEU', 'chrF'"),
        (("now", "old"), "no system 'now'; did you mean 'new'"),
        ("new", "expected a position, or two systems"),
    ],
)
def test_a_result_is_found_by_its_systems_and_metric(names, message):
    pandas = pytest.importorskip("pandas")
    rows = {
        "system": [*["new"] * 3, *["old"] * 3],
        "item": [1, 2, 3] * 2,
        "BLEU": [3, 1, 2, 2, 2, 1],
        "chrF": [*range(6)],
    }
    results = sigdask.compare_all(pandas.DataFrame(rows))
    assert results["new", "old", "chrF"] == results[1]
    with pytest.raises(InputError, match=message):
        results[names]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((GAPS,), {}, InputError, "missing='pairwise'"),
        ((SCORES,), {"pairs": ("a", "b")}, InputError, "pairs: 'a'"),
        ((SCORES,), {"metrics": "acc"}, InputError, "'acc'"),
        ((SCORES,), {"trails": 100}, TypeError, "trails"),
        ((SCORES,), {"alpha": "0.05"}, InputError, "alpha"),
        ((SCORES,), {"trials": 99.5}, InputError, "trials"),
        ((SCORES,), {"format": "tall"}, InputError, "format.*auto, wide, long"),
        ((SCORES,), {"columns": {"id": "name"}}, InputError, "no column 'name'"),
        ((SCORES,), {"columns": {"ids": "item"}}, InputError, "columns.*'ids'.*'id'"),
        ((SCORES,), {"gold": [1, 0, 1, 1]}, TypeError, "gold=.*columns={'gold'"),
        (([[1, 2]],), {}, InputError, "list holds no scores"),
        (({"a": [1, 2, 3], "b": [1, 2]},), {}, InputError, r"\(a: 3, b: 2\)"),
        (("scores.csv",), {}, InputError, "sigdask.read"),
        ((SCORES, "new", "old"), {}, TypeError, "positional"),
        ((COUNTS,), {"missing": "zero"}, TypeError, "missing=.*Counts"),
    ],
)
def test_mistakes_of_compare_all_are_named_by_pythons_arguments(arguments, options, error, message):
    pandas = pytest.importorskip("pandas")
    if isinstance(arguments[0], dict) and "item" in arguments[0]:
        arguments = (pandas.DataFrame(arguments[0]), *arguments[1:])
    with pytest.raises(error, match=message) as raised:
        sigdask.compare_all(*arguments, **options)
    assert "--" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((SCORES,), {}, TypeError, "compare_all"),
        (PAIR, {"unit": "document"}, TypeError, "unit"),
        (PAIR, {"missing": "zero", "gold": [1, 1, 1]}, TypeError, "missing="),
        (PAIR, {"missing": "all"}, InputError, "missing = 'all'"),
        (([1, None, 1], [0, 0, 1]), {}, InputError, "missing='pairwise'"),
        (("new.csv", "old.csv"), {}, InputError, "'A'.*sigdask.read"),
        (PAIR, {"names": ["a"]}, InputError, "names"),
        ((["x", "y"], ["x", "x"]), {}, InputError, "'A' holds texts such as 'x'.*gold="),
        ((["x"], ["x"]), {"gold": ["x", "y"]}, InputError, r"\(gold: 2, A: 1, B: 1\)"),
        (([1, 2, 3], [1, 2]), {}, InputError, r"\(A: 3, B: 2\)"),
    ],
)
def test_mistakes_of_compare_are_named(arguments, options, error, message):
    with pytest.raises(error, match=message):
        sigdask.compare(*arguments, **options)
