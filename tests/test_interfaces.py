"""Tests that errors name options as the user's interface does: command line, Python, plan."""

import pytest
from command import call_sigdask

import sigdask
from sigdask.errors import InputError


def test_options_of_reading_are_refused_with_the_function_that_has_them():
    frame = {"id": [1, 2, 3], "a": [0.1, 0.2, 0.3], "b": [0.3, None, 0.2]}
    with pytest.raises(TypeError, match=r"sigdask\.as_counts\(data, missing=\.\.\.\)"):
        sigdask.compare_all(frame, missing="pairwise")


@pytest.mark.parametrize(
    ("metric", "needed"),
    [
        ("COMET", "needs scores per segment"),
        ("bertscore", "bert-score -s"),
        ("nDCG", "needs runs and judgements"),
        ("meteor", "is computed by other tools"),
        ("pearson", "predictions that are numbers"),
        ("pr-auc", "function of whole outputs"),
    ],
)
def test_a_metric_of_other_data_is_answered_by_what_it_needs(metric, needed):
    with pytest.raises(InputError, match=needed) as error:
        sigdask.compare_all({"a": [1.0, 2.0, 3.0], "b": [1.5, 2.0, 2.5]}, metrics=[metric])
    assert "did you mean" not in str(error.value)


SCORES = {"item": ["q1", "q2", "q3", "q4"], "document": [*"xxyy"], "a": [1.0, 0, 1, 1], "b": [0.0, 0, 1, 0]}
GAPS = {**SCORES, "b": [0.0, None, 1, 0]}
LONG = {"system": [*"aabbb"], "item": [1, 2, 1, 2, 2], "score": [1, 2, 3, 4, 5]}
UNUSUAL = {"who": [*"aaabbb"], "item": [1, 2, 3] * 2, "val": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
PAIR = ([1, 0, 1], [0, 0, 1])


def test_gaps_of_two_sequences_are_left_out_as_those_of_a_mapping():
    a, b = [1, None, 3, 5], [0, 2, 1, 2]
    assert sigdask.compare(a, b, missing="pairwise").difference == (1 + 2 + 3) / 3
    assert sigdask.compare(a, b, missing="zero").difference == (1 - 2 + 2 + 3) / 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--n-permutations", "100"], "Did you mean '--trials'?"),
        (["--adjust", "fdr_bh"], "'tukey'; write 'bh'"),
        (["-m", "bleu", "chrf"], "chrf: no such file. If it is a metric, write it with an option of its own: -m chrf"),
        (["-m", "BLEU,chrF"], "these are several metrics; give BLEU, chrF each by itself"),
    ],
)
def test_the_command_line_answers_the_options_of_other_programs(options, message, tmp_path):
    (tmp_path / "scores.csv").write_text("id,new,old\na,4,1\nb,5,1\nc,4,2\n")
    result = call_sigdask("compare", "scores.csv", *options, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("old", "new"), "compar.* is new - old; write results.'new', 'old'."),
        (("new", "old"), "2 comparisons; add one of 'BLEU', 'chrF'"),
        (("new", "old", "TER"), "0 comparisons; add one of 'BLEU', 'chrF'"),
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
    results = sigdask.compare(pandas.DataFrame(rows))
    assert results["new", "old", "chrF"] == results[1]
    with pytest.raises(InputError, match=message):
        results[names]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((GAPS,), {}, InputError, "missing='pairwise'"),
        ((SCORES,), {"unit": "documant"}, InputError, "no column 'documant'.*did you mean 'document'"),
        ((SCORES,), {"pairs": ("a", "b")}, InputError, r"pairs: 'a' is no pair.*\[\('new', 'old'\)\]"),
        ((SCORES,), {"metric": "acc"}, InputError, "unknown metric 'acc'"),
        ((SCORES,), {"metric": "mean", "metrics": "mean"}, TypeError, "either metric= or metrics="),
        ((SCORES,), {"trails": 100}, TypeError, "no option 'trails'; did you mean 'trials'"),
        ((SCORES,), {"trials": 99.5}, InputError, "trials = 99.5: must be a whole number"),
        (
            (UNUSUAL,),
            {},
            InputError,
            "only 'val'; columns: who, item, val. Are systems named in 'who'.*call that column 'system'",
        ),
        ((LONG,), {}, InputError, "id '2' of system 'b' is on line 4 already"),
        (({"a": [1, 2, 3], "b": [1, 2]},), {}, InputError, r"different numbers of items \(a: 3, b: 2\)"),
        (("scores.csv",), {}, InputError, "str holds no scores.*sigdask.read reads files"),
        (PAIR, {"unit": "document"}, TypeError, "unit= does not apply to two sequences; give units="),
        (PAIR, {"missing": "zero", "gold": [1, 1, 1]}, TypeError, "missing= does not apply"),
        (([1, None, 1], [0, 0, 1]), {}, InputError, "missing='pairwise'"),
        ((SCORES,), {"random_state": 1}, TypeError, "no option 'random_state'; write seed; options"),
        ((*PAIR, [1, 1, 1]), {}, TypeError, r"compare\(a, b, gold=references, metric='BLEU'\) for two sequences"),
        (PAIR, {"names": ["a"]}, InputError, "expected the names of two systems"),
    ],
)
def test_mistakes_of_a_call_are_named_by_pythons_arguments(arguments, options, error, message):
    pandas = pytest.importorskip("pandas")
    if isinstance(arguments[0], dict) and "item" in arguments[0]:
        arguments = (pandas.DataFrame(arguments[0]), *arguments[1:])
    with pytest.raises(error, match=message):
        sigdask.compare(*arguments, **options)
