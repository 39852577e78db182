"""Results for tests of tables for papers: hostile names, parsed Markdown, compiled LaTeX."""

import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from markdown_it import MarkdownIt

from sigdask.api import compare_all
from sigdask.counts import Counts

HOSTILE_NAMES = (
    "a|b", "**bold**", "`code`", "<script>alert(1)</script>", "[link](x)", "&amp;", "a\\|b", "$x^2$", "50 % of #1_&{}",
    "[opens", "*stars", "--two--", "``q''", "ä ß ł «Ð»", "日本語 🎉", "\\input{x}", "~tilde^", '"quoted"', "a\x1b[31m", "x,,y",
)  # fmt: skip


def compare_random(names="abcd", metrics=("mean",), step=0.05, **options):
    rng = np.random.default_rng(2)
    scores = {name: (rng.random(80) < 0.3 + step * k).astype(int) for k, name in enumerate(names)}
    return compare_all(Counts.from_scores(scores), metrics=[*metrics], **{"trials": 199, "interval": "none"} | options)


def parse_tables(text):
    """Return the tables of a Markdown text as rows of (text, is bold)."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    tables = []
    for k, token in enumerate(tokens):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type in {"td_open", "th_open"}:
            inline = tokens[k + 1].children
            assert {child.type for child in inline} <= {"text", "strong_open", "strong_close", "text_special"}
            words = "".join(child.content for child in inline)
            tables[-1][-1].append((words, any(child.type == "strong_open" for child in inline)))
    return tables


class ParsedPage(HTMLParser):
    """The tags, names of attributes and texts of HTML, the text of each cell, and the words of each section by its id."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self.cells, self.section, self.words = [], [], [], [], "", {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag == "section":
            self.section = dict(attributes).get("id", "")
        if tag in {"td", "th"}:
            self.cells.append("")

    def handle_data(self, data):
        self.texts.append(data.strip())
        if self.cells:
            self.cells[-1] += data
        if self.tags and self.tags[-1] not in {"script", "style"}:
            self.words[self.section] = f"{self.words.get(self.section, '')} {data}"


PAPER = r"""
\documentclass%s
\usepackage{booktabs}
\begin{document}
%s
\end{document}
"""


def compile_paper(folder, tables, document_class="{article}"):
    """Compile a paper of these tables with pdflatex; return the last output."""
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex (texlive-latex-recommended) is not installed")
    for k, text in enumerate(tables):
        (folder / f"t{k}.tex").write_text(text)
    (folder / "paper.tex").write_text(
        PAPER % (document_class, "\n".join(rf"\input{{t{k}}}" for k in range(len(tables))))
    )
    tex = ("pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper")
    return [run_program(*tex, cwd=folder) for _ in range(2)][-1]


def run_program(*command, cwd):
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace", check=False)
    assert result.returncode == 0, result.stdout[-3000:]
    return result.stdout
