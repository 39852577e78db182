"""What all comparisons of one call found, with the JSON that stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.metadata import version
from operator import eq
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from sigdask.comparison.found import lines
from sigdask.comparison.found.columns import csv_parts, data_frame, write_parquet
from sigdask.comparison.found.ranking import Ranking, rankings
from sigdask.comparison.found.result import Result
from sigdask.comparison.found.schema import VERSION
from sigdask.comparison.found.shown import SHOWN, table_text
from sigdask.comparison.notes import Note, dicts, texts
from sigdask.comparison.table import Table
from sigdask.randomization.shuffles import SCHEME
from sigdask.statistics.letters import achieved_significance
from sigdask.writing import Lines, json_parts, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sigdask.comparison.opened.opening import Opened
    from sigdask.comparison.presented.methods import Methods
    from sigdask.comparison.presented.paper import PaperTable


@cache
def made_by() -> str:
    """Return this version of the program."""
    return version("sigdask")


@dataclass(frozen=True, slots=True)
class FamilyNote:
    """How p-values were adjusted.

    Attributes
    ----------
    adjust : str
        The method.
    n_comparisons : int
        Comparisons judged together.
    n_trials : int or None
        Trials (or arrangements) counted for the whole family; None where p-values were enough.
    exact : bool
        All arrangements were counted.
    n_resamples : int or None
        Resamples of the studentised bootstrap, of which p-values or simultaneous intervals are made; None without it.
    """

    adjust: str
    n_comparisons: int
    n_trials: int | None
    exact: bool
    n_resamples: int | None = None


@dataclass(frozen=True, slots=True)
class ResultAcrossSets:
    """One verdict over several test sets or subsets: the mean of the differences.

    Attributes
    ----------
    a, b, metric : str
        What was compared.
    n_sets : int
        Sets.
    difference : float
        Mean over sets of score_a - score_b.
    n_trials, n_extreme : int
        Trials with swaps inside each set, and those whose mean is at least as extreme.
    p_value : float
        Of the mean difference.
    p_adjusted : float or None
        By step-down max-T over all pairs and metrics.
    p_adjusted_interval : tuple of float, or None
        As in `Result`.
    method : {"approximate", "exact"}
        Random trials, or all arrangements.
    greater_in, less_in : int
        In how many sets at least A scores above B, and below (Benjamini & Heller 2008), each
        direction at half of alpha when two-sided.
    p_greater, p_less : float
        p of that many sets (of one where it is 0).
    """

    a: str
    b: str
    metric: str
    n_sets: int
    difference: float
    n_trials: int
    n_extreme: int
    p_value: float
    p_adjusted: float | None
    method: str
    greater_in: int
    p_greater: float
    less_in: int
    p_less: float
    p_adjusted_interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Results(Sequence[Result]):
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
    """

    table: Table
    seed: int
    alpha: float
    notes: tuple[Note, ...] = ()
    family: FamilyNote | None = None
    together: tuple[ResultAcrossSets, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | Sequence[Result]:
        if isinstance(index, slice):
            return tuple(self.table.take(index).results())
        return self.table.result(range(len(self))[index])

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[Result]:
        return self.table.results()

    def __eq__(self, other: object) -> bool:
        """Whether all is the same, each result as JSON has it: a number that there is not is like another."""
        if not isinstance(other, Results):
            return NotImplemented
        around = all(getattr(self, f.name) == getattr(other, f.name) for f in fields(self) if f.name != "table")
        return around and len(self) == len(other) and all(map(eq, self.json_lines(), other.json_lines()))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return table_text(
            self[:SHOWN], self.alpha, len(self), [note.text for note in self.notes if note.kind == "scope"]
        )

    def _repr_html_(self) -> str:
        from sigdask.comparison.presented import notebook

        return notebook.as_html(notebook.answer(self))

    def _repr_markdown_(self) -> str:
        from sigdask.comparison.presented import notebook

        return notebook.as_markdown(notebook.answer(self))

    def __rich__(self) -> Any:
        from sigdask.comparison.presented import notebook

        return notebook.as_rich(notebook.answer(self))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the notes say, as it is printed."""
        return texts(self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `--json` writes, as values of Python."""
        return self.around() | {"results": [plain(_result_dict(result)) for result in self]}

    def around(self) -> dict[str, Any]:
        """Return the object that `--json` writes, but for the results themselves."""
        return {
            "sigdask": made_by(),
            "schema_version": VERSION,
            "scheme": SCHEME,
            "seed": self.seed,
            "alpha": self.alpha,
            "warnings": list(self.warnings),
            "notes": plain(dicts(self.notes)),
            "family": plain(self.family),
            "results": [],
            "rankings": plain(self.rankings()),
            "together": plain(self.together),
        }

    def rankings(self) -> list[Ranking]:
        """Rank the systems of each test set, subset and metric of which all pairs were compared, two-sided."""
        return rankings(self.table)

    def to_json(self) -> str:
        """Return the JSON text that `--json` writes."""
        return "".join(self.json_parts())

    def json_parts(self) -> Iterator[str]:
        """Yield the JSON text that `--json` writes, in parts of some thousand results."""
        return json_parts(self.around() | {"results": Lines(self.json_lines())})

    def json_lines(self) -> Iterator[str]:
        """Yield the JSON of the results, each on a line, some thousand at a time."""
        return lines.of(self.table)

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
        from sigdask.comparison.presented import methods

        return methods.of(methods.Facts.of(self))

    def achieved_significance(self) -> list[float]:
        """Return the achieved-significance curve: all p-values, the largest first (Sakai 2006)."""
        return achieved_significance(self.table.p_value)

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
            `sigdask.figures.save` writes it as SVG, PDF or PNG.

        Raises
        ------
        InputError
            Several could be meant, or matplotlib (`sigdask[report]`) is not installed.
        """
        from sigdask.comparison.presented import drawn

        return drawn.forest(drawn.of_one(self.table, test_set, subset, metric))

    def plot_matrix(
        self, *, test_set: str | None = None, subset: str | None = None, metric: str | None = None
    ) -> Figure:
        """Draw every pair of systems: which is better, and by what p (adjusted, where it is).

        Parameters and errors as in `plot_forest`; all pairs must have been compared, two-sided.
        """
        from sigdask.comparison.presented import drawn

        return drawn.matrix(drawn.of_one(self.table, test_set, subset, metric))

    def plot_critical_difference(
        self, *, test_set: str | None = None, subset: str | None = None, metric: str | None = None
    ) -> Figure:
        """Draw the systems by score, bars joining those that are not significantly different.

        The diagram of Demšar 2006 ("Statistical comparisons of classifiers over multiple data sets", JMLR 7), with the
        groups of the letters of the ranking (Piepho 2004) instead of one critical difference: each pair has a test of
        its own. Parameters and errors as in `plot_matrix`.
        """
        from sigdask.comparison.presented import drawn

        return drawn.critical_difference(drawn.of_one(self.table, test_set, subset, metric))

    def plot_null(self, opened: Opened) -> Figure:
        """Draw the differences that exchanged outputs have, and the observed one among them: what p is a share of.

        Parameters
        ----------
        opened : Opened
            One of the comparisons that `sigdask.api.compare_opened` returns beside these results.
        """
        from sigdask.comparison.presented import drawn

        return drawn.null(self.table, opened.row, opened.null)

    def plot_achieved_significance(self) -> Figure:
        """Draw the achieved-significance curves of all metrics (Sakai 2006, figure 1)."""
        from sigdask.comparison.presented import drawn

        return drawn.achieved_significance(self.table)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame, one row a comparison.

        Parameters
        ----------
        library : str
            "pandas" (`sigdask[frame]`), "polars" or "pyarrow" (`sigdask[parquet]`); any module with
            `DataFrame(columns)` or `table(columns)`.
        """
        return data_frame(self.table, library)

    def paper_tables(
        self, *, layout: str | None = None, digits: int | None = None, percent: bool = False
    ) -> list[PaperTable]:
        """Return tables for papers as values, which `presented.latex` and `presented.markdown` write."""
        from sigdask.comparison.presented import layouts

        return layouts.tables(self, layout, digits, percent=percent)

    def to_markdown(self, *, layout: str | None = None, digits: int | None = None, percent: bool = False) -> str:
        """Return a table for a paper or a page as Markdown, with what is said around it.

        Parameters
        ----------
        layout : {"systems", "pairs"}, optional
            Systems by metrics with the best in bold, or a row a comparison; by default systems where all pairs of
            three or more were compared (with letters), or all with one baseline (with daggers).
        digits : int, optional
            Decimals of scores; by default four, two of per cent, and six digits of large ones.
        percent : bool
            Write accuracy, F1 and other shares of 1 in per cent.
        """
        from sigdask.comparison.presented import markdown

        return "".join(markdown.document_parts(self.paper_tables(layout=layout, digits=digits, percent=percent)))

    def to_latex(
        self,
        *,
        layout: str | None = None,
        digits: int | None = None,
        percent: bool = False,
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
        from sigdask.comparison.presented import latex

        made = self.paper_tables(layout=layout, digits=digits, percent=percent)
        return "".join(latex.document_parts(made, caption=caption, label=label))

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV file, one row a comparison; the columns are those of `to_frame`."""
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            file.writelines(csv_parts([self.table]))

    def to_parquet(self, path: str | Path) -> None:
        """Write a Parquet file (`sigdask[parquet]`), one row a comparison; the columns are those of `to_frame`."""
        with Path(path).open("wb") as file:
            write_parquet([self.table], file)


def _result_dict(result: Result) -> dict[str, Any]:
    found = asdict(result)
    keys = ("test_signature", "assumptions", "p_adjusted_by", "interval_simultaneous")
    last = {name: found.pop(name) for name in keys}
    return {**found, "warnings": result.warnings, "notes": dicts(result.notes), **last}
