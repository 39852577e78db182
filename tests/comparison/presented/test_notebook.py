"""What a notebook and rich show of results: the answer first, then some rows of the tables for papers, names as text."""

import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from markdown_it import MarkdownIt
from papers import HOSTILE, found_of, parsed
from rich.console import Console

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.report.notebook import MAX_ROWS
from sigdask.report.summary.verdict import build_verdict as verdict_of


class Cells(HTMLParser):
    """The tags of a page, and the text of each cell."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.cells, self.words = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag in {"td", "th"}:
            self.cells.append("")

    def handle_data(self, data):
        self.words.append(data)
        if self.cells:
            self.cells[-1] += data


def console(found, width=200):
    out = io.StringIO()
    Console(file=out, width=width).print(found)
    return out.getvalue()


def test_a_notebook_shows_the_headline_first_and_a_short_table():
    found = found_of([f"s{k}" for k in range(15)], adjust="none")
    shown = Cells(found._repr_html_())
    assert shown.words[0] == verdict_of(found).headline
    assert len([cell for cell in shown.cells if re.match(r"s\d+$", cell)]) == MAX_ROWS
    assert "5 more rows are not shown." in found._repr_html_()
    [[_, *rows]] = parsed(found._repr_markdown_())
    [ranking] = found.rankings()
    assert [name for (name, _), _ in rows] == [one.system for one in ranking.systems[:MAX_ROWS]]


def test_of_many_comparisons_the_first_are_shown_and_how_many_there_are_more():
    rng = np.random.default_rng(7)
    found = compare_all(
        Counts.from_scores({f"s{k}": rng.integers(0, 2, 20) for k in range(30)}), metrics=["mean"],
        pairs=[(f"s{a}", f"s{b}") for a in range(15) for b in range(20, 30)], trials=19, interval="none", adjust="none",
    )  # fmt: skip
    [[_, *rows]] = parsed(found._repr_markdown_())
    assert [(a, b) for (a, _), (b, _), *_ in rows] == [(r.a, r.b) for r in found[:MAX_ROWS]]
    assert "140 more comparisons are not shown." in found._repr_markdown_()


@pytest.mark.parametrize("names", [HOSTILE, HOSTILE[:2]])
def test_hostile_names_are_text_wherever_they_are_shown(names):
    found = found_of(names, adjust="none")
    plain = {name.replace("\x1b", "\N{REPLACEMENT CHARACTER}") for name in names}
    shown = Cells(found._repr_html_())
    assert shown.tags <= {"div", "p", "strong", "em", "small", "sup", "table", "thead", "tbody", "tr", "th", "td"}
    assert {cell.strip() for cell in shown.cells} & plain
    tags = Cells(MarkdownIt("commonmark").enable("table").render(found._repr_markdown_())).tags
    assert tags <= {"p", "strong", "em", "table", "thead", "tbody", "tr", "th", "td"}
    text = console(found)
    assert "\x1b" not in text
    assert sum(name in text for name in plain) >= min(len(names), MAX_ROWS)


def test_no_results_are_shown_as_that():
    found = found_of("abc")
    none = replace(found, table=found.table.take(slice(0)))
    assert "Nothing was compared." in none._repr_html_()
    assert "Nothing was compared." in none._repr_markdown_()
    assert "Nothing was compared." in console(none)
    assert r"\begin{tabular}" in none.to_latex()
    assert none.to_markdown().startswith("**0 comparisons")
