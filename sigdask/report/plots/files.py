"""Which figures fit results, and their files in a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sigdask.analysis.candidate_rankings.spec import RankingEvaluation
from sigdask.errors import InputError, UnfinishedError
from sigdask.options import FigureStyleOptions
from sigdask.report.files import open_atomic
from sigdask.report.plots import canvas, curves, pairs
from sigdask.report.plots.canvas import DEFAULT_STYLE, CanvasStyle
from sigdask.report.plots.pairs import get_subject
from sigdask.report.standings import get_group_key
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.ranking import build_ranking, group_rows, is_ranked
from sigdask.results.table import Table
from sigdask.text import format_list

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("forest", "critical-difference", "matrix", "precision", "recall")
"""Kinds of figures, which are all drawn by default."""

INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4}
MIN_WIDTH, MAX_WIDTH = 1.5, 40.0
"""Smallest and largest width of figures, in inches."""

MAX_IN_MATRIX = 200
"""Maximum systems of a matrix."""

MAX_FIGURES = 60
"""Maximum number of figures in a folder. A message gives the number of those left out."""

MAX_CHARACTERS = 40
"""Maximum characters of each part of a file's name."""


@dataclass(frozen=True, slots=True)
class FigureStyle:
    """Which kinds of figures are drawn, and their size and type."""

    kinds: frozenset[str] = frozenset(KINDS)
    canvas: CanvasStyle = DEFAULT_STYLE

    @staticmethod
    def parse_kinds(text: str) -> frozenset[str]:
        """Return the kinds of figures that a text such as "forest,cd" names."""
        names = [part.strip().lower() for part in text.split(",") if part.strip()]
        kinds = frozenset("critical-difference" if name == "cd" else name for name in names)
        if unknown := kinds.difference(KINDS):
            raise InputError(f"figure kinds: {min(unknown)!r} is not one of {', '.join((*KINDS, 'cd'))}")
        return kinds

    @staticmethod
    def from_options(options: FigureStyleOptions) -> FigureStyle:
        """Return the style that options describe.

        Raises
        ------
        InputError
            There is no such kind, or a width is invalid.
        """
        kinds = FigureStyle.parse_kinds(options.get("figure_kinds") or "")
        width = None
        if (text := options.get("figure_width")) is not None:
            match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(in|cm|mm)", text.strip())
            width = float(match[1]) * INCHES[match[2]] if match else 0.0
            if not MIN_WIDTH <= width <= MAX_WIDTH:
                raise InputError(f"figure width {text!r}: expected a width such as 3.3in, 84mm or 8.4cm")
        style = CanvasStyle(width, options.get("font"), options.get("font_size", 8.0), options.get("dpi", 200))
        return FigureStyle(kinds or frozenset(KINDS), style)


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure that can be drawn on demand.

    Attributes
    ----------
    kind : str
        Kind of figure, in a word.
    subject : tuple of str
        Test set, subset and metric, as far as it is of one.
    draw : callable
        Returns the figure.
    """

    kind: str
    subject: tuple[str, ...]
    draw: Callable[[], Figure]


def iter_result_pictures(all_results: Iterable[ComparisonResults]) -> Iterator[FigureSpec]:
    """Yield the pictures that fit each test set, subset and metric of comparisons."""
    for table in (results.table.take(rows) for results in all_results for rows in group_rows(results.table)):
        kinds = [*pairs.DRAWN] if is_ranked(table) else ["forest"]
        if is_ranked(table) and len(build_ranking(table).systems) > MAX_IN_MATRIX:
            kinds.remove("matrix")
        yield from (FigureSpec(kind, get_subject(table), partial(pairs.DRAWN[kind], table)) for kind in kinds)


def iter_ranking_pictures(evaluations: Mapping[str, object]) -> Iterator[FigureSpec]:
    """Yield the pictures that fit evaluations of candidate rankings; skip other objects."""
    for name, evaluation in evaluations.items():
        if isinstance(evaluation, RankingEvaluation):
            scores = ("precision", "recall") if evaluation.precision else ("precision",) if evaluation.sampled else ()
            for score in scores:
                yield FigureSpec(score, (name,) if name else (), partial(curves.plot_n_best, evaluation, score))


def select_group(table: Table, test_set: str | None, subset: str | None, metric: str | None) -> Table:
    """Return the rows of one test set, subset and metric.

    Raises
    ------
    InputError
        There is none, or several: it names them.
    """
    requested = {"test_set": test_set, "subset": subset, "metric": metric}
    groups = {get_group_key(table, int(rows[0])): rows for rows in group_rows(table)}
    fitting = {
        key: rows
        for key, rows in groups.items()
        if all(value in {None, part} for value, part in zip(requested.values(), key, strict=True))
    }
    if len(fitting) == 1:
        return table.take(next(iter(fitting.values())))
    if not fitting:
        criteria = ", ".join(f"{name} = {value!r}" for name, value in requested.items() if value is not None)
        raise InputError(f"no comparison{f' with {criteria}' if criteria else ''} is in these results")
    choices = {name: [*dict.fromkeys(key[k] for key in fitting)] for k, name in enumerate(requested)}
    text = "; ".join(f"{name} is one of {format_list([*map(repr, v)])}" for name, v in choices.items() if len(v) > 1)
    raise InputError("a figure shows one test set, subset and metric", remedy=f"choose which ({text})")


def parse_formats(text: str, option: str = "--figure-format") -> tuple[str, ...]:
    """Parse the list of figure formats.

    Raises
    ------
    InputError
        One is none.
    """
    formats = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",")))
    if not {*formats} <= {*canvas.FORMATS}:
        raise InputError(f"{option} {text}: must be one of {', '.join(canvas.FORMATS)}")
    return formats


def write_figures(
    folder: Path, pictures: Iterable[FigureSpec], formats: Sequence[str], style: FigureStyle | None = None
) -> tuple[list[Path], int]:
    """Write pictures into a folder, up to a limit; return their files and the number of pictures beyond the limit.

    Raises
    ------
    InputError
        matplotlib is not installed.
    UnfinishedError
        A file cannot be written.
    """
    style = style or FigureStyle()
    fitting = [picture for picture in pictures if picture.kind in style.kinds]
    selected = fitting[:MAX_FIGURES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnfinishedError(f"the folder cannot be created ({error.strerror})", file=folder) from None
    written = []
    with canvas.apply_style(style.canvas):
        for name, picture in zip(build_file_names(selected), selected, strict=True):
            figure = picture.draw()
            for format_ in formats:
                written.append(folder / f"{name}.{format_}")
                with open_atomic(written[-1]) as file:
                    file.write(canvas.rendered(figure, format_))
    return written, len(fitting) - len(selected)


def build_file_names(selected: Sequence[FigureSpec]) -> list[str]:
    """Return a file name without ending for each picture: portable, unique and reproducible.

    Characters that file names cannot have become a line. Such a name, and one that differs from another only in case,
    ends in its number.
    """
    names: list[str] = []
    for number, picture in enumerate(selected, 1):
        full_name = "-".join((picture.kind, *picture.subject))
        parts = (re.sub(r"[^A-Za-z0-9_.+=@-]+", "_", part)[:MAX_CHARACTERS] for part in picture.subject)
        name = "-".join((picture.kind, *parts))
        is_taken = name.lower() in {other.lower() for other in names}
        names.append(name if name == full_name and not is_taken else f"{name}-{number}")
    return names
