"""Tests of `show --figures`: which files are written, their names, and what the figures of results draw."""

import re

import numpy as np
import pytest
from click.testing import CliRunner
from command import call_sigdask

from sigdask import compare_all
from sigdask.cli import commands
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.report.comparisons import format_p_cell
from sigdask.report.plots.pairs import build_file_names


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(3)
    base = rng.normal(0, 1, 50)
    return Counts.from_scores({f"s{k}": (base + 0.1 * k + rng.normal(0, 0.4, 50)).round(3) for k in range(5)})


@pytest.fixture(scope="module")
def results(counts):
    return compare_all(counts, metrics=["mean"], trials=999, second_run=False, adjust="holm")


@pytest.fixture
def scores(tmp_path, counts):
    lines = [counts.systems, *(map(str, row) for row in counts.field("score").tolist())]
    (tmp_path / "scores.csv").write_text("\n".join(map(",".join, lines)) + "\n")
    return tmp_path / "scores.csv"


def run_command(*arguments):
    return CliRunner().invoke(commands, [*map(str, arguments)])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--figure-format", "bmp"], "bmp"),
        (["--figure-kinds", "forest,pie"], "'pie'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_anything_is_read(options, words, monkeypatch):
    monkeypatch.setattr("sigdask.cli.show.load_results", lambda *_: pytest.fail("it was read"))
    result = run_command("show", "r.json", *options)
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)


def test_a_forest_is_of_the_results(results):
    axes, p_axes = results.plot().axes
    points = {(*point,) for line in axes.lines[1:] for point in line.get_xydata().tolist()}
    by_difference = sorted(results, key=lambda r: -r.difference)
    assert points == {(r.difference, row) for row, r in enumerate(by_difference)}
    [bars] = [artist for artist in axes.collections if artist.get_gid() == "intervals"]
    ends = [(r.interval.low, r.interval.high) for r in by_difference]
    assert [(a[0], b[0]) for a, b in bars.get_segments()] == ends
    assert "95 % intervals" in axes.get_xlabel()
    assert "right: adjusted p" in axes.get_xlabel()
    texts = [label.get_text() for label in p_axes.get_yticklabels()]
    assert texts == [format_p_cell(r.p_adjusted, 0.05, is_bound=r.is_adjusted_bound) for r in by_difference]


def test_a_matrix_and_bars_are_of_the_verdicts(results):
    ranking = results.rankings()[0]
    names = [system.system for system in ranking.systems]
    [axes] = results.plot("matrix").axes
    level = axes.images[0].get_array()
    for r in results:
        shade = level[names.index(r.a), names.index(r.b)]
        assert (abs(shade) >= 2) == (r.verdict == "significant")
        assert abs(shade) < 2 or (shade > 0) == (r.better() == r.a)
    assert all((x == -y) or (x, y) == (1, 1) for x, y in zip(level.ravel(), level.T.ravel(), strict=True))
    [axes] = results.plot("cd").axes
    bars = {line.get_gid() for line in axes.lines if line.get_gid()}
    shared = [letter for s in ranking.systems for letter in s.letters]
    assert bars == {f"group-{letter}" for letter in shared if shared.count(letter) > 1}
    assert [t.get_text() for t in axes.texts][: len(names)] == [f"{s.system}  {s.score:.4f}" for s in ranking.systems]


@pytest.mark.slow
def test_of_several_metrics_one_is_to_be_named(counts):
    tags = Counts.from_labels(list("ABAB" * 5), {"x": list("ABBB" * 5), "y": list("AAAB" * 5), "z": list("BBAB" * 5)})
    tag_results = compare_all(tags, metrics=["accuracy", "macro-f1"], trials=99, second_run=False)
    with pytest.raises(InputError, match="choose which.*'accuracy', 'macro-f1'"):
        tag_results.plot()
    with pytest.raises(InputError, match="no comparison fits .*'BLEU'"):
        tag_results.plot(metric="BLEU")
    assert tag_results.plot(metric="accuracy").axes[0].get_title(loc="left") == "accuracy"


def test_pairs_with_a_baseline_have_no_matrix(counts):
    baseline_results = compare_all(counts, metrics=["mean"], baseline="s0", trials=99, second_run=False)
    with pytest.raises(InputError, match="needs all pairs of three or more systems"):
        baseline_results.plot("matrix")


def test_names_of_files_are_safe_stable_and_different():
    parts = [("news", "F1"), ("../../etc", "F1"), ("NEWS", "f1"), ("x" * 300, "é"), ("x" * 301, "é")]
    names = build_file_names([("forest", *both) for both in parts])
    assert names[1].startswith("forest-.._.._etc-F1-")
    assert len({name.lower() for name in names}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_.+=@-]{1,200}", name) for name in names)
    assert build_file_names([("forest", "news", "F1")]) == ["forest-news-F1"]


@pytest.mark.slow
def test_kinds_of_figures_are_chosen(scores, tmp_path):
    options = ("--figure-kinds", "forest,cd")
    assert call_sigdask("compare", scores, "--trials", 99, "-q", "-o", "r.json", cwd=tmp_path).returncode == 0
    result = call_sigdask("show", "r.json", "--figures", "figs", "--figure-format", "png,svg", *options, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    names = {"forest-mean.png", "forest-mean.svg", "critical-difference-mean.png", "critical-difference-mean.svg"}
    assert {path.name for path in (tmp_path / "figs").iterdir()} == names
