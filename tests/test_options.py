"""Tests that options are declared once for Python, the command line and plans."""

import inspect
import re
import subprocess
import sys
from dataclasses import fields

import pytest

from sigdask import api
from sigdask.cli.declared.compare import compare as command
from sigdask.errors import InputError
from sigdask.formats.frames import as_counts
from sigdask.formats.reading.options import Options
from sigdask.nightly.plan import keys
from sigdask.options import MAX_STREAM_TRIALS, OPTIONS, READING_OPTIONS, SelectionOptions, fill_options, suggest_choice
from sigdask.statistics.bounds import MAX_TRIALS

PYTHON_ONLY = {"beside", "progress", "blocks_per_task"}
COMMAND_LINE_NAMES = {"second_run": "no_second_run", "cache": "no_cache"}


def test_every_option_is_on_the_command_line_with_its_help_and_default():
    flags = {parameter.name: parameter for parameter in command.params}
    for name, option in {**OPTIONS, **READING_OPTIONS}.items():
        if name in {*PYTHON_ONLY, "stop", "grouping"}:
            continue
        flag = flags[COMMAND_LINE_NAMES.get(name, name)]
        if name not in COMMAND_LINE_NAMES:
            assert flag.help.startswith(option.help)
            assert tuple(getattr(flag.type, "choices", ())) == option.choices


def test_keys_of_plans_say_what_options_say():
    fields_by_key = {f.name: f for kind in (keys.PlanKeys, keys.TestSetKeys) for f in fields(kind)}
    for name, option in {**OPTIONS, **READING_OPTIONS}.items():
        if name not in {*keys.ELSEWHERE, *keys.PYTHON_ONLY}:
            assert option.help in fields_by_key[keys.get_key(name)].type.__metadata__[-1].description
    assert next(f for f in fields(keys.PlanKeys) if f.name == "alpha").default == OPTIONS["alpha"].default


DECLARES_AN_OPTION = """
import sys
from importlib.util import find_spec, module_from_spec

spec = find_spec("sigdask.options")
source = spec.loader.get_source("sigdask.options")
declaration = 'patience: Annotated[int, Option("How long to wait.", 7, least=2, metavar="DAYS")]'
at = source.index("    exact_limit: Annotated[")
module = sys.modules["sigdask.options"] = module_from_spec(spec)
exec(compile(f"{source[:at]}    {declaration}\\n{source[at:]}", "options", "exec"), module.__dict__)

from sigdask.cli import commands
from sigdask.errors import InputError
from sigdask.nightly.plan import build_schema, load_plan

commands.main(["compare", "--help-all"], standalone_mode=False)
print(build_schema()["properties"]["patience"])
print(load_plan("plan.toml").test_sets[0].patience)
for wrong in (lambda: load_plan("wrong.toml"), lambda: sigdask.compare([1, 2], [0, 0], patience=1)):
    try:
        wrong()
    except InputError as error:
        print(error)
print(sigdask.compare([1, 2], [0, 0], patience=3))
"""


def test_an_option_is_declared_once_for_the_command_line_python_and_plans(tmp_path):
    (tmp_path / "scores.csv").write_text("item,a,b\nx,1,2\n")
    for name, days in (("plan", 9), ("wrong", 1)):
        (tmp_path / f"{name}.toml").write_text(
            f'patience = {days}\n[[test_set]]\nname = "one"\nsystems = "scores.csv"\n'
        )
    script = "import sigdask\n" + DECLARES_AN_OPTION
    text = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert re.search(r"--patience DAYS +How long to wait.  \[default: 7\]", text)
    assert (
        "{'default': 7, 'description': 'How long to wait.', 'minimum': 2, 'title': 'Patience', 'type': 'integer'}"
        in text
    )
    assert "\n9\nwrong.toml, line 1: patience: found 1, expected at least 2\n" in text
    assert "\npatience = 1: must be at least 2\nResult(A - B" in text


def test_defaults_of_reading_are_those_declared():
    assert {name: option.default for name, option in READING_OPTIONS.items()} == {
        name: getattr(Options(), name) or option.default for name, option in READING_OPTIONS.items()
    }


def test_trials_go_as_far_as_the_stream():
    assert MAX_STREAM_TRIALS == MAX_TRIALS


def test_what_is_not_given_is_the_default_and_what_is_wrong_is_refused():
    assert fill_options(SelectionOptions, {})["alpha"] == 0.05
    with pytest.raises(TypeError, match="no option 'alhpa'; did you mean 'alpha'.*Options: alternative"):
        fill_options(SelectionOptions, {"alhpa": 0.1})
    with pytest.raises(InputError, match="adjust = 'bonferroni': must be one of none, holm"):
        fill_options(SelectionOptions, {"adjust": "bonferroni"})


def test_holm_is_called_never_less_powerful_than_bonferroni_alone():
    """At alpha 0.05, the smallest of two p, 0.0252, is found by Sidak's test and not by Holm's, at 0.025."""
    adjustments = OPTIONS["adjust"].choices
    assert suggest_choice("bonferroni", adjustments) == "; write 'holm', which is never less powerful"
    assert suggest_choice("sidak", adjustments) == "; write 'holm'"


def test_no_public_function_takes_untyped_options():
    for function in (api.compare, api.compare_all, api.compare_sets, api.power):
        options = [p for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_KEYWORD]
        assert [p.annotation.startswith("Unpack[") for p in options] == [True]


def test_one_metric_needs_no_list_and_none_takes_those_that_the_data_suggest():
    counts = as_counts({"a": [1, 2, 3, 4], "b": [1, 1, 1, 1]})
    results = [api.compare_all(counts, **options)[0] for options in ({}, {"metrics": "mean"}, {"metrics": ["mean"]})]
    assert [(r.metric, r.p_value) for r in results] == [("mean", results[0].p_value)] * 3


def test_a_level_out_of_bounds_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(InputError, match="alpha = 5.0: must lie between 0 and 1"):
        command.main(["nowhere.csv", "--alpha", "5"], standalone_mode=False)
