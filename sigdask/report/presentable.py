"""Results as `sigdask` returns them, with methods that show them as tables, text and figures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sigdask.errors import InputError
from sigdask.report import notebook, page, terminal
from sigdask.report.methods import text as methods
from sigdask.report.plots import results as result_figures
from sigdask.report.tables import analyses, comparisons, latex, markdown
from sigdask.results.comparisons import ComparisonResults, convert_results
from sigdask.results.ranking import SystemRanking, build_rankings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sigdask.analysis.details import ComparisonDetails
    from sigdask.report.methods.text import Methods
    from sigdask.report.tables.model import PaperTable


@dataclass(frozen=True, slots=True)
class Ranking(SystemRanking):
    """Systems of one test set, subset and metric by score, with a display for notebooks."""

    def _repr_html_(self) -> str:
        return notebook.as_html(notebook.shorten_table(analyses.build_ranking_table(self)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Results(ComparisonResults):
    """All comparisons of one call, with what makes them repeatable; a sequence of views of them.

    Attributes
    ----------
    table : Table
        What was found, as columns, in the order of subsets, pairs and metrics.
    seed : int
        Of the stream.
    alpha : float
        Level of the verdicts.
    notes : tuple of Note
        On the whole; `warnings` are their texts.
    family : FamilyNote or None
        How p-values were adjusted.
    together : tuple of ResultAcrossSets
        Verdicts over several sets, where asked for.
    units : object or None
        What `unit_table` takes the scores of units from; None in results that were read from a file or a store.
    """

    def _repr_html_(self) -> str:
        return notebook.as_html(notebook.build_summary_table(self))

    def _repr_markdown_(self) -> str:
        return notebook.as_markdown(notebook.build_summary_table(self))

    def __rich__(self) -> Any:
        return notebook.as_rich(notebook.build_summary_table(self))

    def __str__(self) -> str:
        return terminal.render(self)

    def to_html(self, title: str = "Comparison of systems") -> str:
        """Return the results as a self-contained HTML page, as `sigdask compare --html` writes it without details.

        Parameters
        ----------
        title : str
            Title of the page.
        """
        sets = self.table.test_set
        parts = {name: self.table.take(np.flatnonzero(sets.codes == code)) for code, name in enumerate(sets.values)}
        results = {name: replace(self, table=part) for name, part in parts.items() if len(part)}
        return page.render_page(results, title=title)

    def cite(self) -> Methods:
        """Return the methods of these results as a paragraph, with the works that it rests on.

        Examples
        --------
        >>> from sigdask import compare_all
        >>> methods = compare_all({"new": [4, 5, 4], "old": [1, 1, 2]}).cite()
        >>> print(methods.text[:77])
        2 systems were compared by mean. Each difference was tested by approximate ra
        >>> methods.keys[:2], methods.bibtex[:16], "citep{noreen1989,yeh2000}" in methods.latex
        (('noreen1989', 'yeh2000'), '@book{noreen1989', True)
        """
        return methods.build_methods(methods.Facts.from_results(self))

    def plot_forest(
        self, *, test_set: str | None = None, subset: str | None = None, metric: str | None = None
    ) -> Figure:
        """Draw the differences with their intervals: a forest plot (Lewis & Clarke 2001).

        A filled mark is a significant difference; p stands beside it, adjusted where it is. Of more than 120
        comparisons those with the smallest p are drawn.

        Parameters
        ----------
        test_set, subset, metric : str, optional
            What is drawn, where the results have several.

        Returns
        -------
        matplotlib.figure.Figure
            `sigdask.report.plots.save` writes it as SVG, PDF or PNG.

        Raises
        ------
        InputError
            Several could be meant, or matplotlib (`sigdask[report]`) is not installed.
        """
        return result_figures.forest(result_figures.select_group(self.table, test_set, subset, metric))

    def plot_matrix(
        self, *, test_set: str | None = None, subset: str | None = None, metric: str | None = None
    ) -> Figure:
        """Draw every pair of systems: which is better, and by what p (adjusted, where it is).

        Parameters and errors as in `plot_forest`; all pairs must have been compared, two-sided.
        """
        return result_figures.matrix(result_figures.select_group(self.table, test_set, subset, metric))

    def plot_critical_difference(
        self, *, test_set: str | None = None, subset: str | None = None, metric: str | None = None
    ) -> Figure:
        """Draw the systems by score, bars joining those that are not significantly different.

        The diagram of Demšar 2006 ("Statistical comparisons of classifiers over multiple data sets", JMLR 7), with the
        groups of the letters of the ranking (Piepho 2004) instead of one critical difference: each pair has a test of
        its own. Parameters and errors as in `plot_matrix`.
        """
        return result_figures.critical_difference(result_figures.select_group(self.table, test_set, subset, metric))

    def plot_null(self, opened: ComparisonDetails) -> Figure:
        """Draw the distribution of differences with outputs swapped, and the observed difference.

        Parameters
        ----------
        opened : ComparisonDetails
            One of the comparisons that `sigdask.api.compare_opened` returns beside these results.
        """
        return result_figures.plot_null(self.table, opened.row, opened.null)

    def plot_units(self, opened: ComparisonDetails) -> Figure:
        """Draw what the units contribute to the difference of one comparison, sorted by size.

        Parameters
        ----------
        opened : ComparisonDetails
            One of the comparisons that `sigdask.api.compare_opened` returns beside these results.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        InputError
            The metric is not computed from sums over units, so that units have no contributions.
        """
        if opened.units is None:
            raise InputError("there is nothing to draw: units have no contributions under this metric")
        return result_figures.plot_units(self.table, opened.row, opened.units)

    def plot_achieved_significance(self) -> Figure:
        """Draw the achieved-significance curves of all metrics (Sakai 2006, figure 1)."""
        return result_figures.achieved_significance(self.table)

    def paper_tables(
        self, *, layout: str | None = None, digits: int | None = None, percent: bool = True
    ) -> list[PaperTable]:
        """Return tables for papers as values, which `presented.latex` and `presented.markdown` write."""
        return comparisons.build_tables(self, layout, digits, percent=percent)

    def to_markdown(self, *, layout: str | None = None, digits: int | None = None, percent: bool = True) -> str:
        """Return a table for a paper or a page as Markdown, with what is said around it.

        Parameters
        ----------
        layout : {"systems", "pairs"}, optional
            Systems by metrics with the best in bold, or a row a comparison; by default systems where all pairs of
            three or more were compared (with letters), or all with one baseline (with daggers).
        digits : int, optional
            Decimals of scores; by default one of BLEU, chrF and TER, two of per cent, four of others, and six digits
            of large ones.
        percent : bool
            Write accuracy, F1 and other shares of 1 in per cent.
        """
        return "".join(markdown.iter_document_parts(self.paper_tables(layout=layout, digits=digits, percent=percent)))

    def to_latex(
        self,
        *,
        layout: str | None = None,
        digits: int | None = None,
        percent: bool = True,
        caption: str | None = None,
        label: str = "tab:sigdask",
    ) -> str:
        r"""Return a table for a paper as LaTeX, which needs booktabs alone and is taken by `\input`.

        Below it stands the test's full description, with a command that cites its sources: their BibTeX is what
        `sigdask cite` prints.

        Parameters
        ----------
        layout, digits, percent
            As in `to_markdown`.
        caption : str, optional
            As LaTeX, instead of what says what the table shows; what bold type and marks mean follows.
        label : str
            For references to it.
        """
        tables = self.paper_tables(layout=layout, digits=digits, percent=percent)
        return "".join(latex.iter_document_parts(tables, caption=caption, label=label))

    def rankings(self) -> list[Ranking]:
        """Rank the systems of each test set, subset and metric of which all pairs were compared, two-sided."""
        return [convert_results(ranking, Ranking) for ranking in build_rankings(self.table)]
