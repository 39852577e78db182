"""Tests of figures: they draw the numbers that they are given, and names as they are written."""

import sys
import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import sigdask
from sigdask.errors import InputError, UnfinishedError
from sigdask.report import plots
from sigdask.report.plots.canvas import shorten_names
from sigdask.report.plots.curves import NBestCurve

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


def build_matrix(values, n):
    """Return an antisymmetric matrix from the values of the pairs above the diagonal."""
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = values
    return matrix - matrix.T


def iter_figures(names):
    """Yield a figure of each kind for systems with these names."""
    n = len(names)
    values = np.linspace(1, 0, n)
    p = np.abs(build_matrix(0.01, n)) + np.where(np.eye(n), np.nan, 0)
    decisions = np.full(n, 1, np.int8)
    yield plots.forest([(name, names[0]) for name in names], values, values - 1, values + 1, decisions)
    yield plots.matrix(names, p, build_matrix(1, n).astype(np.int8), p < 0.05, 0.05)
    yield plots.critical_difference(names, values, [[0, 1], [*range(1, n)]])
    yield plots.achieved_significance({key: [0.5, 0.1, 0.01] for key in names}, 0.05)
    yield plots.n_best_curves({name: NBestCurve(np.arange(1, 4), *np.full((3, 3), 0.5)) for name in names})
    yield plots.nights(["1", "2"], dict.fromkeys(names, np.array([0.5, 0.6])), {}, 0.05)


def test_a_forest_has_its_differences_and_intervals():
    difference, low, high = np.array([[0.2, -0.1, 0.05], [0.1, -np.inf, np.nan], [0.3, 0.1, np.nan]])
    pairs = [("A", "B"), ("A", "C"), ("B", "C")]
    decision = np.array([1, 0, -1], np.int8)
    figure = plots.forest(pairs, difference, low, high, decision, beside=["p = 0.01", "p = 0.3", "p = 0.05"])
    axes, p_axes = figure.axes
    marks = {(*point,): line.get_markerfacecolor() for line in axes.lines[1:] for point in line.get_xydata()}
    assert set(marks) == {(0.2, 0.0), (-0.1, 1.0), (0.05, 2.0)}
    assert marks[-0.1, 1.0] == marks[0.05, 2.0] == "white" != marks[0.2, 0.0]
    [bars] = [artist for artist in axes.collections if artist.get_gid() == "intervals"]
    (first, second) = bars.get_segments()
    assert first.tolist() == [[0.1, 0], [0.3, 0]]
    assert second.tolist() == [[axes.get_xlim()[0], 1], [0.1, 1]]  # without a bound it goes to the edge
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A − B", "A − C", "B − C"]
    assert [label.get_text() for label in p_axes.get_yticklabels()] == ["p = 0.01", "p = 0.3", "p = 0.05"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first on top


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_a_null_distribution_has_its_counts_and_the_observed_difference(alternative):
    edges, counts = np.linspace(-0.4, 0.4, 9), np.array([1, 5, 20, 40, 41, 19, 6, 2])
    figure = plots.null_distribution(edges, counts, -0.25, alternative=alternative, beside="observed: p = 0.07")
    [axes] = figure.axes
    [stairs] = [patch for patch in axes.patches if hasattr(patch, "get_data")]
    assert stairs.get_data().values.tolist() == counts.tolist()
    assert stairs.get_data().edges.tolist() == edges.tolist()
    lines = [line.get_xdata()[0] for line in axes.lines if line.get_color() == "#0072B2"]
    assert lines == ([-0.25, 0.25] if alternative == "two-sided" else [-0.25])
    spans = [patch.get_x() for patch in axes.patches if not hasattr(patch, "get_data")]
    assert len(spans) == (2 if alternative == "two-sided" else 1)
    assert "observed: p = 0.07" in list_texts(figure)


def test_sorted_units_have_their_contributions_and_the_system_of_each_side():
    values = np.array([0.5, 0.25, 0.0, -1.0])
    figure = plots.unit_differences(np.array([0, 1, 5, 7]), values, 9, [("new", 5), ("old", 2)])
    above, below = figure.axes[0].patches
    assert above.get_data().values.tolist() == [0.5, 0.25, 0, 0]
    assert below.get_data().values.tolist() == [0, 0, 0, -1]
    assert above.get_data().edges.tolist() == [0, 1, 5, 7, 9]
    assert [text.get_text() for text in figure.legends[0].texts] == ["towards new: 5 of 9", "towards old: 2 of 9"]


@pytest.mark.parametrize("n", [5, 40])
@pytest.mark.parametrize("higher_is_better", [True, False])
@pytest.mark.slow
def test_a_critical_difference_diagram_joins_the_systems_of_each_group(n, higher_is_better):
    scores = np.linspace(0.9, 0.1, n) if higher_is_better else np.linspace(0.1, 0.9, n)
    groups = [[0, 1, 3], [2, 3, 4], [1], [3, 4]]
    names = [f"s{k}" for k in range(n)]
    figure = plots.critical_difference(names, scores, groups, higher_is_better=higher_is_better, score="F1")
    axes = figure.axes[-1]
    along = (lambda members: scores[members]) if n == 5 else np.array
    bars = {line.get_gid(): line.get_xydata()[:, int(n > 5)] for line in axes.lines if line.get_gid()}
    assert [*bars] == ["group-a", "group-b", "group-d"]
    assert bars["group-a"].tolist() == [*along([0]), *along([3])]
    dots = [line.get_xydata()[:, int(n > 5)].tolist() for line in axes.lines if line.get_marker() == "o"]
    assert [*along([0, 1, 3])] in dots  # not the one that the bar passes over
    assert {"a", "b", "d"} <= set(list_texts(figure))
    low, high = figure.axes[0].get_xlim()
    assert (low < high) == higher_is_better  # better to the right


def test_nights_have_scores_and_p_with_gaps_where_there_was_none():
    scores = {"A": np.array([0.5, np.nan, 0.7]), "B": np.array([0.4, 0.4, 0.4])}
    figure = plots.nights(["1", "2", "3"], scores, {"A and B": np.array([0.04, np.nan, 1e-9])}, 0.05)
    above, below = figure.axes
    np.testing.assert_array_equal(above.lines[0].get_ydata(), [0.5, np.nan, 0.7])
    np.testing.assert_array_equal(below.lines[0].get_ydata(), [0.04, np.nan, 1e-4])  # smaller ones stand at the end
    assert [label.get_text() for label in below.get_xticklabels()] == ["1", "2", "3"]


@pytest.mark.slow
def test_names_are_drawn_as_they_are_written():
    shown_names = shorten_names(HOSTILE_NAMES)
    assert len({*shown_names}) == len(HOSTILE_NAMES)
    for figure in iter_figures(HOSTILE_NAMES):
        text = "\n".join(list_texts(figure))
        for name in shown_names[:6]:
            assert name in text or name[:26] in text, name
    assert plots.rendered(figure, "pdf").startswith(b"%PDF")
    assert plots.rendered(figure, "png").startswith(b"\x89PNG")


@pytest.mark.slow
def test_one_and_none_are_drawn_too():
    nothing = np.zeros(0)
    for figure in (
        plots.forest([], nothing, nothing, nothing, nothing.astype(np.int8)),
        plots.matrix([], np.zeros((0, 0)), np.zeros((0, 0), np.int8), np.zeros((0, 0), bool), 0.05),
        plots.critical_difference([], nothing, []),
        plots.critical_difference(["only"], np.ones(1), [[0]]),
        plots.critical_difference(["a", "b"], np.ones(2), [[0, 1]]),
        plots.null_distribution(nothing, nothing.astype(int), 0.0),
        plots.achieved_significance({}, 0.05),
        plots.achieved_significance({"m": [np.nan]}, 0.05),
        plots.n_best_curves({}),
        plots.n_best_curves({"m": NBestCurve(np.array([5]), *np.full((3, 1), np.nan))}),
        plots.nights([], {}, {}, 0.05),
    ):
        assert plots.rendered(figure, "svg").startswith(b"<?xml")


@pytest.mark.slow
def test_the_same_figure_has_the_same_bytes_whatever_the_users_settings_are():
    import matplotlib as mpl

    def render_forest(format_):
        figure = plots.forest([("A", "B")], *np.array([[0.2], [0.1], [0.3]]), np.ones(1, np.int8))
        return plots.rendered(figure, format_)

    first_bytes = {format_: render_forest(format_) for format_ in plots.FORMATS}
    with mpl.rc_context({"font.size": 20, "lines.linewidth": 5, "axes.facecolor": "red", "svg.hashsalt": None}):
        second_bytes = {format_: render_forest(format_) for format_ in plots.FORMATS}
        assert mpl.rcParams["font.size"] == 20
    assert first_bytes == second_bytes
    assert b"20" + b"26-" not in first_bytes["svg"]  # no date
    assert b"/FontFile2" in first_bytes["pdf"]  # TrueType, embedded


def test_what_cannot_be_written_is_said(tmp_path):
    figure = plots.critical_difference(["A"], np.ones(1), [])
    with pytest.raises(InputError, match="expected svg, pdf, png"):
        plots.save(figure, tmp_path / "cd.bmp")
    with pytest.raises(UnfinishedError, match=r"nowhere/cd\.svg: cannot be written"):
        plots.save(figure, tmp_path / "nowhere" / "cd.svg")


def test_without_matplotlib_it_is_said_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'sigdask\[report\]'"):
        plots.critical_difference(["A"], np.ones(1), [])


@pytest.mark.slow
@pytest.mark.parametrize("width", ["3.3in", "84mm"])
@pytest.mark.parametrize("kind", ["forest", "matrix", "critical_difference"])
def test_long_names_leave_a_figure_of_one_column_its_axes_and_no_text_is_cut(kind, width):
    rng = np.random.default_rng(1)
    base = rng.normal(0, 1, 60)
    systems = {f"a-long-family-name-{k:02}-instruct-v{k}": base + 0.1 * k + rng.normal(0, 0.5, 60) for k in range(12)}
    results = sigdask.compare_all(systems, metrics=["mean"], trials=999, second_run=False)
    figure = getattr(results, f"plot_{kind}")(figure_width=width)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns where no layout fits
        figure.draw_without_rendering()
    assert all(axes.bbox.width > 0.2 * figure.bbox.width for axes in figure.axes)
    drawn, page = figure.get_tightbbox(), figure.bbox_inches
    assert drawn.x0 >= page.x0 - 0.01
    assert drawn.x1 <= page.x1 + 0.01
