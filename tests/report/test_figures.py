"""Tests of figures: they draw the numbers of results, and names as they are written."""

import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from builders import build_rng

import sigdask
from sigdask.counts import Counts
from sigdask.errors import InputError, UnfinishedError
from sigdask.report import plots
from sigdask.report.plots import shorten_names

HOSTILE_NAMES = [
    "cost $5 and $6",
    "_under_score^2",
    "back\\slash{x}",
    "<b>&amp;",
    "naïve – 日本",
    "tab\tand\x1bcontrol",
    "x" * 300,
]
"""Names that a typesetter, XML or a terminal would take for commands."""


def list_texts(figure):
    root = ET.fromstring(plots.rendered(figure, "svg"))
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


def compare_named(names=("A", "B", "C"), **options):
    scores = {name: build_rng(k).normal(k / 2, 1, 40).round(2) for k, name in enumerate(names)}
    return sigdask.compare_all(
        Counts.from_scores(scores), metrics=["mean"], **{"trials": 99, "resamples": 99} | options
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_a_critical_difference_diagram_joins_the_systems_of_each_group(sign):
    results = compare_named("ABCDE", adjust="none")
    results = replace(results, table=results.table.replace(higher_is_better=np.full(10, sign > 0)))
    [axes], [ranking] = results.plot("cd").axes, results.rankings()
    scores = {system.system: system.score for system in ranking.systems}
    letters = {letter for system in ranking.systems for letter in system.letters}
    groups = {k: [s.system for s in ranking.systems if k in s.letters] for k in letters}
    bars = {line.get_gid(): line.get_xdata().tolist() for line in axes.lines if line.get_gid()}
    assert bars == {f"group-{k}": [scores[g[0]], scores[g[-1]]] for k, g in groups.items() if len(g) > 1}
    low, high = axes.get_xlim()
    assert (low < high) == (sign > 0)  # better to the right


@pytest.mark.slow
def test_a_figure_of_a_one_sided_test_calls_no_systems_not_different():
    legends = [{*list_texts(compare_named(alternative=side).plot("forest"))} for side in ("two-sided", "greater")]
    assert "significantly different" in legends[0]
    assert "not significant" in legends[1]
    assert not any("different" in text for text in legends[1])


def test_names_are_drawn_as_they_are_written():
    results = compare_named(HOSTILE_NAMES)
    shown_names = shorten_names(HOSTILE_NAMES)
    assert len({*shown_names}) == len(HOSTILE_NAMES)
    for figure in (results.plot(), results.plot("matrix"), results.plot("cd")):
        text = "\n".join(list_texts(figure))
        for name in shown_names[:6]:
            assert name in text or name[:12] in text, name
    assert plots.rendered(figure, "pdf").startswith(b"%PDF")
    assert plots.rendered(figure, "png").startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_same_figure_has_the_same_bytes_whatever_the_users_settings_are():
    import matplotlib as mpl

    results = compare_named("AB")
    first_bytes = {format_: plots.rendered(results.plot(), format_) for format_ in plots.FORMATS}
    with mpl.rc_context({"font.size": 20, "lines.linewidth": 5, "axes.facecolor": "red", "svg.hashsalt": None}):
        second_bytes = {format_: plots.rendered(results.plot(), format_) for format_ in plots.FORMATS}
        assert mpl.rcParams["font.size"] == 20
    assert first_bytes == second_bytes
    assert b"20" + b"26-" not in first_bytes["svg"]  # no date
    assert b"/FontFile2" in first_bytes["pdf"]  # TrueType, embedded


def test_what_cannot_be_written_is_said(tmp_path):
    figure = compare_named().plot("matrix")
    with pytest.raises(InputError, match="expected svg, pdf, png"):
        plots.save(figure, tmp_path / "cd.bmp")
    with pytest.raises(UnfinishedError, match=r"nowhere/cd\.svg: cannot be written"):
        plots.save(figure, tmp_path / "nowhere" / "cd.svg")


def test_without_matplotlib_it_is_said_how_to_install_it(monkeypatch):
    results = compare_named()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'matplotlib'"):
        results.plot("matrix")
