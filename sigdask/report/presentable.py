"""Results as `sigdask` returns them, with methods that show them as tables, text and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sigdask.errors import InputError
from sigdask.report import html, latex, markdown
from sigdask.report.comparisons import build_paper_tables
from sigdask.report.document import DocumentTable
from sigdask.report.files import Texts, find_format, list_table_texts, write_parts
from sigdask.report.methods import Methods, describe_results
from sigdask.report.screen import iter_blocks, iter_other_warnings, render_with_warnings
from sigdask.results.comparisons import ComparisonResults

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sigdask.options import TableLayoutOptions


Kind = TypeVar("Kind")


def convert_results(plain: Any, kind: type[Kind]) -> Kind:
    """Return plain results as an object of the class that can display them."""
    return kind(**{field.name: getattr(plain, field.name) for field in fields(plain)})


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Results(ComparisonResults):
    """All comparisons of one call, as a sequence of `Result`, with all that is needed to reproduce them.

    `print(results)` shows a report. `results[0]` is one `Result`. `results["new", "old"]` finds it by its systems in
    either order, with the metric, test set or subset as further names if there are several. Its difference is always
    `score_a - score_b` of its own `a` and `b`.

    Attributes
    ----------
    table : Table
        The results as columns, in the order of test sets, subsets, pairs and metrics.
    seed : int
        Seed of the random stream.
    alpha : float
        Significance level.
    notes : tuple of Note
        Notes on all results together. `warnings` has their texts.
    family : FamilyNote or None
        How p-values were adjusted. None if they were not.
    together : tuple of ResultAcrossSets
        Verdicts over several test sets, if `together` was set.
    options : mapping of str to value
        The options of the call that computing the results again needs.
    units : object or None
        The data for `unit_table`. None in results that were read from a file or a store.

    Examples
    --------
    >>> from sigdask.api import compare_all
    >>> results = compare_all({"new": [4, 5, 4, 3], "old": [1, 1, 2, 3]}, interval="none")
    >>> results["new", "old"].p_value
    0.25
    """

    def _repr_html_(self) -> str:
        blocks = chain(iter_other_warnings(self), iter_blocks(self, everything=False, verbose=False))
        return "".join(map(html.render_html, blocks))

    def __str__(self) -> str:
        return render_with_warnings(self)

    __repr__ = __str__

    def write(self, *files: str | Path) -> None:
        """Write files, each in the format of its ending, as `sigdask compare -o` does.

        Parameters
        ----------
        *files : str or Path
            The endings are .json, .csv, .parquet, .md and .tex (tables for papers), .bib (the works that table and
            `cite` cite), .html (the page of `to_html`) and .txt (the text of `print`).

        Examples
        --------
        >>> import os, tempfile
        >>> from sigdask import compare_all
        >>> results = compare_all({"new": [4, 5, 4], "old": [1, 1, 2]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results.write(f"{folder}/results.json", f"{folder}/table.tex")
        ...     sorted(os.listdir(folder))
        ['results.json', 'table.tex']

        Raises
        ------
        InputError
            A file has another ending. Then none is written.
        UnfinishedError
            A file cannot be written.
        """
        texts = list_result_texts(self)
        chosen = {Path(file): texts[find_format(file, texts)] for file in files}
        for path, text in chosen.items():
            write_parts(path, text())

    def to_html(self, title: str = "Comparison of systems") -> str:
        """Return the results as a self-contained HTML page, as `sigdask show -o FILE.html` writes it.

        Parameters
        ----------
        title : str
            Title of the page.

        Returns
        -------
        str
            The page. `write("results.html")` writes it to a file.

        Raises
        ------
        InputError
            The title is the name of a file.
        """
        if title.endswith((".html", ".htm")):
            raise InputError(
                f"title = {title!r}: to_html returns the page as text", remedy=f"write({title!r}) writes it"
            )
        sets = self.table.test_set
        parts = {name: self.table.take(np.flatnonzero(sets.codes == code)) for code, name in enumerate(sets.levels)}
        results = {name: replace(self, table=part) for name, part in parts.items() if len(part)}
        from sigdask.report.page import render_page

        return render_page(results, title=title)

    def cite(self) -> Methods:
        """Return a paragraph that describes the methods of these results, with the works that it cites.

        Returns
        -------
        methods : Methods
            `text` is the paragraph, `latex` the same with citations of natbib, `bibtex` the entries of the cited works,
            and `keys` their keys.

        Examples
        --------
        >>> from sigdask import compare_all
        >>> methods = compare_all({"new": [4, 5, 4], "old": [1, 1, 2]}).cite()
        >>> print(methods.text[:77])
        2 systems were compared by mean. Each difference was tested by approximate ra
        >>> methods.keys[:2], methods.bibtex[:16], "citep{noreen1989,yeh2000}" in methods.latex
        (('noreen1989', 'yeh2000'), '@book{noreen1989', True)
        """
        return describe_results(self)

    def plot(
        self,
        kind: str = "forest",
        *,
        test_set: str | None = None,
        subset: str | None = None,
        metric: str | None = None,
    ) -> Figure:
        """Draw a figure of one test set, subset and metric.

        Parameters
        ----------
        kind : {"forest", "matrix", "critical-difference"}
            "forest", the default: the differences with their intervals and p (Lewis & Clarke 2001); a filled mark is a
            significant difference. "matrix": all pairs, which one is better, and its p. "critical-difference" or "cd":
            the systems on an axis of scores, where bars join systems that are not significantly different, as in
            Demšar 2006 ("Statistical comparisons of classifiers over multiple data sets", JMLR 7), with the groups of
            the letters of the ranking (Piepho 2004) instead of one critical difference. The last two need all pairs,
            compared two-sided.
        test_set, subset, metric : str, optional
            Selection, if the results have several. A subset is named by its value.

        Returns
        -------
        matplotlib.figure.Figure
            `sigdask.report.plots.save` writes it as SVG, PDF or PNG.

        Raises
        ------
        InputError
            There is no such kind, the selection is ambiguous, pairs are missing, or matplotlib (`sigdask[report]`) is
            not installed.
        """
        from sigdask.report.plots import pairs

        [name] = pairs.parse_kinds(kind)
        return pairs.DRAWN[name](pairs.select_group(self.table, test_set, subset, metric))

    def write_figures(
        self,
        folder: str | Path,
        *,
        formats: str | Sequence[str] = ("svg", "pdf"),
        figure_kinds: str | None = None,
    ) -> list[Path]:
        """Draw the figures that fit the results into a folder, as `sigdask show --figures` does.

        Parameters
        ----------
        folder : str or Path
            Folder of the files. It is created if it does not exist.
        formats : str or sequence of str
            "svg", "pdf", "png", or several of them.
        figure_kinds : str, optional
            Kinds of figures, such as "forest,cd", by default all that fit.

        Returns
        -------
        list of Path
            Paths of the files.

        Raises
        ------
        InputError
            The kind or format is unknown, or matplotlib (`sigdask[report]`) is not installed.
        UnfinishedError
            A file cannot be written.
        """
        from sigdask.report.plots import pairs

        names = pairs.parse_names(formats if isinstance(formats, str) else ",".join(formats), "formats =")
        pictures = pairs.iter_pictures(self.table, pairs.parse_kinds(figure_kinds))
        return pairs.write_figures(Path(folder), pictures, names)

    def paper_tables(
        self, *, layout: str | None = None, digits: int | None = None, percent: bool = True
    ) -> list[DocumentTable]:
        """Return tables for papers as objects, which `to_latex` and `to_markdown` write as text.

        Parameters
        ----------
        layout, digits, percent
            As in `to_markdown`.

        Returns
        -------
        list of DocumentTable
            Tables with title, columns, legend and a note on the test.
        """
        return build_paper_tables(self, layout, digits, percent=percent)

    def to_markdown(self, *, layout: str | None = None, digits: int | None = None, percent: bool = True) -> str:
        """Return a table for a paper or a page as Markdown, with its caption and notes.

        Parameters
        ----------
        layout : {"systems", "pairs"}, optional
            "systems": a row for each system and a column for each metric, with the best score in bold. "pairs": a row
            for each comparison. By default "systems" if all pairs of three or more systems were compared (with letters)
            or all systems with one baseline (with daggers).
        digits : int, optional
            Decimals of scores. By default one for BLEU, chrF and TER, two for per cent, four for others, and six digits
            for large scores.
        percent : bool
            Whether accuracy, F1 and other shares are in per cent, by default True.

        Raises
        ------
        InputError
            The layout is unknown, or the comparisons do not have it.
        """
        return "".join(markdown.iter_parts(self.paper_tables(layout=layout, digits=digits, percent=percent)))

    def to_latex(
        self,
        *,
        layout: str | None = None,
        digits: int | None = None,
        percent: bool = True,
        caption: str | None = None,
        label: str = "tab:sigdask",
    ) -> str:
        r"""Return a table for a paper as LaTeX, for `\input`. The only package that it needs is booktabs.

        A note below the table names the test. `cite` describes it in full, with its sources.

        Parameters
        ----------
        layout, digits, percent
            As in `to_markdown`.
        caption : str, optional
            Caption as LaTeX, in place of the default one. An explanation of bold type and marks follows.
        label : str
            Label for references, by default "tab:sigdask".
        """
        tables = self.paper_tables(layout=layout, digits=digits, percent=percent)
        return "".join(latex.iter_parts(tables, caption=caption, label=label))


def list_paper_texts(tables: Callable[[], Iterable[DocumentTable]]) -> Texts:
    """Return the texts of tables for papers."""
    return {"markdown": lambda: markdown.iter_parts(tables()), "latex": lambda: latex.iter_parts(tables())}


def list_result_texts(results: Results, layout: TableLayoutOptions | None = None) -> Texts:
    """Return what files of the results of comparisons hold, by format; the layout is that of tables for papers."""
    return {
        **list_paper_texts(lambda: results.paper_tables(**(layout or {}))),
        **list_table_texts(lambda: [results.table]),
        "json": lambda: chain(results.json_parts(), ["\n"]),
        "bibtex": lambda: [results.cite().bibtex, "\n"],
        "text": lambda: [render_with_warnings(results, everything=True), "\n"],
        "html": lambda: [results.to_html()],
    }
