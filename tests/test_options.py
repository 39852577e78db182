"""Tests that options are declared once for Python, the command line and plans."""

import pytest

from sigdask import api
from sigdask.cli.declared.analyses import compare as command
from sigdask.errors import InputError
from sigdask.formats.frames import as_counts
from sigdask.options import MAX_STREAM_TRIALS, OPTIONS, READING_OPTIONS, SelectionOptions, fill_options
from sigdask.statistics.bounds import MAX_TRIALS

PYTHON_ONLY = {"beside", "progress", "blocks_per_task"}
COMMAND_LINE_NAMES = {"second_run": "no_second_run", "cache": "no_cache"}


def test_every_option_is_on_the_command_line_with_its_help_and_default():
    flags = {parameter.name: parameter for parameter in command.params}
    for name, option in {**OPTIONS, **READING_OPTIONS}.items():
        if name in PYTHON_ONLY:
            continue
        flag = flags[COMMAND_LINE_NAMES.get(name, name)]
        if name not in COMMAND_LINE_NAMES:
            assert flag.help.startswith(option.help)
            assert tuple(getattr(flag.type, "choices", ())) == option.choices


def test_trials_go_as_far_as_the_stream():
    assert MAX_STREAM_TRIALS == MAX_TRIALS


def test_what_is_not_given_is_the_default_and_what_is_wrong_is_refused():
    assert fill_options(SelectionOptions, {})["alpha"] == 0.05
    with pytest.raises(TypeError, match="no option 'alhpa'; did you mean 'alpha'.*Options: alternative"):
        fill_options(SelectionOptions, {"alhpa": 0.1})
    with pytest.raises(InputError, match="adjust = 'bonferroni': must be one of none, holm"):
        fill_options(SelectionOptions, {"adjust": "bonferroni"})


def test_one_metric_needs_no_list_and_none_takes_those_that_the_data_suggest():
    counts = as_counts({"a": [1, 2, 3, 4], "b": [1, 1, 1, 1]})
    results = [api.compare_all(counts, **options)[0] for options in ({}, {"metrics": "mean"}, {"metrics": ["mean"]})]
    assert [(r.metric, r.p_value) for r in results] == [("mean", results[0].p_value)] * 3


def test_a_level_out_of_bounds_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(InputError, match="alpha = 5.0: must lie between 0 and 1"):
        command.main(["nowhere.csv", "--alpha", "5"], standalone_mode=False)
