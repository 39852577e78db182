"""The figures that fit results: selected, drawn from the columns of a result table, and written into a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.details import ComparisonDetails, NullDistribution, SortedUnits
from sigdask.errors import InputError, UnfinishedError
from sigdask.options import FigureStyleOptions
from sigdask.report import plots
from sigdask.report.files import open_atomic
from sigdask.report.plots.curves import NBestCurve
from sigdask.report.summary.standings import get_group_key
from sigdask.report.tables.cells import format_groups
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.ranking import SystemRanking, build_ranking, group_rows, is_agreement, is_ranked
from sigdask.results.table import Table, select_intervals
from sigdask.statistics.ranking_letters import RankedSystem
from sigdask.statistics.rounding import format_limits, format_p
from sigdask.text import format_count, format_list

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sigdask.analysis.candidate_rankings.spec import RankingEvaluation


MAX_IN_FOREST = 120
"""Maximum comparisons of a forest plot: those with the best system, or with the smallest p."""

MAX_IN_MATRIX = 200
"""Maximum systems of a matrix."""

MIN_IN_CURVE = 10
"""Minimum number of comparisons for a curve of achieved significance."""


KINDS = {"cd": "critical-difference"}
"""Short names of figures."""

ALL_KINDS = (
    "forest", "critical-difference", "matrix", "achieved-significance", "null", "differences", "precision", "recall",
    "nights",
)  # fmt: skip

INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4}
WIDTH_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*(in|cm|mm)")
MIN_WIDTH, MAX_WIDTH = 1.5, 40.0
"""Smallest and largest width of figures, in inches."""


@dataclass(frozen=True, slots=True)
class FigureStyle:
    """Which figures are drawn, all without kinds, and their size and type."""

    kinds: frozenset[str] = frozenset()
    canvas: plots.CanvasStyle = plots.DEFAULT_STYLE

    @staticmethod
    def from_options(options: FigureStyleOptions) -> FigureStyle:
        """Return the style that options describe.

        Raises
        ------
        InputError
            There is no such kind, or a width is invalid.
        """
        names = [part.strip().lower() for part in (options.get("figure_kinds") or "").split(",") if part.strip()]
        kinds = frozenset(KINDS.get(name, name) for name in names)
        if unknown := kinds.difference(ALL_KINDS):
            raise InputError(f"figure kinds: {min(unknown)!r} is not one of {', '.join((*ALL_KINDS, *KINDS))}")
        width = None
        if (text := options.get("figure_width")) is not None:
            match = WIDTH_PATTERN.fullmatch(text.strip())
            width = float(match[1]) * INCHES[match[2]] if match else 0.0
            if not MIN_WIDTH <= width <= MAX_WIDTH:
                raise InputError(f"figure width {text!r}: expected a width such as 3.3in, 84mm or 8.4cm")
        font, size, dpi = options.get("font"), options.get("font_size", 8.0), options.get("dpi", 200)
        return FigureStyle(kinds, plots.CanvasStyle(width, font, size, dpi))


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


def iter_pictures(table: Table) -> Iterator[FigureSpec]:
    """Yield the pictures that fit results: those of each test set, subset and metric, then those of test sets."""
    for rows in group_rows(table):
        selected = table.take(rows)
        yield FigureSpec("forest", get_subject(selected), partial(forest, selected))
        if is_ranked(selected):
            yield FigureSpec("critical-difference", get_subject(selected), partial(critical_difference, selected))
            if len(build_ranking(selected).systems) <= MAX_IN_MATRIX:
                yield FigureSpec("matrix", get_subject(selected), partial(matrix, selected))
    for code in np.unique(table.test_set.codes).tolist():
        selected = table.take(np.flatnonzero(table.test_set.codes == code))
        if np.count_nonzero(~np.isnan(selected.p_value)) >= MIN_IN_CURVE:
            draw = partial(achieved_significance, selected)
            yield FigureSpec("achieved-significance", tuple(filter(None, [table.test_set.values[code]])), draw)


def select_group(table: Table, test_set: str | None, subset: str | None, metric: str | None) -> Table:
    """Return the rows of one test set, subset and metric.

    Raises
    ------
    InputError
        There is none, or several: it names them.
    """
    requested = {"test_set": test_set, "subset": subset, "metric": metric}
    groups = [(get_group_key(table, int(rows[0])), rows) for rows in group_rows(table)]
    wanted = [*requested.values()]
    rows_by_key = {
        key: rows for key, rows in groups if all(map(lambda value, part: value in {None, part}, wanted, key))
    }
    if len(rows_by_key) == 1:
        return table.take(next(iter(rows_by_key.values())))
    names = {name: [*dict.fromkeys(key[k] for key in rows_by_key)] for k, name in enumerate(requested)}
    ambiguous = {name: values for name, values in names.items() if len(values) > 1}
    if not rows_by_key:
        criteria = ", ".join(f"{name} = {value!r}" for name, value in requested.items() if value is not None)
        raise InputError(
            f"no comparison with {criteria} is in these results" if criteria else "there is nothing to draw"
        )
    choices_text = "; ".join(
        f"{name} is one of {format_list([repr(v) for v in values])}" for name, values in ambiguous.items()
    )
    raise InputError("a figure shows one test set, subset and metric", remedy=f"choose which ({choices_text})")


def forest(table: Table) -> Figure:
    """Draw the differences of one test set, subset and metric, sorted by size."""
    selected, best = _select_forest_rows(table)
    lead = np.where(selected.b.find(lambda b: b == best), -selected.difference, selected.difference)
    selected = selected.take(np.argsort(-lead, kind="stable"))
    intervals, _ = select_intervals(selected)
    nothing = np.full(len(selected), np.nan)
    low, high = (nothing, nothing) if intervals is None else (intervals.low, intervals.high)
    is_turned = selected.b.find(lambda b: b == best)
    sides = zip(selected.a.to_list(), selected.b.to_list(), strict=True)
    pairs = [(b, a) if b == best else (a, b) for a, b in sides]
    chosen = "the smallest p" if best is None else f"the best {'metric' if is_agreement(table) else 'system'}"
    n_shown, n = len(selected), len(table)
    return plots.forest(
        pairs,
        np.where(is_turned, -selected.difference, selected.difference),
        np.where(is_turned, -high, low),
        np.where(is_turned, -low, high),
        selected.outcome,
        beside=_format_p_values(selected),
        title=_format_title(table),
        note=f"{n_shown:,} of {n:,} comparisons: those with {chosen}" if n_shown < n else "",
        score=f"difference of {_describe_score(table)}{_describe_intervals(selected)}",
    )


def matrix(table: Table) -> Figure:
    """Draw the matrix of all pairs of systems in one ranking."""
    ranking = _get_ranking(table)
    names = [system.system for system in ranking.systems]
    indices = {name: k for k, name in enumerate(names)}
    a, b = (np.array([indices[x] for x in column.to_list()], np.int64) for column in (table.a, table.b))
    adjusted = _get_p_values(table)
    p, better, significant = (np.full((len(names),) * 2, fill) for fill in (np.nan, np.int8(0), False))
    gain = np.sign(table.difference) * (1 if table.metric[0].higher_is_better else -1)
    side = np.nan_to_num(gain).astype(np.int8)
    for rows, columns, direction in ((a, b, side), (b, a, -side)):
        p[rows, columns] = adjusted
        better[rows, columns] = direction
        significant[rows, columns] = table.outcome == 1
    is_adjusted = not bool(np.isnan(table.p_adjusted).all())
    return plots.matrix(names, p, better, significant, table.alpha, title=_format_title(table), adjusted=is_adjusted)


def critical_difference(table: Table) -> Figure:
    """Draw the systems of one ranking, and the groups that are not significantly different."""
    ranking = _get_ranking(table)
    members: dict[str | int, list[int]] = {}
    for index, system in enumerate(ranking.systems):
        for group in _list_groups(ranking.grouping, system):
            members.setdefault(group, []).append(index)
    names = [system.system for system in ranking.systems]
    is_lettered = ranking.grouping == "letters"
    marks = [""] * len(names) if is_lettered else [f" {text}" for text in format_groups(ranking)]
    is_one_group = any(len(indices) == len(names) for indices in members.values())
    titles = ONE_GROUP_TITLES if is_one_group else GROUPING_TITLES
    has_ranges = ranking.grouping == "ranks"
    return plots.critical_difference(
        [*map("".join, zip(names, marks, strict=True))],
        np.array([system.score for system in ranking.systems]),
        [*members.values()],
        higher_is_better=table.metric[0].higher_is_better,
        title=", ".join([*get_subject(table)[:-1], *titles[ranking.grouping]]),
        score=_describe_score(table),
        rank_ranges=[(system.rank_low, system.rank_high) for system in ranking.systems] if has_ranges else None,
        **({"group_titles": BAR_TITLES[ranking.grouping]} if ranking.grouping in BAR_TITLES else {}),
    )


BAR_TITLES = {
    "clusters": ("clusters, each better than all below", "clusters"),
    "tied": ("not significantly different from the best", "tied with\nthe best"),
    "ranks": ("range of ranks; lines divide clusters", "range of\nranks"),
}
"""Wide and narrow titles of the bars in a diagram with a line for each system, by the option `grouping`."""

GROUPING_TITLES = {
    "letters": (), "clusters": ("clusters",), "tied": ("= tied with the best",),
    "ranks": ("clusters and ranges of ranks",),
}  # fmt: skip
"""Title about the bars of a diagram, by the option `grouping`."""

ONE_GROUP_TITLES = {
    "letters": ("no two significantly different",), "clusters": ("all in one cluster",),
    "tied": ("= all tied with the best",), "ranks": ("ranges of ranks, all in one cluster",),
}  # fmt: skip
"""The same title if one bar spans all systems."""


def _list_groups(grouping: str, system: RankedSystem) -> Sequence[str | int]:
    """Return the groups that a system belongs to, each a bar of a critical-difference diagram."""
    if grouping == "letters":
        return system.letters
    if grouping == "tied":
        return ["="] * system.tied_with_best
    return [system.cluster]


def achieved_significance(table: Table) -> Figure:
    """Draw the p-values of all comparisons, with a curve for each metric, test set and subset."""
    has_several = len({get_group_key(table, int(rows[0]))[:2] for rows in group_rows(table)}) > 1
    curves = {}
    for rows in group_rows(table):
        selected = table.take(rows)
        name = ", ".join(get_subject(selected)) if has_several else selected.metric[0].name
        curves[name] = selected.p_value
    return plots.achieved_significance(
        curves, table.alpha, title="" if has_several else ", ".join(get_subject(table)[:-1])
    )


def plot_null(table: Table, row: int, distribution: NullDistribution) -> Figure:
    """Draw the null distribution of one comparison."""
    selected, bars = table.take(slice(row, row + 1)), distribution.histogram
    edges = np.asarray(bars.low + bars.width * np.arange(len(bars.counts) + 1), np.float64)
    basis = "all arrangements" if distribution.is_whole else format_count(distribution.n_trials, "trial")
    return plots.null_distribution(
        edges, bars.counts, distribution.observed, alternative=selected.alternative[0],
        title=f"{selected.a[0]} − {selected.b[0]}: {_format_title(selected)}",
        score=f"difference of {_describe_score(selected)} with outputs swapped: {basis}",
        beside=f"observed: {_format_p_values(selected, selected.p_value)[0]}",
    )  # fmt: skip


def plot_units(table: Table, row: int, units: SortedUnits) -> Figure:
    """Draw the sorted contributions of the units to the difference of one comparison."""
    selected = table.take(slice(row, row + 1))
    a, b, metric = selected.a[0], selected.b[0], selected.metric[0]
    above, below = (a, b) if metric.higher_is_better else (b, a)
    return plots.unit_differences(
        units.ranks, units.values, units.n_units, [(above, units.n_above), (below, units.n_below)],
        title=f"{a} − {b}: {_format_title(selected)}",
        score=f"contribution to the difference of\n{_describe_score(selected)} ({units.kind})",
        units=f"{selected.unit[0]}s",
    )  # fmt: skip


def _get_ranking(table: Table) -> SystemRanking:
    if not is_ranked(table):
        raise InputError(
            "this figure needs all pairs of three or more systems, compared two-sided: leave out pairs and baseline"
        )
    return build_ranking(table)


def _select_forest_rows(table: Table) -> tuple[Table, str | None]:
    """Return the rows to draw in a forest plot, and the best system if only its comparisons fit.

    If there are too many, only those of the best system are drawn, or else those with the smallest p.
    """
    if len(table) <= MAX_IN_FOREST:
        return table, None
    if is_ranked(table):
        best = build_ranking(table).systems[0].system
        has_best = [best in pair for pair in zip(table.a.to_list(), table.b.to_list(), strict=True)]
        selected = table.take(np.flatnonzero(has_best))
        if len(selected) <= MAX_IN_FOREST:
            return selected, best
    single = np.where(np.isnan(table.p_value), table.p_high, table.p_value)
    return table.take(np.lexsort((single, _get_p_values(table)))[:MAX_IN_FOREST]), None


def _get_p_values(table: Table) -> NDArray[np.float64]:
    return np.where(np.isnan(table.p_adjusted), table.p_value, table.p_adjusted)


def _format_p_values(table: Table, p_values: NDArray[np.float64] | None = None) -> list[str]:
    """Return the p-value of each row as text: the adjusted one, if there is one, or that of `p_values`."""
    limits = zip(table.p_low.tolist(), table.p_high.tolist(), strict=True)
    is_alone = np.isnan(table.p_adjusted) | (p_values is not None)
    is_bound = np.where(is_alone, (table.p_low == 0) & ~table.exact, table.p_adjusted_low == 0)
    shown = (_get_p_values(table) if p_values is None else p_values).tolist()
    texts = [
        f"p in {format_limits(*ends, table.alpha)}"
        if np.isnan(p)
        else f"p {'≤' if bound else '='} {format_p(p, table.alpha)}"  # as short as it can be beside the axes
        for p, bound, ends in zip(shown, is_bound.tolist(), limits, strict=True)
    ]
    kind = "adjusted" if p_values is None else "unadjusted"
    is_adjusted = (~np.isnan(table.p_adjusted)).tolist()
    return [f"{kind} {text}" if adjusted else text for text, adjusted in zip(texts, is_adjusted, strict=True)]


def _describe_intervals(table: Table) -> str:
    intervals, kind = select_intervals(table)
    if intervals is None or np.isnan(intervals.low).all():
        return ""
    return f", {kind}{100 * float(np.nanmax(intervals.confidence)):.4g} % intervals"


def _describe_score(table: Table) -> str:
    score = table.metric[0]
    return score.name if score.higher_is_better else f"{score.name} (lower is better)"


def get_subject(table: Table) -> tuple[str, ...]:
    """Return the test set, subset and metric that a figure of these rows is about, without empty names."""
    return tuple(name for name in get_group_key(table, 0) if name)


def _format_title(table: Table) -> str:
    return ", ".join(get_subject(table))


MAX_CURVES = 12
"""Maximum number of measures whose curves are drawn."""


def plot_n_best(evaluation: RankingEvaluation, score: str) -> Figure:
    """Draw precision or recall of the n best candidates of each measure, for each n."""
    names = ["n", score, "low", "high"] if score == "precision" else ["n", "recall", "recall_low", "recall_high"]
    rows = evaluation.precision or (evaluation.sampled if score == "precision" else ())
    points: dict[str, list[list[float]]] = {}
    for row in rows:
        points.setdefault(row.measure, []).append([getattr(row, name) for name in names])
    columns = {name: np.array(sorted(column)).T for name, column in points.items()}
    curves = {name: NBestCurve(column[0].astype(np.int64), *column[1:]) for name, column in columns.items()}
    if not curves:
        raise InputError(f"there is no {score} of n best to draw")
    measures = sorted(evaluation.measures, key=lambda m: -np.nan_to_num(m.average_precision))
    best = [m.measure for m in measures if m.measure in curves]
    selected = [name for name in curves if name in best[:MAX_CURVES]]
    selection = f"{len(selected)} of {len(curves)} measures, of the best average precision"
    title = ": ".join(filter(None, [evaluation.name, selection if len(selected) < len(curves) else ""]))
    return plots.n_best_curves({name: curves[name] for name in selected}, title=title, score=score)


MAX_NULLS = 12
"""Maximum number of null distributions that are drawn."""

MAX_FIGURES = 60
"""Maximum number of figures in a folder. A message gives the number of those left out."""

MAX_CHARACTERS = 40
"""Maximum characters of each part of a file's name."""


def iter_result_pictures(all_results: Iterable[ComparisonResults]) -> Iterator[FigureSpec]:
    """Yield the pictures that fit results of comparisons."""
    for results in all_results:
        if len(results):
            yield from iter_pictures(results.table)


def iter_detail_pictures(table: Table, all_details: Sequence[ComparisonDetails]) -> Iterator[FigureSpec]:
    """Yield pictures of the first comparisons that have details: null distributions, then contributions of units."""
    rows = [(details, table.take(slice(details.row, details.row + 1))) for details in all_details[:MAX_NULLS]]
    subjects = [(details, (*get_subject(row), row.a[0], row.b[0])) for details, row in rows]
    for details, subject in subjects:
        yield FigureSpec("null", subject, partial(plot_null, table, details.row, details.null))
    for details, subject in subjects:
        if details.units is not None:
            yield FigureSpec("differences", subject, partial(plot_units, table, details.row, details.units))


def parse_formats(text: str, option: str = "--figure-format") -> tuple[str, ...]:
    """Parse the list of figure formats.

    Raises
    ------
    InputError
        One is none.
    """
    formats = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",")))
    for format_ in formats:
        if format_ not in plots.FORMATS:
            raise InputError(f"{option} {text}: must be one of {', '.join(plots.FORMATS)}")
    return formats


def write_figures(
    folder: Path, pictures_to_write: Iterable[FigureSpec], formats: Sequence[str], style: FigureStyle | None = None
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
    all_pictures = [picture for picture in pictures_to_write if not style.kinds or picture.kind in style.kinds]
    selected = all_pictures[:MAX_FIGURES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnfinishedError(f"the folder cannot be created ({error.strerror})", file=folder) from None
    written = []
    for name, picture in zip(build_file_names(selected), selected, strict=True):
        with plots.apply_style(style.canvas):
            figure = picture.draw()
            for format_ in formats:
                path = folder / f"{name}.{format_}"
                with open_atomic(path) as file:
                    file.write(plots.rendered(figure, format_))
                written.append(path)
    return written, len(all_pictures) - len(selected)


def build_file_names(selected: Sequence[FigureSpec]) -> list[str]:
    """Return a file name without ending for each picture: portable, unique and reproducible.

    Characters that file names cannot have become a line. Such a name, and one that differs from another only in case,
    ends in some digits of its digest.
    """
    plain_names = ["-".join([picture.kind, *map(_clean_part, picture.subject)]) for picture in selected]
    lowered = [name.lower() for name in plain_names]
    return [
        name if _is_clean(picture) and lowered.count(name.lower()) == 1 else f"{name}-{_hash_subject(picture)}"
        for name, picture in zip(plain_names, selected, strict=True)
    ]


def _clean_part(part: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+=@-]+", "_", part)[:MAX_CHARACTERS]


def _is_clean(picture: FigureSpec) -> bool:
    return all(part == _clean_part(part) for part in picture.subject)


def _hash_subject(picture: FigureSpec) -> str:
    return sha256("\0".join((picture.kind, *picture.subject)).encode("utf-8", "surrogatepass")).hexdigest()[:8]
