"""Tests that errors name options as the user's interface does: command line, Python, plan."""

import inspect
import tomllib

import numpy as np
import pytest
from command import call_sigdask

import sigdask
from sigdask.cli.compare import command
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.interface import spell, spell_map, use_interface
from sigdask.options import (
    OPTIONS,
    READING_OPTIONS,
    ComparisonOptions,
    IndependenceOptions,
    MetaOptions,
    PowerOptions,
    RankingOptions,
    SelectionOptions,
    list_options,
)

TABLES = {
    "gap": ("wide", "item,a,b\nq1,1,0\nq2,,1\n"),
    "no_id": ("long", "system,score\na,1\nb,2\na,1\n"),
    "capitals": ("long", "system,item,AP,X\na,1,1,1\nb,1,2,3\n"),
    "same_id": ("wide", "item,a,b\nq1,1,0\nq1,1,1\nq2,0,1\n"),
    "no_column": ("wide", "item,a,b\nq1,1,0\n"),
}


@pytest.mark.parametrize(
    ("name", "on_command_line", "in_python", "in_plan"),
    [
        ("gap", "--missing pairwise ", "missing='pairwise' ", 'missing = "pairwise" '),
        ("no_id", "--align position", "align='position'", 'align = "position"'),
        ("capitals", "--columns score=AP+X", "columns={'score': 'AP+X'}", 'columns = {score = "AP+X"}'),
        (
            "same_id",
            "--columns item=item+COLUMN.",
            "columns={'item': 'item+COLUMN'}.",
            'columns = {item = "item+COLUMN"}.',
        ),
        ("no_column", "--groups FILE", "group_file=FILE", "groups = FILE"),
    ],
)
def test_an_option_is_named_as_each_front_end_writes_it(name, on_command_line, in_python, in_plan, tmp_path):
    format_, text = TABLES[name]
    (tmp_path / "t.csv").write_text(text)
    unit = {"unit": "topic"} if name == "no_column" else {}
    words = [word for key, value in unit.items() for word in (f"--{key}", value)]
    assert on_command_line in call_sigdask("compare", "t.csv", "--format", format_, *words, cwd=tmp_path).stderr
    with pytest.raises(InputError) as error:
        sigdask.read(tmp_path / "t.csv", format=format_, groups=tuple(unit.values()))
    assert in_python in str(error.value)
    lines = [
        f'{key} = "{value}"' for key, value in {"name": "t", "systems": "t.csv", "format": format_, **unit}.items()
    ]
    (tmp_path / "plan.toml").write_text("\n".join(["[[test_set]]", *lines]))
    with pytest.raises(InputError) as error:
        sigdask.load_plan(tmp_path / "plan.toml").test_sets[0].read()
    assert in_plan in str(error.value)


def test_a_remedy_can_be_pasted_into_a_plan_also_if_names_are_in_capitals_or_have_quotes():
    with use_interface("plan"):
        lines = [
            spell("metrics", "MAE"),
            spell("ignore", "ID"),
            spell("columns", "item=ID"),
            spell_map({"NAME": 'p"r'}),
        ]
    keys = tomllib.loads("\n".join(lines))
    assert keys == {"metrics": ["MAE"], "ignore": ["ID"], "columns": {"item": "ID"}, "map": {'p"r': ["NAME"]}}


def test_an_error_carries_file_line_found_expected_and_remedy(tmp_path):
    (path := tmp_path / "t.csv").write_text("1,2,3\n4,5,6\n")
    with pytest.raises(InputError) as error:
        sigdask.read(path, format="wide")
    parts = error.value
    assert (parts.file, parts.line, parts.found) == (path, 1, "data")
    assert (parts.expected, parts.remedy) == ("a header", "add the names of the columns")


SCORES = {"item": ["q1", "q2", "q3", "q4"], "document": [*"xxyy"], "a": [1.0, 0, 1, 1], "b": [0.0, 0, 1, 0]}
PAIR = ([1, 0, 1], [0, 0, 1])
COUNTS = Counts.from_scores({"a": [1, 2], "b": [2, 1]})


def test_gaps_of_two_sequences_are_left_out_as_those_of_a_mapping():
    a, b = [1, None, 3, 5], [0, 2, 1, 2]
    assert sigdask.compare(a, b, missing="pairwise").difference == (1 + 2 + 3) / 3
    assert sigdask.compare(a, b, missing="zero").difference == (1 - 2 + 2 + 3) / 4


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("new", "old"), "2 comparisons; add one of 'BLEU', 'chrF'"),
        (("new", "old", "TER"), "0 comparisons; add one of 'BLEU', 'chrF'"),
        (("now", "old"), "no system 'now'; did you mean 'new'"),
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
    assert results["new", "old", "chrF"] == results["old", "new", "chrF"] == results[1]
    with pytest.raises(InputError, match=message):
        results[names]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((SCORES,), {"pairs": ("a", "b")}, InputError, "pairs: 'a'"),
        ((SCORES,), {"metrics": "acc"}, InputError, "'acc'"),
        ((SCORES,), {"trails": 100}, TypeError, "trails.*'trials'"),
        ((SCORES,), {"alpha": "0.05"}, InputError, "alpha"),
        ((SCORES,), {"trials": 99.5}, InputError, "trials"),
        ((SCORES,), {"trials": 2**48 + 1}, InputError, r"the stream has 2\*\*48"),
        ((SCORES,), {"seed": -1}, InputError, "seed = -1"),
        ((SCORES,), {"method": "magic"}, InputError, "method = 'magic'"),
        ((SCORES,), {"unit": "paragraph"}, InputError, "no column 'paragraph'.*document"),
        ((SCORES,), {"unit": ["document"]}, InputError, r"unit = \['document'\]: must be one name"),
        ((SCORES,), {"baseline": "z"}, InputError, "no system 'z'"),
        ((SCORES,), {"cluster": "nowhere"}, InputError, "expected auto, none"),
        ((SCORES,), {"cluster": "local", "workers": 0}, InputError, "workers = 0"),
        ((SCORES,), {"metrics": []}, InputError, "no metric"),
        ((SCORES,), {"format": "tall"}, InputError, "format.*auto, wide, long"),
        ((SCORES,), {"columns": {"item": "name"}}, InputError, "no column 'name'"),
        ((SCORES,), {"columns": {"ids": "item"}}, InputError, "columns.*'ids'"),
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


@pytest.mark.parametrize("gold", ["gold.txt", [1, 0], np.array([1, 0])])
def test_read_names_an_option_for_files_with_data_in_memory(gold):
    with pytest.raises(TypeError, match="gold= is for files"):
        sigdask.read({"a": [1, 0], "b": [0, 0]}, gold=gold)


@pytest.mark.parametrize("given", [{}, {"news": SCORES}, "news.csv"])
def test_compare_sets_tells_how_test_sets_are_given(given):
    with pytest.raises(InputError, match="no list of test sets; give .sigdask.read.*compare_all"):
        sigdask.compare_sets(given)


PYTHON_ONLY = {"progress"}
COMMAND_LINE_NAMES = {"second_run": "no_second_run", "cache": "no_cache"}


def test_every_option_is_on_the_command_line_with_its_choices():
    flags = {parameter.name: parameter for parameter in command.params}
    for name, option in {**OPTIONS, **READING_OPTIONS}.items():
        if name in PYTHON_ONLY:
            continue
        flag = flags[COMMAND_LINE_NAMES.get(name, name)]
        if name not in COMMAND_LINE_NAMES:
            assert tuple(getattr(flag.type, "choices", ())) == option.choices


@pytest.mark.parametrize(
    ("name", "declaration", "left_out"),
    [
        ("compare_all", SelectionOptions, set()),
        ("compare_sets", SelectionOptions, set()),
        ("compare", ComparisonOptions, set()),
        ("power", PowerOptions, set()),
        ("independence", IndependenceOptions, {"adjust"}),
        ("meta", MetaOptions, set()),
        ("rankings", RankingOptions, set()),
    ],
)
def test_functions_show_every_option_with_its_default(name, declaration, left_out):
    parameters = inspect.signature(getattr(sigdask, name)).parameters
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    declared = {key: option for key, option in list_options(declaration).items() if key not in left_out}
    assert {key: parameters[key].default for key in declared} == {key: o.default for key, o in declared.items()}
