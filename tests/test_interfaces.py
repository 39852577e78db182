"""Tests that errors name options as the user's interface does: command line, Python, plan."""

import ast
import html
import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from command import call_sigdask

import sigdask
from sigdask.errors import InputError
from sigdask.options import (
    GUESSES,
    OPTIONS,
    READING_OPTIONS,
    UNDECLARED_OPTIONS,
    FrameOptions,
    list_options,
    rename_options,
)

ROOT = Path(sigdask.__file__).parent
SKIPPED = ("cli/", "execution/clusters/", "execution/certificates", "nightly/store/")
"""Folders whose messages speak of commands alone."""


def iter_messages():
    """Yield the texts of the package that name a sigdask option, as an f-string would write them."""
    for path in sorted(ROOT.rglob("*.py")):
        if path.relative_to(ROOT).as_posix().startswith(SKIPPED):
            continue
        if not re.search(r"--[a-z]", source := path.read_text()):
            continue
        tree = ast.parse(source)
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "x1" for part in node.values]
                yield "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                yield node.value


def find_options(text):
    return [match[1] for match in re.finditer(r"--([a-z][a-z-]*[a-z])", text)]


DECLARED_OPTIONS = {name.replace("_", "-") for name in (*OPTIONS, *READING_OPTIONS, *UNDECLARED_OPTIONS)} | {
    "id",
    "metric",
    "map",
    "groups",
}


def test_no_message_names_an_option_of_ours_as_the_command_line_does_elsewhere():
    texts = [text for text in iter_messages() if " " in text and not DECLARED_OPTIONS.isdisjoint(find_options(text))]
    assert len(texts) > 50
    for text in texts:
        for interface in ("python", "plan"):
            assert DECLARED_OPTIONS.isdisjoint(find_options(rename_options(text, interface))), text


@pytest.mark.parametrize(
    ("message", "python", "plan"),
    [
        ("choose --missing pairwise (each pair)", "choose missing='pairwise' (each pair)", 'missing = "pairwise"'),
        ("a finer --unit if units", "a finer unit= if units", "a finer `unit` if units"),
        ("--format conll:scheme=IOB2,column=3", "format='conll:scheme=IOB2,column=3'", "format ="),
        ("Say --decimal , or --decimal .", "Say decimal=',' or decimal='.'", 'decimal = ","'),
        ("Then --min-items 3 compares", "Then min_items=3 compares", "min_items = 3 compares"),
        ("give --ref FILE (the", "give gold=FILE (the", "give gold = FILE (the"),
        ("give --gold FILE", "give gold=FILE", "give gold = FILE"),
        ("--groups a/b.tsv: no", "group_file='a/b.tsv': no", 'groups = "a/b.tsv": no'),
        ("with iconv --from-code latin1", "with iconv --from-code latin1", "--from-code latin1"),
    ],
)
def test_an_option_is_named_with_its_value(message, python, plan):
    assert rename_options(message, "python") == python
    assert plan in rename_options(message, "plan")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "no_id.csv").write_text("system,score\na,1\nb,2\n")
    return tmp_path


def test_python_names_its_arguments(folder):
    with pytest.raises(InputError, match=r"name it with columns="):
        sigdask.read(folder / "no_id.csv", format="long")


def test_options_of_reading_are_refused_with_the_function_that_has_them():
    frame = {"id": [1, 2, 3], "a": [0.1, 0.2, 0.3], "b": [0.3, None, 0.2]}
    with pytest.raises(TypeError, match=r"sigdask\.as_counts\(data, missing=\.\.\.\)"):
        sigdask.compare_all(frame, missing="pairwise")


def test_a_plan_names_its_keys(folder):
    plan = folder / "plan.toml"
    plan.write_text('[[test_set]]\nname = "t"\nsystems = "no_id.csv"\nformat = "long"\n')
    with pytest.raises(InputError, match=r"name it with `id`"):
        sigdask.load_plan(plan).test_sets[0].read()


def test_notes_on_the_results_of_a_plan_name_its_keys(folder):
    rows = [f"{k},d{k // 20},{k // 20 % 2},{(k // 20 + 1) % 2 * (k % 9 > 0)}" for k in range(240)]
    (folder / "t.csv").write_text("\n".join(["id,document,a,b", *rows]))
    (folder / "plan.toml").write_text(
        '[report]\nhtml = "r.html"\njson = "r.json"\n[[test_set]]\nname = "t"\nsystems = "t.csv"\n'
    )
    plan = sigdask.load_plan(folder / "plan.toml")
    results = sigdask.run_plan(plan, cluster="none").results["t"]
    assert any('unit = "document"' in warning for warning in results.warnings)
    [below_the_verdict] = [line for line in str(results).splitlines() if line.startswith("warning: differences")]
    assert 'unit = "document"' in below_the_verdict
    assert not any("--" in warning for warning in results.warnings)
    printed = call_sigdask("report", "plan.toml", cwd=folder).stdout
    page, as_json = (html.unescape((folder / name).read_text()) for name in ("r.html", "r.json"))
    for text in (printed, page, json.loads(as_json)["warnings"][-1]):
        assert 'Use unit = "document"' in text
        assert "--unit" not in text


def test_the_command_line_names_its_options(folder):
    result = call_sigdask("compare", "no_id.csv", "--format", "long", cwd=folder)
    assert result.returncode == 2
    assert "name it with --id" in result.stderr


@pytest.mark.parametrize(
    ("metric", "needed"),
    [
        ("COMET", "needs scores per segment"),
        ("wmt22-comet-da", "needs scores per segment"),
        ("COMET", "only these scores, one on each line.* metric mean"),
        ("bertscore", "bert-score -s"),
        ("nDCG", "needs runs and judgements"),
        ("map", "needs runs and judgements"),
        ("meteor", "is computed by other tools"),
        ("LAS", "needs parses"),
        ("pearson", "predictions that are numbers"),
        ("pr-auc", "function of whole outputs"),
        ("mqm", "people's ratings"),
    ],
)
def test_a_metric_of_other_data_is_answered_by_what_it_needs(metric, needed):
    with pytest.raises(InputError, match=needed) as error:
        sigdask.compare_all({"a": [1.0, 2.0, 3.0], "b": [1.5, 2.0, 2.5]}, metrics=[metric])
    assert "did you mean" not in str(error.value)


@pytest.mark.parametrize(
    ("test", "answer"),
    [
        ("anova", "adjust="),
        ("bootstrap", "interval='bootstrap'"),
        ("permutation", "this is the test that sigdask makes"),
    ],
)
def test_a_test_that_is_asked_for_elsewhere_is_answered_by_where(test, answer):
    with pytest.raises(InputError, match=answer):
        sigdask.compare_all({"a": [1.0, 2.0, 3.0], "b": [1.5, 2.0, 2.5]}, tests=test)


SCORES = {"item": ["q1", "q2", "q3", "q4"], "document": [*"xxyy"], "a": [1.0, 0, 1, 1], "b": [0.0, 0, 1, 0]}
GAPS = {**SCORES, "b": [0.0, None, 1, 0]}
LONG = {"system": [*"aabbb"], "item": [1, 2, 1, 2, 2], "score": [1, 2, 3, 4, 5]}
UNUSUAL = {"who": [*"aaabbb"], "item": [1, 2, 3] * 2, "val": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
PAIR = ([1, 0, 1], [0, 0, 1])


def test_series_of_different_lengths_are_refused_for_their_lengths():
    pandas = pytest.importorskip("pandas")
    scores = pandas.Series([1, 0, 1, 1])
    with pytest.raises(InputError, match=r"different numbers of items \(A: 4, B: 3\)"):
        sigdask.compare(scores, scores[:3])


def test_gaps_of_two_sequences_are_left_out_as_those_of_a_mapping():
    a, b = [1, None, 3, 5], [0, 2, 1, 2]
    assert sigdask.compare(a, b, missing="pairwise").difference == (1 + 2 + 3) / 3
    assert sigdask.compare(a, b, missing="zero").difference == (1 - 2 + 2 + 3) / 4


def test_a_seed_of_none_is_the_default():
    assert sigdask.compare([1, 2, 3], [0, 0, 4], seed=None) == sigdask.compare([1, 2, 3], [0, 0, 4])


def test_power_of_two_sequences_says_how_to_give_them():
    with pytest.raises(TypeError, match=r"power: an argument too many .*write power\(\{'new': a, 'old': b\}"):
        sigdask.power([1, 0, 1], [0, 1, 1], difference=0.1)


@pytest.mark.parametrize("key", sorted(GUESSES))
def test_a_guess_of_another_librarys_name_is_answered_by_a_name_that_is_there(key):
    owner, name = key
    if owner == "option":
        assert name not in list_options(FrameOptions)
        return
    owners = {"Results": sigdask.Results, "Result": sigdask.Result, "sigdask": sigdask}
    assert name not in dir(owners[owner])
    place, word = re.match(r"(results\[0\]\.|results\.)?(\w+)", GUESSES[key]).groups()
    owner = {"results[0].": "Result", "results.": "Results", None: owner}[place]
    assert word in {*dir(owners[owner]), "print", "results", "dataclasses", "sigdask"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--n-permutations", "100"], "No such option '--n-permutations'. Did you mean '--trials'?"),
        (["--refs", "scores.csv"], "Did you mean '--gold'?"),
        (["--adjust", "fdr_bh"], "'tukey'; write 'bh'"),
        (["--method", "holm"], "it is a value of adjust"),
        (["-m", "bleu", "chrf"], "chrf: no such file. If it is a metric, write it with an option of its own: -m chrf"),
        (["-m", "BLEU,chrF"], "these are several metrics; give BLEU, chrF each by itself"),
    ],
)
def test_the_command_line_answers_the_options_of_other_programs(options, message, tmp_path):
    (tmp_path / "scores.csv").write_text("id,new,old\na,4,1\nb,5,1\nc,4,2\n")
    result = call_sigdask("compare", "scores.csv", *options, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr


def test_a_command_names_no_option_of_another_command(tmp_path):
    assert "Did you mean '--workers'" in call_sigdask("compare", "a", "b", "--n-jobs", "2", cwd=tmp_path).stderr
    assert "Did you mean" not in call_sigdask("cite", "--n-jobs", "2", cwd=tmp_path).stderr


def test_unknown_names_are_answered_by_the_right_ones():
    results = sigdask.compare({"new": [1, 2, 3], "old": [0, 0, 4]})
    for read, message in (
        (lambda: results.to_pandas, "no attribute 'to_pandas'; write to_frame"),
        (lambda: results[0].pvalue, "no attribute 'pvalue'; write p_value"),
        (lambda: results[0].p_valeu, "no attribute 'p_valeu'; did you mean 'p_value'"),
        (lambda: sigdask.ttest_rel, "no attribute 'ttest_rel'; write compare"),
        (lambda: results._repr_png_, "no attribute '_repr_png_'$"),
    ):
        with pytest.raises(AttributeError, match=message):
            read()
    low, high = results[0].interval
    assert (low, high) == (results[0].interval.low, results[0].interval.high)
    assert sigdask.__version__ == version("sigdask")


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
    results = sigdask.compare(pandas.DataFrame(rows))
    assert results["new", "old", "chrF"] == results[1]
    with pytest.raises(InputError, match=message):
        results[names]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((GAPS,), {}, InputError, "missing='pairwise'"),
        ((SCORES,), {"unit": "documant"}, InputError, "no column 'documant'.*did you mean 'document'"),
        ((SCORES,), {"by": "domain"}, InputError, "no column 'domain'; columns: item, document"),
        ((SCORES,), {"baseline": "base"}, InputError, "no system 'base'; systems: a, b"),
        ((SCORES,), {"pairs": ("a", "b")}, InputError, r"pairs: 'a' is no pair.*\[\('new', 'old'\)\]"),
        ((SCORES,), {"metric": "acc"}, InputError, "unknown metric 'acc'"),
        ((SCORES,), {"metric": "mean", "metrics": "mean"}, TypeError, "either metric= or metrics="),
        ((SCORES,), {"trails": 100}, TypeError, "no option 'trails'; did you mean 'trials'"),
        ((SCORES,), {"alpha": "0.05"}, InputError, "alpha = '0.05': must be a number"),
        ((SCORES,), {"trials": 99.5}, InputError, "trials = 99.5: must be a whole number"),
        ((SCORES,), {"adjust": "bonferroni"}, InputError, "adjust = 'bonferroni': must be one of none, holm"),
        ((SCORES,), {"format": "tall"}, InputError, "format = 'tall'.*must be one of auto, wide, long"),
        ((SCORES,), {"ids": "name"}, InputError, "no column 'name'"),
        ((SCORES,), {"gold": [1, 0, 1, 1]}, TypeError, "gold= is for two sequences.*columns="),
        ((SCORES,), {"units": [1, 0, 1, 1]}, TypeError, "units= is for two sequences.*unit="),
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
        (PAIR, {"metrics": "mean"}, TypeError, "metrics= does not apply.*metric="),
        (PAIR, {"missing": "zero", "gold": [1, 1, 1]}, TypeError, "missing= does not apply"),
        (PAIR, {"missing": "all"}, InputError, "missing = 'all': must be one of error, pairwise, zero"),
        (([1, None, 1], [0, 0, 1]), {}, InputError, "missing='pairwise'"),
        (("new.csv", "old.csv"), {}, InputError, r"'A' is a single text \('new.csv'\).*sigdask.read\("),
        ((SCORES,), {"random_state": 1}, TypeError, "no option 'random_state'; write seed; options"),
        ((SCORES,), {"method": "holm"}, InputError, "method = 'holm': must be one of auto.*; it is a value of adjust"),
        ((SCORES,), {"adjust": "fdr_bh"}, InputError, "must be one of none.*; write 'bh'"),
        ((SCORES, "new", "old"), {}, TypeError, r"compare\(frame, pairs=\[\('new', 'old'\)\]\) for a data frame"),
        ((*PAIR, [1, 1, 1]), {}, TypeError, r"compare\(a, b, gold=references, metric='BLEU'\) for two sequences"),
        (PAIR, {"names": ["a"]}, InputError, "expected the names of two systems"),
        ((["x", "y"], ["x", "x"]), {}, InputError, "'A' holds texts such as 'x'.*gold="),
        ((["x"], ["x"]), {"gold": ["x", "y"]}, InputError, r"different numbers of items \(gold: 2, A: 1, B: 1\)"),
    ],
)
def test_mistakes_of_a_call_are_named_by_pythons_arguments(arguments, options, error, message):
    pandas = pytest.importorskip("pandas")
    if isinstance(arguments[0], dict) and "item" in arguments[0]:
        arguments = (pandas.DataFrame(arguments[0]), *arguments[1:])
    with pytest.raises(error, match=message) as raised:
        sigdask.compare(*arguments, **options)
    assert not find_options(str(raised.value))
