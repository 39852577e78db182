"""Tests that options are declared once for Python, the command line and plans."""

import inspect

import pytest

import sigdask
from sigdask.cli.declared.compare import compare as command
from sigdask.errors import InputError
from sigdask.options import (
    OPTIONS,
    READING_OPTIONS,
    ComparisonOptions,
    IndependenceOptions,
    PowerOptions,
    RankingOptions,
    SelectionOptions,
    fill_options,
    list_options,
)

PYTHON_ONLY = {"beside", "progress", "blocks_per_task"}
COMMAND_LINE_NAMES = {"second_run": "no_second_run", "cache": "no_cache"}


def test_every_option_is_on_the_command_line_with_its_choices():
    flags = {parameter.name: parameter for parameter in command.params}
    for name, option in {**OPTIONS, **READING_OPTIONS}.items():
        if name in PYTHON_ONLY:
            continue
        flag = flags[COMMAND_LINE_NAMES.get(name, name)]
        if name not in COMMAND_LINE_NAMES:
            assert tuple(getattr(flag.type, "choices", ())) == option.choices


def test_what_is_not_given_is_the_default_and_what_is_wrong_is_refused():
    assert fill_options(SelectionOptions, {})["alpha"] == 0.05
    with pytest.raises(TypeError, match="alhpa.*'alpha'"):
        fill_options(SelectionOptions, {"alhpa": 0.1})
    with pytest.raises(InputError, match="adjust = 'bonferroni'.*holm"):
        fill_options(SelectionOptions, {"adjust": "bonferroni"})


@pytest.mark.parametrize(
    ("name", "declaration", "left_out"),
    [
        ("compare_all", SelectionOptions, {"stop"}),
        ("compare_sets", SelectionOptions, {"stop"}),
        ("compare", ComparisonOptions, {"stop", "adjust"}),
        ("power", PowerOptions, set()),
        ("independence", IndependenceOptions, {"adjust"}),
        ("rankings", RankingOptions, set()),
    ],
)
def test_functions_show_every_option_with_its_default(name, declaration, left_out):
    parameters = inspect.signature(getattr(sigdask, name)).parameters
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    declared = {key: option for key, option in list_options(declaration).items() if key not in left_out}
    assert {key: parameters[key].default for key in declared} == {key: o.default for key, o in declared.items()}
