"""Tests of results in notebooks and rich: the headline, a short table, and names as plain text."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from command import call_sigdask
from paper_tables import HOSTILE_NAMES, ParsedPage, compare_random
from rich.console import Console

import sigdask
from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.report.sentences import build_verdict as verdict_of


def print_to_text(renderable, width=200):
    out = io.StringIO()
    Console(file=out, width=width).print(renderable)
    return out.getvalue()


def test_a_notebook_shows_the_headline_first_and_a_short_table():
    results = compare_random([f"s{k}" for k in range(15)], adjust="none")
    page = ParsedPage(results._repr_html_())
    assert verdict_of(results).sentences[0] in page.texts[0]
    [ranking] = results.rankings()
    names = [cell for cell in page.cells if re.match(r"s\d+$", cell)]
    assert names[: len(ranking.systems)] == [ranked.system for ranked in ranking.systems]


def test_many_test_sets_and_metrics_are_counted_as_combinations():
    labels = {name: ["x", "y", "x", "y"] for name in "abc"}
    sets = [sigdask.Counts.from_labels(["x", "y", "y", "y"], labels, name=name) for name in ("n", "s", "t", "w")]
    results = sigdask.compare_sets(sets, metrics=["accuracy", "macro-f1"], interval="none", adjust="none")
    assert verdict_of(results).sentences[0] == "0 of 24 comparisons over 8 combinations are significant."


@pytest.mark.parametrize("names", [HOSTILE_NAMES, HOSTILE_NAMES[:2]])
def test_hostile_names_are_text_wherever_they_are_shown(names):
    results = compare_random(names, adjust="none")
    plain = {name.replace("\x1b", "\N{REPLACEMENT CHARACTER}") for name in names}
    page = ParsedPage(results._repr_html_())
    assert {*page.tags} <= {"div", "p", "strong", "em", "small", "sup", "table", "thead", "tbody", "tr", "th", "td"}
    assert any(name in cell for cell in page.cells for name in plain)  # of two systems the legend has the names
    text = print_to_text(results)
    assert "\x1b" not in text
    assert sum(name in text for name in plain) >= min(len(names), 10)


def test_no_results_are_shown_as_that():
    results = compare_random("abc")
    no_results = replace(results, table=results.table.take(slice(0)))
    assert "Nothing was compared." in no_results._repr_html_()
    assert "Nothing was compared." in print_to_text(no_results)
    assert r"\begin{tabular}" in no_results.to_latex()
    assert no_results.to_markdown().startswith("**0 comparisons")


@pytest.mark.parametrize("ending", [".json", ".csv", ".md", ".tex", ".bib"])
def test_python_writes_the_files_of_the_command_line(ending, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"q{k},{k % 5},{k % 3}" for k in range(40)]
    Path("scores.csv").write_text("\n".join(["id,new,old", *rows]))
    sigdask.compare_all(sigdask.read("scores.csv")).write(f"python{ending}", Path(f"python{ending.upper()}"))
    assert call_sigdask("compare", "scores.csv", "-o", f"shell{ending}", cwd=tmp_path).returncode == 0
    assert Path(f"python{ending}").read_bytes() == Path(f"shell{ending}").read_bytes()
    assert Path(f"python{ending.upper()}").read_bytes() == Path(f"shell{ending}").read_bytes()


def test_an_unknown_ending_is_refused_before_anything_is_written(tmp_path):
    results = compare_all({"new": [4, 5, 4], "old": [1, 1, 2]})
    with pytest.raises(InputError, match=r"results.xyz: expected a file that ends in .json"):
        results.write(tmp_path / "results.json", tmp_path / "results.xyz")
    assert not any(tmp_path.iterdir())
